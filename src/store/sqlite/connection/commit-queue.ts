import { ClosedError } from '../../../errors.js'
import type { World } from '../../../world/world.js'
import { transactionOf } from '../caller-transactions/handles.js'
import { isBusy, SQLITE, sqliteCode } from './driver.js'
import type { Statements } from './driver.js'
import { handleClosed, translate } from './faults.js'
import type { FileIdentity } from '../file/file-identity.js'
import type { Queries } from '../queries/queries.js'

/**
 * Group commit. A synchronous driver can gather nothing while a commit runs, so the batch is one turn of the event
 * loop: all writes requested in a turn share one transaction and one flush. That makes durable writes fast.
 *
 * turn 1: enqueue, enqueue, settle, claim ──► soon ──► begin · work · work · work · work · commit ──► all four resolve
 *
 * If a work throws, only its own call fails: the transaction is rolled back and the other works are run again, each in
 * its own transaction. Works are functions of the database alone, so running one again is safe. A caller never sees a
 * busy file: the whole batch waits for a timer and tries again, and the event loop is not blocked meanwhile.
 */
export interface WriteOptions {
  /** False for writes whose loss does no harm (claims, beats): a batch of only those is not flushed. */
  readonly durable: boolean
}

/** A write that usually has nothing to do: then `readFirst` returns its result, by reading alone. */
export interface ReadFirstOptions<T> extends WriteOptions {
  readonly readFirst: (now: number) => T | undefined
}

interface Pending {
  readonly work: (now: number) => unknown
  readonly readFirst: ((now: number) => unknown) | undefined
  readonly durable: boolean
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** After this long the log says that another process does not release the file. */
const BUSY_LIMIT_MS = 60_000
/**
 * The longest wait between two tries. It does not grow: otherwise the process that has waited longest would be the
 * least likely to get the lock. Measured with eight processes that write at full speed: the same number of commits, and
 * a third of the longest wait.
 */
const BUSY_STEP_MAX_MS = 4

/** At close, pending writes get this long to be written; then their callers get an error. */
const CLOSE_PATIENCE_MS = 2_000

export class CommitQueue {
  readonly #statements: Statements
  readonly #queries: Queries
  readonly #world: World
  readonly #options: CommitQueueOptions
  #pending: Pending[] = []
  #scheduled = false
  #busySince: number | null = null
  #mustRewriteWal = false
  #synchronous = 'full'
  #closed = false

  constructor(statements: Statements, queries: Queries, world: World, options: CommitQueueOptions) {
    this.#statements = statements
    this.#queries = queries
    this.#world = world
    this.#options = options
    if (options.durability === 'process') this.#setSynchronous('normal')
  }

  /** Runs the work in the next transaction; resolves when that is committed. `now` is the database's clock. */
  write<T>(work: (now: number) => T, options: WriteOptions | ReadFirstOptions<T> = { durable: true }): Promise<T> {
    if (this.#closed) return Promise.reject(new ClosedError())
    const readFirst = 'readFirst' in options ? options.readFirst : undefined
    return new Promise((resolve, reject) => {
      this.#pending.push({ work, readFirst, durable: options.durable, resolve, reject })
      this.#schedule()
    })
  }

  /** Runs a read now, or a little later when the file is busy for readers too (recovery, closing). */
  read<T>(work: (now: number) => T): Promise<T> {
    if (this.#closed) return Promise.reject(new ClosedError())
    return new Promise((resolve, reject) => this.#tryRead(work, resolve, reject, this.#world.clock.monotonic()))
  }

  /** Commits the pending writes and refuses later ones. */
  async close(): Promise<void> {
    const { clock, timers } = this.#world
    const end = clock.monotonic() + CLOSE_PATIENCE_MS
    while (this.#pending.length > 0 && clock.monotonic() < end)
      await new Promise<void>((resolve) => timers.after(1, resolve))
    this.#closed = true
    const left = this.#pending
    this.#pending = []
    for (const p of left) p.reject(new ClosedError())
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#world.timers.soon(() => {
      this.#scheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    let batch = this.#pending
    if (batch.length === 0) return
    this.#pending = []
    try {
      if (batch.every((p) => p.readFirst !== undefined)) batch = this.#readFirst(batch)
      if (batch.length === 0) return void (this.#busySince = null)
      this.#begin(batch.some((p) => p.durable))
    } catch (error) {
      if (isBusy(error) && this.#waitForFile(batch)) return
      const failure = this.#fail(error)
      for (const p of batch) p.reject(failure)
      return
    }
    this.#busySince = null
    this.#run(batch)
  }

  /**
   * Resolves the calls that have nothing to write, and returns the rest. When every call of a batch has a `readFirst`, it runs
   * without the write lock: otherwise idle processes would contend for the lock with busy ones after each
   * commit. Next to other writes it saves nothing, because the transaction is needed anyway.
   */
  #readFirst(batch: Pending[]): Pending[] {
    const now = this.now()
    const answers = batch.map((p) => p.readFirst?.(now))
    this.#options.identity?.verify()
    for (const [i, p] of batch.entries()) if (answers[i] !== undefined) p.resolve(answers[i] as never)
    return batch.filter((_, i) => answers[i] === undefined)
  }

  /** One transaction for all; when a work or the commit fails, one for each, so that a bad write fails alone. */
  #run(batch: readonly Pending[]): void {
    const results: unknown[] = []
    try {
      const now = this.now()
      for (const p of batch) results.push(p.work(now))
      this.#execute(this.#queries.commit)
    } catch (error) {
      this.#rollBack()
      if (sqliteCode(error) === SQLITE.ioError) this.#mustRewriteWal = true
      const only = batch[0]
      if (batch.length === 1 && only !== undefined) only.reject(this.#fail(error))
      else this.#runEach(batch)
      return
    }
    if (!this.#isStillThere(batch)) return
    for (const [i, p] of batch.entries()) p.resolve(results[i] as never)
    this.#options.onCommit(batch.some((p) => p.durable))
  }

  /** After the flush and before the acknowledgement: whether the file that was written is the one at the path. */
  #isStillThere(batch: readonly Pending[]): boolean {
    try {
      this.#options.identity?.verify()
      return true
    } catch (error) {
      const failure = this.#fail(error)
      for (const p of batch) p.reject(failure)
      return false
    }
  }

  #runEach(batch: readonly Pending[]): void {
    for (const [i, p] of batch.entries()) {
      try {
        this.#begin(p.durable)
      } catch (error) {
        const rest = batch.slice(i)
        if (isBusy(error) && this.#waitForFile(rest)) return
        const failure = this.#fail(error)
        for (const each of rest) each.reject(failure)
        return
      }
      this.#run([p])
    }
  }

  #begin(durable: boolean): void {
    if (this.#options.isTaken?.() === true)
      throw Object.assign(new Error('the handle is in a transaction of its owner'), { errcode: SQLITE.busy })
    // A file that was restored meanwhile must not get our frames: its -wal may still be the one we write.
    this.#options.identity?.verifyIfDue()
    if (this.#mustRewriteWal) this.#rewriteWal()
    this.#setSynchronous(durable && this.#options.durability === 'power' ? 'full' : 'normal')
    this.#execute(this.#queries.begin)
    this.#options.onBegin?.()
  }

  /**
   * A flush failed. The kernel drops the pages that it could not write, so a second flush proves nothing: the WAL may
   * keep a hole, and a power cut would lose every acknowledged commit after it. A full checkpoint writes every page
   * again from SQLite's memory and flushes the file; until one succeeds, nothing more is written.
   */
  #rewriteWal(): void {
    this.#setSynchronous('full')
    const folded = this.#statements.of(this.#queries.truncateCheckpoint).get() as { busy: number }
    if (folded.busy !== 0)
      throw Object.assign(new Error('a reader keeps the WAL from being checkpointed'), { errcode: SQLITE.busy })
    this.#mustRewriteWal = false
  }

  /** Puts the batch back in front and tries again by timer; false when it has waited too long. */
  #waitForFile(batch: readonly Pending[]): boolean {
    const now = this.#world.clock.monotonic()
    this.#busySince ??= now
    if (now - this.#busySince > BUSY_LIMIT_MS) {
      this.#busySince = null
      return false
    }
    this.#pending = [...batch, ...this.#pending]
    this.#scheduled = true
    this.#world.timers.after(0.5 + this.#world.random() * BUSY_STEP_MAX_MS, () => {
      this.#scheduled = false
      this.#flush()
    })
    return true
  }

  #tryRead<T>(
    work: (now: number) => T,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
    since: number,
  ): void {
    try {
      const value = work(this.now())
      this.#options.identity?.verify()
      resolve(value)
    } catch (error) {
      const waited = this.#world.clock.monotonic() - since
      if (!isBusy(error) || waited > BUSY_LIMIT_MS || this.#closed) reject(this.#fail(error))
      else this.#world.timers.after(1 + this.#world.random() * 10, () => this.#tryRead(work, resolve, reject, since))
    }
  }

  /** The database's clock; only the simulator provides its own. */
  now(): number {
    if (this.#options.now !== undefined) return this.#options.now()
    return (this.#statements.of(this.#queries.databaseNow).get() as { now: number }).now
  }

  #setSynchronous(mode: 'full' | 'normal'): void {
    if (this.#synchronous === mode) return
    this.#statements.database.exec(`pragma synchronous = ${mode}`)
    this.#synchronous = mode
  }

  #execute(sql: string): void {
    this.#statements.of(sql).run()
  }

  /** A full disk or an I/O error may have ended the transaction already. */
  #rollBack(): void {
    try {
      this.#execute(this.#queries.rollback)
    } catch {
      // No transaction was open: SQLite has rolled it back itself.
    }
    this.#options.onRollback()
  }

  #fail(error: unknown): unknown {
    if (sqliteCode(error) === SQLITE.ioError) this.#mustRewriteWal = true
    const isClosed = sqliteCode(error) === undefined && transactionOf(this.#statements.database) === 'closed'
    const failure = isClosed ? handleClosed(this.#options.name, error) : translate(error, this.#options.name)
    this.#options.onFailure(failure)
    return failure
  }
}

export interface CommitQueueOptions {
  readonly name: string
  readonly durability: 'power' | 'process'
  readonly now: (() => number) | undefined
  /** The connection is shared with its owner, who has a transaction open: our writes must not join it. */
  readonly isTaken?: (() => boolean) | undefined
  /** Undefined: there is no file that could be deleted or replaced. */
  readonly identity?: FileIdentity | undefined
  /** Drops what was cached for the last transaction. */
  readonly onBegin?: (() => void) | undefined
  /** `durable`: the transaction had a write that must be kept, not only claims and reads. */
  readonly onCommit: (durable: boolean) => void
  /** The transaction was rolled back: caches of its rows must be dropped. */
  readonly onRollback: () => void
  readonly onFailure: (error: unknown) => void
}
