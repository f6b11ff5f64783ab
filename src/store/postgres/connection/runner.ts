import { EMPTY_HINT } from '../../hint.js'
import type { Hint } from '../../store.js'
import type { Connection } from './connection.js'
import type { SqlExecutor } from './sql-executor.js'
import type { Hints } from '../wake/hints.js'
import type { Lanes } from '../verbs/lanes.js'
import type { Opened } from './open.js'
import { Receipts } from './receipts.js'
import type { Call } from './receipts.js'
import { JobSession } from '../verbs/job-session.js'
import { hintPayload } from './session.js'
import { LOCK_PATIENCE_MS, whileLocked } from './while-locked.js'

/**
 * Runs the verbs of the store, as statements that each commit or as one transaction. Other processes are notified after
 * the commit.
 */
export class Runner {
  readonly receipts: Receipts
  readonly #opened: Opened
  readonly #lanes: Lanes
  readonly #hints: Hints
  readonly #now: (() => number) | undefined

  constructor(opened: Opened, lanes: Lanes, hints: Hints, now: (() => number) | undefined) {
    this.#opened = opened
    this.#lanes = lanes
    this.#hints = hints
    this.#now = now
    const [writes, work] = [opened.connection('writes'), opened.connection('work')]
    this.receipts = new Receipts({ writes, work }, opened.queries, opened.world, opened.info.name)
  }

  /** Statements that each commit by themselves; the one that writes inserts the receipt. */
  async plain<T>(
    connection: Connection,
    work: (session: JobSession) => Promise<T>,
    patienceMs = LOCK_PATIENCE_MS,
    receipt?: string,
  ): Promise<T> {
    const session = this.session({ query: (text, values) => connection.query(text, values, patienceMs) })
    session.receipt = receipt
    const result = await work(session)
    this.committed(session.hint)
    return result
  }

  /** One transaction: all or nothing. */
  transact<T>(
    work: (session: JobSession) => Promise<T>,
    patienceMs = LOCK_PATIENCE_MS,
    connection = this.#opened.connection('writes'),
  ): Promise<T> {
    const { world, queries } = this.#opened
    return whileLocked(world, patienceMs, (until) => this.#transactOnce(work, queries.commit, until, connection))
  }

  /** The same with a receipt that holds `answer(result)`. */
  transactWithReceipt<T>(
    work: (session: JobSession) => Promise<T>,
    answer: (result: T) => unknown,
    patienceMs = LOCK_PATIENCE_MS,
  ): Promise<T> {
    const { world, queries } = this.#opened
    return whileLocked(world, patienceMs, (until) =>
      this.receipts.withReceipt((receipt) =>
        this.#transactOnce(work, (result) => queries.commitWith(receipt, JSON.stringify(answer(result))), until),
      ),
    )
  }

  /** A command of a caller in one transaction. Its result must be JSON. `ids`: the jobs that it changes. */
  command<T>(ids: readonly string[], work: (session: JobSession) => Promise<T>): Promise<T> {
    return this.withKnownOutcome({
      ids,
      write: () => this.transactWithReceipt(work, (result) => result),
      read: (answer) => JSON.parse(answer as string) as T,
    })
  }

  withKnownOutcome<T>(call: Call<T>): Promise<T> {
    return this.receipts.withKnownOutcome({
      ...call,
      read: (answer, index) => {
        // The reply was lost, and with it the hint of what it changed.
        this.committed(EVERYTHING)
        return call.read(answer, index)
      },
    })
  }

  /** Notifies after the commit and not within it: a notification serialises the commits of the whole server. */
  committed(hint: Hint | undefined): void {
    if (hint === undefined) return
    this.#hints.committed(hint)
    this.#opened.notify(hintPayload(this.#opened.self, hint))
  }

  session(db: SqlExecutor, from = this.#opened.self): JobSession {
    return new JobSession({ db, queries: this.#opened.queries, lanes: this.#lanes, now: this.#now, from })
  }

  async #transactOnce<T>(
    work: (session: JobSession) => Promise<T>,
    commit: string | ((result: T) => string),
    until: number | undefined,
    connection = this.#opened.connection('writes'),
  ): Promise<T> {
    let hint: Hint | undefined
    const { beginBounded, rollback } = this.#opened.queries
    const inside = async (tx: SqlExecutor): Promise<T> => {
      const session = this.session(tx)
      const done = await work(session)
      hint = session.hint
      return done
    }
    const bounds = { begin: beginBounded, commit, rollback }
    const result = await connection.transaction(bounds, inside, undefined, until)
    this.committed(hint)
    return result
  }
}

/** A hint that covers everything a commit may have changed. */
export const EVERYTHING: Hint = { ...EMPTY_HINT, ready: true, dueInMs: 0, settled: true, requested: true }
