import { show } from '../../codec/show.js'
import { InvalidOptionsError, LeaseLostError, TransactionError } from '../../errors.js'
import { readLog } from '../../job/attempt/attempt-log.js'
import type { Outcome } from '../../job/rules/outcome.js'
import { isFinal } from '../../job/rules/states.js'
import { isThenable } from '../../job/definition/schema.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { ClaimedJob, JobRow, SettledJob } from '../../store/store.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'
import { ObservedPromise } from './observed-promise.js'
import { failure, succeeded } from './run.js'
import type { Running, Settling } from './running.js'

/**
 * Handlers that settle their own job. `settleIn` writes the job's end in a transaction of the handler; the worker does not learn
 * whether that commits. When the handler has returned, the worker writes an ordinary settlement, "it was rolled back", under its
 * fence. The store refuses it if the job is done or the claim was lost, and waits while the transaction is open.
 */
export class SelfSettler implements Settling {
  readonly #parts: Parts
  readonly #settlement: (running: Running, outcome: Outcome) => SettledJob

  /** `settlement` builds what is written of an attempt that ends with this outcome now. */
  constructor(parts: Parts, settlement: (running: Running, outcome: Outcome) => SettledJob) {
    this.#parts = parts
    this.#settlement = settlement
  }

  settleIn(running: Running, tx: unknown, result: unknown): Promise<void> | void {
    refuseEnded(running)
    const settled = this.#settlement(running, succeeded(running.registered, result))
    const note = (held: boolean): void => {
      if (!held) throw notHeld(running, 'ctx.settleIn()')
      running.settledIn = settled
    }
    const written = this.#parts.store.transactions.settleJobIn(tx, settled)
    return isThenable(written) ? observed(running, Promise.resolve(written).then(note)) : note(written)
  }

  transaction<T>(running: Running, work: (tx: unknown) => T): Promise<T> {
    return observed(running, this.#transaction(running, work))
  }

  async #transaction<T>(running: Running, work: (tx: unknown) => T): Promise<T> {
    if (typeof work !== 'function') {
      const message = `must be a function that is given tx and writes, such as (tx) => …, got ${show(work)}`
      throw new InvalidOptionsError('ctx.transaction(work)', [{ path: 'work', message }])
    }
    refuseEnded(running)
    let settled: SettledJob | undefined
    try {
      const transacting = this.#parts.store.transactions.transact({
        claim: running.claimed,
        work,
        settle: (returned) => (settled = this.#settlement(running, succeeded(running.registered, returned))),
        stopped: () => running.abortReason,
      })
      return await thenOrRetry(transacting, (value) => {
        running.settledIn = settled
        running.isCommitted = true
        return value
      })
    } catch (error) {
      if (error instanceof LeaseLostError) throw notHeld(running, 'ctx.transaction()')
      running.unansweredEnd = settled
      throw error
    }
  }

  /** The outcome of a handler that returned, once the writes are over that it did not await. Their failure is reported nowhere else. */
  async complete(running: Running, outcome: Outcome): Promise<Outcome> {
    for (const each of running.pendingWrites ?? []) {
      const failed = await each.failure()
      if (failed !== undefined && outcome.kind === 'succeeded' && running.settledIn === undefined)
        return this.#failure(running, failed.error)
    }
    return outcome
  }

  /** What to write of an attempt that is over. One that wrote its end in a transaction failed, unless that has committed. */
  outcomeOf(running: Running, outcome: Outcome): Outcome {
    if (running.settledIn === undefined) return outcome
    if (outcome.kind === 'failed' || outcome.kind === 'aborted') running.errorAfterSettling = outcome.error
    else if (outcome.kind === 'cancelled')
      running.errorAfterSettling = outcome.error ?? { name: 'JobCancelledError', message: outcome.reason }
    else if (outcome.kind === 'snoozed')
      running.errorAfterSettling = { name: 'Snooze', message: 'the handler threw new Snooze()' }
    return outcome.kind === 'succeeded' ? this.#rolledBack(running) : outcome
  }

  #rolledBack(running: Running): Outcome {
    const error = new TransactionError(
      'E_TX_ROLLED_BACK',
      'the transaction given to settleIn was rolled back, so nothing of it was recorded, though the handler returned',
    )
    return this.#failure(running, error)
  }

  #failure({ registered, options, claimed, attempt }: Running, error: unknown): Outcome {
    const { random } = this.#parts.world
    return failure({ registered, retry: options.retry, retries: claimed.retries, attempt, random }, error)
  }

  /**
   * Reports a job whose claim is over: its own transaction settled it, an earlier write did whose answer was lost, or the claim
   * was lost. `refused`: the settlement that the store refused.
   */
  async reportGone(job: ClaimedJob | SettledJob, running: Running | undefined, refused?: SettledJob): Promise<void> {
    const { events } = this.#parts
    try {
      const written = running === undefined ? undefined : await this.#writtenEnd(running, refused)
      if (running === undefined || written === undefined) return events.lost(job)
      events.settled(written, running.tookMs, running)
      if (running.errorAfterSettling !== undefined) events.threwAfterwards(running, running.errorAfterSettling)
    } catch (error) {
      events.storeFailed('read what became of a job', error)
    }
  }

  /** The end of this attempt as the store has it; undefined when it has none of this attempt. */
  async #writtenEnd(running: Running, refused: SettledJob | undefined): Promise<SettledJob | undefined> {
    if (running.isCommitted) return running.settledIn
    const inTransaction = running.settledIn ?? running.unansweredEnd
    const unanswered = running.isEndUnanswered ? refused : undefined
    if (inTransaction === undefined && unanswered === undefined) return undefined
    const [row] = await this.#parts.store.jobs.readJobs([running.id])
    // Not kept, or deleted since: either way it had ended.
    if (row === undefined) return inTransaction ?? unanswered
    if (inTransaction !== undefined && row.state === 'done' && isEndOf(row, inTransaction)) return inTransaction
    return unanswered === undefined ? undefined : asWritten(unanswered, row)
  }
}

/** The row has ended by this settlement. */
function isEndOf(row: JobRow, { worker, attempt }: SettledJob): boolean {
  return isFinal(row.state) && row.worker === worker && row.attempt === attempt
}

/** A settlement that was written though its answer was lost, with what a requested change made of it; undefined: it was not. */
function asWritten(settled: SettledJob, row: JobRow): SettledJob | undefined {
  if (isEndOf(row, settled)) return { ...settled, to: row.state, reason: row.reason }
  // The job may have moved on since. Each attempt but a success leaves its own entry in the log.
  const [own, entries] = [readLog(settled.log).at(-1), readLog(row.log)]
  if (isFinal(settled.to) || !entries.some((entry) => JSON.stringify(entry) === JSON.stringify(own))) return undefined
  return row.state === 'paused' ? { ...settled, to: row.state, reason: row.reason } : settled
}

type Parts = Pick<InFlightParts, 'store' | 'world' | 'events'>

/** A handler may forget to await: its attempt is not over before this promise is settled. */
function observed<T>(running: Running, promise: Promise<T>): Promise<T> {
  const write = ObservedPromise.of(promise)
  running.pendingWrites = [...(running.pendingWrites ?? []), write]
  return write
}

/** A handler whose attempt is over, or whose claim is lost, can settle nothing more. */
function refuseEnded(running: Running): void {
  if (running.abortReason instanceof LeaseLostError) throw running.abortReason
  if (running.settled)
    throw new TransactionError(
      'E_ALREADY_SETTLED',
      `job ${running.job} ${running.id}: this attempt is over; settle it before its handler returns`,
    )
}

function notHeld(running: Running, what: string): Error {
  if (running.settledIn === undefined) return new LeaseLostError(`job ${running.job} ${running.id}: ${what}`)
  return new TransactionError(
    'E_ALREADY_SETTLED',
    `job ${running.job} ${running.id}: ${what}: this attempt has settled itself already; a job is settled once`,
  )
}
