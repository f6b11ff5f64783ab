import { show } from '../../codec/show.js'
import { InvalidOptionsError, LeaseLostError, TransactionError } from '../../errors.js'
import type { Outcome } from '../../job/rules/outcome.js'
import { isThenable } from '../../job/definition/schema.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { ClaimedJob, SettledJob } from '../../store/store.js'
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
      throw error instanceof LeaseLostError ? notHeld(running, 'ctx.transaction()') : error
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

  /** Reports a job whose claim is over: its own transaction settled it, or the claim was lost. */
  async reportGone(job: ClaimedJob | SettledJob, running: Running | undefined): Promise<void> {
    const { events } = this.#parts
    const settled = running?.settledIn
    try {
      if (running === undefined || settled === undefined || !(await this.isDone(running, settled)))
        return events.lost(job)
      events.settled(settled, running.tookMs, running)
      if (running.errorAfterSettling !== undefined) events.threwAfterwards(running, running.errorAfterSettling)
    } catch (error) {
      events.storeFailed('read what became of a job', error)
    }
  }

  async isDone(running: Running, settled: SettledJob): Promise<boolean> {
    if (running.isCommitted) return true
    const [row] = await this.#parts.store.jobs.readJobs([settled.id])
    // Not kept, or deleted since: either way it had ended.
    if (row === undefined) return true
    return row.state === 'done' && row.worker === settled.worker && row.attempt === settled.attempt
  }
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
