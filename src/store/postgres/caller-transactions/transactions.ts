import { ClosedError, LeaseLostError, TransactionError } from '../../../errors.js'
import { isThenable } from '../../../job/definition/schema.js'
import { isAbort } from '../../../job/attempt/control-errors.js'
import { followed } from '../../followed.js'
import type { Inserted, InsertOptions, NewJob, SettledJob } from '../../store.js'
import type { GroupSeal } from '../../groups.js'
import type { Transact, TransactionStore } from '../../transaction-store.js'
import { checkOpen, isSame } from './check-open.js'
import { sqlStateOf } from '../connection/executor.js'
import type { Executor } from '../connection/executor.js'
import { translate } from '../connection/faults.js'
import { executorOf } from './handles.js'
import { sealGroup } from '../verbs/group-ends.js'
import { insertJobs } from '../verbs/insert.js'
import type { Lanes } from '../verbs/lanes.js'
import type { Opened } from '../connection/open.js'
import type { Lender, Lent } from '../connection/handler-connections.js'
import { EVERYTHING } from '../connection/runner.js'
import type { Runner } from '../connection/runner.js'
import type { Session } from '../connection/session.js'
import { settleShared } from '../verbs/settle.js'
import { isOneStatement } from '../verbs/write.js'

/** How often `ctx.transaction` is run before a serialization failure fails the attempt, and the longest wait in between. */
const CONFLICT_TRIES = 20
const CONFLICT_MAX_MS = 1_000

export interface TransactionParts {
  readonly opened: Opened
  readonly lanes: Lanes
  readonly lender: Lender
  /** Of a transaction whose commit only the server tells us of. */
  readonly session: (db: Executor) => Session
  readonly run: Runner
}

/** The store's writes inside transactions that are not its own: the caller's, or one opened for a handler. */
export class PostgresTransactions implements TransactionStore {
  readonly answersLater = true
  readonly #parts: TransactionParts
  /** Calls on one handle take turns: their statements must not come in between each other. */
  readonly #turns = new WeakMap<object, Promise<unknown>>()
  /** Handles that we opened ourselves, and know to be in a transaction. */
  readonly #own = new WeakSet<object>()
  #isClosed = false

  constructor(parts: TransactionParts) {
    this.#parts = parts
  }

  insertJobsIn(tx: unknown, jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]> {
    return this.#inCaller(tx, (s) => {
      const insert = (): Promise<readonly Inserted[]> => insertJobs(s, jobs, options)
      const write = (isAgain: boolean): Promise<readonly Inserted[]> => {
        s.isAgain = isAgain
        return isOneStatement(jobs, options) ? insert() : this.#whole(s, insert)
      }
      return this.#parts.lanes.sure(jobs, write, { query: (text, values) => s.query(text, ...values) })
    })
  }

  sealGroupIn(tx: unknown, seal: GroupSeal): Promise<boolean> {
    return this.#inCaller(tx, (s) => this.#whole(s, () => sealGroup(s, seal)))
  }

  settleJobIn(tx: unknown, settled: SettledJob): Promise<boolean> {
    return this.#inCaller(tx, (s) => this.#whole(s, () => settleShared(s, settled)))
  }

  /** Others may write on the handle in between, so that nothing can be undone for them. */
  guarded<T>(tx: unknown, call: (sync: boolean) => T): T {
    if (this.#isClosed) throw new ClosedError()
    executorOf(tx)
    return call(false)
  }

  /** If its commit is lost: what the handler returned is known here, so that the receipt holds nothing. */
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
      run.receipts.under((receipt) => this.#transactOnce({ ...request, settle }, receipt, (made) => (value = made)))
    const write = (): Promise<{ readonly returned: T }> => this.#pastConflicts(once)
    return followed(run.known({ ids, write, read: () => value }), ({ returned }) => returned)
  }

  /**
   * Under `serializable` or `repeatable read` the server refuses a transaction that others were faster than, also for what only
   * the engine's statements touched. It is rolled back and run again, in a new one: the attempt is not charged for it.
   */
  async #pastConflicts<T>(once: () => Promise<T>): Promise<T> {
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
    const lent = await this.#parts.lender.borrow(request.stopped)
    this.#own.add(lent.client)
    try {
      const value = { returned: await this.#workAndSettle(lent, request) }
      made(value)
      await lent.giveBack({ commit: receipt })
      this.#parts.run.committed(EVERYTHING)
      return value
    } catch (error) {
      // What is still under way would be written after the rollback, and by itself.
      await this.#turns.get(lent.client)
      await lent.giveBack('rollback')
      throw error
    } finally {
      this.#own.delete(lent.client)
    }
  }

  close(): void {
    this.#isClosed = true
  }

  async #workAndSettle<T>(lent: Lent, { claim, work, settle, stopped }: Transact<T>): Promise<T> {
    const reason = stopped()
    if (reason !== undefined) throw reason
    const s = this.#parts.session(executorOf(lent.client))
    const held = await s.query(s.queries.holdsClaim, String(claim.ref), String(claim.fence))
    if (held.length === 0) throw new LeaseLostError('ctx.transaction()')
    const returned: unknown = work(lent.client)
    const value = (isThenable(returned) ? await returned : returned) as T
    // What the handler enqueued and did not wait for is part of it.
    await this.#turns.get(lent.client)
    await this.#check(executorOf(lent.client))
    if (!(await settleShared(s, settle(value)))) throw new LeaseLostError('ctx.transaction()')
    return value
  }

  #inCaller<T>(tx: unknown, work: (s: Session) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new ClosedError()
    const executor = executorOf(tx)
    const handle = tx as object
    const turn = (this.#turns.get(handle) ?? Promise.resolve()).then(async () => {
      // Its commit is heard of by its notification alone.
      await this.#parts.opened.listening()
      if (!this.#own.has(handle)) await this.#check(executor)
      const s = this.#parts.session(executor)
      const result = await work(s).catch((error: unknown) => {
        throw this.#translate(error)
      })
      if (s.hint !== undefined) await s.query(s.queries.notify, s.news(s.hint))
      return result
    })
    this.#turns.set(
      handle,
      turn.catch(() => undefined),
    )
    return turn
  }

  /** All of a work or nothing of it, also when its refusal is swallowed and the rest commits. */
  async #whole<T>(s: Session, work: () => Promise<T>): Promise<T> {
    await s.query(s.queries.savepoint)
    try {
      const result = await work()
      await s.query(s.queries.release)
      return result
    } catch (error) {
      await s.query(s.queries.rollbackTo).catch(() => undefined)
      await s.query(s.queries.release).catch(() => undefined)
      throw error
    }
  }

  /** Another database than we know may be ours all the same: its tables were made anew, or restored, while we were open. */
  async #check(executor: Executor): Promise<void> {
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
        'others have changed since tx began what it must change now; roll back, and try it again',
        { cause: error },
      )
    return translate(error, this.#parts.opened.info.name)
  }
}

/** An Abort that names a conflict as its cause is the handler's decision. */
function isConflict(error: unknown): boolean {
  return sqlStateOf(error) === '40001' && !isAbort(error)
}
