import { ClosedError, LeaseLostError, TransactionError } from '../../../errors.js'
import { isThenable } from '../../../job/definition/schema.js'
import { isAbort } from '../../../job/attempt/control-errors.js'
import { thenOrRetry } from '../../unknown-outcome.js'
import type { Inserted, InsertOptions, NewJob, SettledJob } from '../../store.js'
import type { GroupSeal } from '../../groups.js'
import type { NewSequence } from '../../sequences.js'
import type { Transact, TransactionStore } from '../../transaction-store.js'
import { checkOpen, isSame } from './check-open.js'
import { sqlStateOf } from '../connection/sql-executor.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { translate } from '../connection/faults.js'
import { executorOf } from './handles.js'
import { sealGroup } from '../../verbs/groups.js'
import { insertSequence } from '../../verbs/sequences.js'
import { sendEvent } from '../../verbs/workflows.js'
import type { NewEvent, Sent } from '../../workflows.js'
import { awaitVerb } from '../../verbs/verb.js'
import { insertJobs } from '../verbs/insert.js'
import type { Lanes } from '../verbs/lanes.js'
import type { Opened } from '../connection/open.js'
import type { HandlerConnections, HandlerConnection } from '../connection/handler-connections.js'
import { EVERYTHING } from '../connection/runner.js'
import type { Runner } from '../connection/runner.js'
import type { JobSession } from '../verbs/job-session.js'
import { settleShared } from '../verbs/settle.js'
import { isOneStatement } from '../verbs/write.js'

/**
 * How many times `ctx.transaction` is run before a serialization failure fails the attempt, and the longest wait in
 * between.
 */
const CONFLICT_TRIES = 20
const CONFLICT_MAX_MS = 1_000

export interface TransactionParts {
  readonly opened: Opened
  readonly lanes: Lanes
  readonly handlerConnections: HandlerConnections
  /** The session of a transaction whose commit only a notification of the server reports. */
  readonly session: (db: SqlExecutor) => JobSession
  readonly run: Runner
}

/** The store's writes inside transactions that are not its own: the caller's, or one opened for a handler. */
export class PostgresTransactions implements TransactionStore {
  readonly answersLater = true
  readonly #parts: TransactionParts
  /** Calls on one handle run one after the other: their statements must not be interleaved. */
  readonly #turns = new WeakMap<object, Promise<unknown>>()
  /** Handles that this store opened itself, and that are in a transaction for certain. */
  readonly #own = new WeakSet<object>()
  #isClosed = false

  constructor(parts: TransactionParts) {
    this.#parts = parts
  }

  insertJobsIn(tx: unknown, jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]> {
    return this.#inCaller(tx, (session) => {
      const insert = (): Promise<readonly Inserted[]> => insertJobs(session, jobs, options)
      const write = (isAgain: boolean): Promise<readonly Inserted[]> => {
        session.isAgain = isAgain
        return isOneStatement(jobs, options) ? insert() : this.#whole(session, insert)
      }
      return this.#parts.lanes.ensureLanes(jobs, write, { query: (text, values) => session.query(text, ...values) })
    })
  }

  insertSequenceIn(tx: unknown, sequence: NewSequence): Promise<Inserted> {
    return this.#inCaller(tx, (session) => {
      const write = (isAgain: boolean): Promise<Inserted> => {
        session.isAgain = isAgain
        return this.#whole(session, () => awaitVerb(insertSequence(session, sequence)))
      }
      const db = { query: (text: string, values: readonly (string | null)[]) => session.query(text, ...values) }
      return this.#parts.lanes.ensureLanes([sequence.job], write, db as SqlExecutor)
    })
  }

  /** The workflow is woken after the commit: its row must not be locked for as long as this transaction stays open. */
  sendEventIn(tx: unknown, event: NewEvent): Promise<Sent> {
    return this.#inCaller(tx, (session) => this.#whole(session, () => awaitVerb(sendEvent(session, event, true))))
  }

  sealGroupIn(tx: unknown, seal: GroupSeal): Promise<boolean> {
    return this.#inCaller(tx, (session) => this.#whole(session, () => awaitVerb(sealGroup(session, seal))))
  }

  settleJobIn(tx: unknown, settled: SettledJob): Promise<boolean> {
    return this.#inCaller(tx, (session) => this.#whole(session, () => settleShared(session, settled)))
  }

  /** Other statements may run on the handle in between, so nothing is undone here. */
  guarded<T>(tx: unknown, call: (sync: boolean) => T): T {
    if (this.#isClosed) throw new ClosedError()
    executorOf(tx)
    return call(false)
  }

  /** If the reply to the commit is lost: the handler's value is known here, so the receipt holds no answer. */
  transact<T>(request: Transact<T>): Promise<T> {
    let value: { readonly returned: T } | undefined
    const ids: string[] = []
    const { run } = this.#parts
    const settle = (returned: T): SettledJob => {
      const settled = request.settle(returned)
      ids[0] = settled.id
      return settled
    }
    const once = (): Promise<{ readonly returned: T }> =>
      run.receipts.withReceipt((receipt) =>
        this.#transactOnce({ ...request, settle }, receipt, (made) => (value = made)),
      )
    const write = (): Promise<{ readonly returned: T }> => this.#retryConflicts(once)
    return thenOrRetry(run.withKnownOutcome({ ids, write, read: () => value }), ({ returned }) => returned)
  }

  /**
   * Under `serializable` or `repeatable read` the server refuses a transaction that conflicts with one that committed
   * first, also for rows that only the engine's statements touched. It is rolled back and run again in a new
   * transaction, and does not count as an attempt of the job.
   */
  async #retryConflicts<T>(once: () => Promise<T>): Promise<T> {
    const { timers, random } = this.#parts.opened.world
    for (let tries = 1; ; tries += 1) {
      try {
        return await once()
      } catch (error) {
        if (tries === CONFLICT_TRIES || !isConflict(error)) throw error
      }
      const waitMs = random() * Math.min(CONFLICT_MAX_MS, 5 * 2 ** tries)
      await new Promise<void>((next) => timers.after(waitMs, next))
    }
  }

  async #transactOnce<T>(
    request: Transact<T>,
    receipt: string,
    made: (value: { readonly returned: T }) => void,
  ): Promise<{ readonly returned: T }> {
    if (this.#isClosed) throw new ClosedError()
    const borrowed = await this.#parts.handlerConnections.borrow(request.stopped)
    this.#own.add(borrowed.client)
    try {
      const value = { returned: await this.#workAndSettle(borrowed, request) }
      made(value)
      await borrowed.finish({ commit: receipt })
      this.#parts.run.committed(EVERYTHING)
      return value
    } catch (error) {
      // Statements in flight would otherwise run after the rollback, each in a transaction of its own.
      await this.#turns.get(borrowed.client)
      await borrowed.finish('rollback')
      throw error
    } finally {
      this.#own.delete(borrowed.client)
    }
  }

  close(): void {
    this.#isClosed = true
  }

  async #workAndSettle<T>(borrowed: HandlerConnection, { claim, work, settle, stopped }: Transact<T>): Promise<T> {
    const reason = stopped()
    if (reason !== undefined) throw reason
    const session = this.#parts.session(executorOf(borrowed.client))
    const held = await session.query(session.queries.holdsClaim, String(claim.ref), String(claim.fence))
    if (held.length === 0) throw new LeaseLostError('ctx.transaction()')
    const returned: unknown = work(borrowed.client)
    const value = (isThenable(returned) ? await returned : returned) as T
    // Calls that the handler did not await are part of the transaction.
    await this.#turns.get(borrowed.client)
    await this.#check(executorOf(borrowed.client))
    if (!(await settleShared(session, settle(value)))) throw new LeaseLostError('ctx.transaction()')
    return value
  }

  #inCaller<T>(tx: unknown, work: (session: JobSession) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new ClosedError()
    const executor = executorOf(tx)
    const handle = tx as object
    const turn = (this.#turns.get(handle) ?? Promise.resolve()).then(async () => {
      // Only a notification reports its commit.
      await this.#parts.opened.listening()
      if (!this.#own.has(handle)) await this.#check(executor)
      const session = this.#parts.session(executor)
      const result = await work(session).catch((error: unknown) => {
        throw this.#translate(error)
      })
      if (session.hint !== undefined) await session.query(session.queries.notify, session.payload(session.hint))
      return result
    })
    this.#turns.set(
      handle,
      turn.catch(() => undefined),
    )
    return turn
  }

  /** All of `work` or nothing of it, also when the caller ignores its error and commits. */
  async #whole<T>(session: JobSession, work: () => Promise<T>): Promise<T> {
    await session.query(session.queries.savepoint)
    try {
      const result = await work()
      await session.query(session.queries.release)
      return result
    } catch (error) {
      await session.query(session.queries.rollbackTo).catch(() => undefined)
      await session.query(session.queries.release).catch(() => undefined)
      throw error
    }
  }

  /**
   * A database with another identity may still be the store's: its tables were created again, or restored, while it was
   * open.
   */
  async #check(executor: SqlExecutor): Promise<void> {
    const { opened } = this.#parts
    const home = opened.home()
    try {
      await checkOpen(executor, home)
    } catch (error) {
      const isElsewhere = error instanceof TransactionError && error.code === 'E_TX_OTHER_DATABASE'
      if (!isElsewhere || isSame(await opened.readHome(), home)) throw error
      await checkOpen(executor, opened.home())
    }
  }

  #translate(error: unknown): unknown {
    if (sqlStateOf(error) === '40001')
      return new TransactionError(
        'E_TX_STALE',
        'another transaction has changed, since tx began, rows that it must change; roll back, and try it again',
        { cause: error },
      )
    return translate(error, this.#parts.opened.info.name)
  }
}

/** An Abort with a conflict as its cause is the handler's decision. */
function isConflict(error: unknown): boolean {
  return sqlStateOf(error) === '40001' && !isAbort(error)
}
