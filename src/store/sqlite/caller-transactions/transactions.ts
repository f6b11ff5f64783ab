import { ClosedError, LeaseLostError, TransactionError } from '../../../errors.js'
import type { World } from '../../../world/world.js'
import type { Inserted, InsertOptions, NewJob, SettledJob } from '../../store.js'
import type { NewSequence } from '../../sequences.js'
import type { Transact, TransactionStore } from '../../transaction-store.js'
import { CallerStatements, callerOf, checkHome, transactionOf } from './handles.js'
import type { Home } from './handles.js'
import { callerQueries } from '../queries/caller-transactions.js'
import { sealGroup } from '../../verbs/groups.js'
import { insertSequence } from '../../verbs/sequences.js'
import { sendEvent } from '../../verbs/workflows.js'
import type { NewEvent, Sent } from '../../workflows.js'
import { runVerb } from '../../verbs/verb.js'
import { JobSession } from '../verbs/job-session.js'
import type { GroupSeal } from '../../groups.js'
import { isBusy, isStale, SQLITE, sqliteCode } from '../connection/driver.js'
import type { SqliteDatabase, Statements } from '../connection/driver.js'
import { translate } from '../connection/faults.js'
import { openSame } from '../file/file-identity.js'
import { insertJobs } from '../verbs/insert.js'
import { keepingOpen, KeptHandle } from './kept-handle.js'
import { KyselyTransactions } from './kysely.js'
import type { OpenedFile } from '../connection/open.js'
import type { Queries } from '../queries/queries.js'
import { Session } from '../connection/session.js'
import { settleJobs } from '../verbs/settle.js'
import { checkHeld, checkStillOpen, refuseLater, takeWriteLock } from './check-open.js'

/** After this long the log says that the file is never free. */
const BUSY_LIMIT_MS = 60_000
const BUSY_STEP_MAX_MS = 20

export interface TransactionParts {
  readonly file: OpenedFile
  readonly world: World
  readonly queries: Queries
  readonly durability: 'power' | 'process'
  /** The database's clock. */
  readonly now: () => number
  /** Why new writes are refused, if they are: the disk is full. */
  readonly refusal: () => Error | undefined
  /** Jobs were written on this handle, and its owner may commit them. */
  readonly expectCommit: (handle: SqliteDatabase) => void
  /** A transaction of the store was committed. */
  readonly committed: () => void
}

/** The store's writes inside transactions outside of the commit queue: the caller's, or one opened for a handler. */
export class SqliteTransactions implements TransactionStore {
  readonly answersLater = false
  readonly #parts: TransactionParts
  readonly #home: Home
  readonly #kysely: KyselyTransactions
  /**
   * Checked handles, with our statements on them. The owner of a handle decides its lifetime: this map does not keep it
   * alive.
   */
  #known = new WeakMap<SqliteDatabase, Statements>()
  /** The connection for `transact`, when the user gave none. */
  readonly #kept: KeptHandle
  #closed = false

  constructor(parts: TransactionParts) {
    const { path, database, library, given } = parts.file
    this.#parts = parts
    this.#home = { name: path, library: library.open, only: path === ':memory:' ? database : undefined }
    this.#kysely = new KyselyTransactions(given, parts.world.random)
    this.#kept = new KeptHandle(
      () => openSame(parts.file.identity, () => new library.open(path)),
      callerQueries.settings(parts.durability === 'power' ? 'full' : 'normal'),
    )
  }

  insertJobsIn(
    tx: unknown,
    jobs: readonly NewJob[],
    options: InsertOptions,
  ): readonly Inserted[] | Promise<readonly Inserted[]> {
    const refusal = this.#parts.refusal()
    if (refusal !== undefined) throw refusal
    return this.#inCaller(tx, (session, now) => insertJobs(session, jobs, options, now))
  }

  insertSequenceIn(tx: unknown, sequence: NewSequence): Inserted | Promise<Inserted> {
    const refusal = this.#parts.refusal()
    if (refusal !== undefined) throw refusal
    return this.#inCaller(tx, (session, now) => runVerb(insertSequence(new JobSession(session, now), sequence)))
  }

  sendEventIn(tx: unknown, event: NewEvent): Sent | Promise<Sent> {
    return this.#inCaller(tx, (session, now) => runVerb(sendEvent(new JobSession(session, now), event)))
  }

  sealGroupIn(tx: unknown, seal: GroupSeal): boolean | Promise<boolean> {
    return this.#inCaller(tx, (session, now) => runVerb(sealGroup(new JobSession(session, now), seal)))
  }

  settleJobIn(tx: unknown, settled: SettledJob): boolean | Promise<boolean> {
    return this.#inCaller(tx, (session, now) => settleJobs(session, [settled], [], now).refused.length === 0)
  }

  guarded<T>(tx: unknown, call: (sync: boolean) => T): T {
    if (this.#closed) throw new ClosedError()
    const caller = callerOf(tx)
    if (!('handle' in caller)) return call(false)
    const statements = this.#openStatements(caller.handle)
    this.#ours(() => statements.of(callerQueries.outerSavepoint).run())
    try {
      const result = call(true)
      checkStillOpen(caller.handle, 'a hook')
      this.#ours(() => statements.of(callerQueries.outerRelease).run())
      return result
    } catch (error) {
      this.#undo(statements, callerQueries.outerRollbackTo, callerQueries.outerRelease)
      throw error
    }
  }

  async transact<T>(request: Transact<T>): Promise<T> {
    const { timers, clock, random } = this.#parts.world
    const start = clock.monotonic()
    for (;;) {
      if (this.#closed) throw new ClosedError()
      const stopped = request.stopped()
      if (stopped !== undefined) throw stopped
      this.#parts.file.identity?.verifyIfDue()
      const done = this.#tryOwn(request)
      if (done !== undefined) return done.value
      const waited = clock.monotonic() - start
      if (waited > BUSY_LIMIT_MS)
        throw new TransactionError(
          'E_TX_BUSY',
          `${this.#home.name} was locked by other connections for a minute; nothing was written`,
        )
      await new Promise<void>((next) =>
        timers.after(0.5 + random() * Math.min(BUSY_STEP_MAX_MS, 1 + waited / 10), next),
      )
    }
  }

  close(): void {
    this.#closed = true
    this.#kept.drop()
  }

  #inCaller<T>(tx: unknown, work: (session: Session, now: number) => T): T | Promise<T> {
    if (this.#closed) throw new ClosedError()
    this.#parts.file.identity?.verify()
    const caller = callerOf(tx)
    if ('handle' in caller) return this.#write(caller.handle, work)
    return this.#kysely.within(caller.kysely, (handle) => this.#write(handle, work))
  }

  #write<T>(handle: SqliteDatabase, work: (session: Session, now: number) => T): T {
    const result = this.#whole(this.#openStatements(handle), work)
    this.#parts.expectCommit(handle)
    return result
  }

  /** Our statements on a handle that is in a transaction; throws when it is not. */
  #openStatements(handle: SqliteDatabase): Statements {
    const statements = this.#statementsOn(handle)
    if (transactionOf(handle) === 'open') return statements
    throw new TransactionError(
      'E_TX_NOT_OPEN',
      'tx has no open transaction: begin one first, and pass the handle while it is open; or enqueue without tx',
    )
  }

  /** All of a work or nothing. Its caches are dropped with its session, because the caller may roll back. */
  #whole<T>(statements: Statements, work: (session: Session, now: number) => T): T {
    // Not as a prepared statement: libsql leaves a failed one in progress, and then no savepoint can be opened any
    // more.
    this.#ours(() => takeWriteLock(statements.database))
    try {
      statements.of(callerQueries.savepoint).run()
      const result = work(new Session(statements, this.#parts.queries), this.#parts.now())
      statements.of(callerQueries.release).run()
      return result
    } catch (error) {
      this.#undo(statements, callerQueries.rollbackTo, callerQueries.release)
      throw this.#translate(error)
    }
  }

  #undo(statements: Statements, rollbackTo: string, release: string): void {
    try {
      statements.of(rollbackTo).run()
      statements.of(release).run()
    } catch {
      // There is no savepoint: it was never created, or SQLite has ended the whole transaction.
    }
  }

  /** Our statements on a handle, which is checked the first time. */
  #statementsOn(handle: SqliteDatabase): Statements {
    const known = this.#known.get(handle)
    if (known !== undefined && isAlive(known)) return known
    this.#ours(() => checkHome(handle, this.#home))
    const statements = new CallerStatements(handle)
    statements.of(callerQueries.files).all()
    this.#known.set(handle, statements)
    return statements
  }

  /** On the user's own handle if there is one, so that `tx` is the object the user already works with. */
  #tryOwn<T>(request: Transact<T>): { readonly value: T } | undefined {
    const { given, database, path } = this.#parts.file
    if (given !== undefined) return this.#tryTransact(given, request)
    if (path === ':memory:') return this.#tryTransact(database, request)
    try {
      const done = this.#tryTransact(this.#kept.take(), request)
      this.#kept.putBack()
      return done
    } catch (error) {
      this.#kept.drop()
      throw error
    }
  }

  /**
   * From begin to commit synchronously, so that no other write comes between. Undefined: the write lock is not free
   * yet.
   */
  #tryTransact<T>(handle: SqliteDatabase, request: Transact<T>): { readonly value: T } | undefined {
    const statements = this.#statementsOn(handle)
    if (!this.#begin(handle, statements)) return undefined
    try {
      const value = this.#workAndSettle(handle, new Session(statements, this.#parts.queries), request)
      this.#ours(() => statements.of(callerQueries.commit).run())
      this.#parts.file.identity?.verify()
      this.#parts.committed()
      return { value }
    } catch (error) {
      if (transactionOf(handle) === 'open') this.#ours(() => statements.of(callerQueries.rollback).run())
      throw error
    }
  }

  #begin(handle: SqliteDatabase, statements: Statements): boolean {
    if (transactionOf(handle) === 'open') return false
    const { timeout } = statements.of(callerQueries.busyTimeout).get() as { timeout: number }
    try {
      // Wait by timer: the driver's own wait would block the event loop.
      handle.exec(callerQueries.setBusyTimeout(0))
      handle.exec(callerQueries.beginNow)
      return true
    } catch (error) {
      if (isBusy(error)) return false
      throw this.#translate(error)
    } finally {
      handle.exec(callerQueries.setBusyTimeout(timeout))
    }
  }

  #workAndSettle<T>(handle: SqliteDatabase, session: Session, { claim, work, settle }: Transact<T>): T {
    const { holdsClaim } = session.queries
    if (this.#ours(() => session.statement(holdsClaim).get(claim.ref, claim.fence)) === undefined)
      throw new LeaseLostError('ctx.transaction()')
    this.#ours(() => handle.exec(callerQueries.holdWork))
    const value = keepingOpen(handle, () => work(handle))
    refuseLater(value)
    checkHeld(handle)
    const settled = settle(value)
    if (this.#ours(() => settleJobs(session, [settled], [], this.#parts.now())).refused.length > 0)
      throw new LeaseLostError('ctx.transaction()')
    return value
  }

  /** Translates only errors of our own statements: errors of the user's function pass unchanged. */
  #ours<T>(run: () => T): T {
    try {
      return run()
    } catch (error) {
      throw this.#translate(error)
    }
  }

  #translate(error: unknown): unknown {
    if (isStale(error))
      return new TransactionError(
        'E_TX_STALE',
        'tx began by reading and others have written since, so it can no longer write; begin it with "begin immediate", or try it again',
        { cause: error },
      )
    if (isBusy(error))
      return new TransactionError(
        'E_TX_BUSY',
        `${this.#home.name} is being written by another connection, and tx did not get its turn; try the transaction again, or give its handle a busy_timeout`,
        { cause: error },
      )
    if (sqliteCode(error) === SQLITE.readOnly)
      return new TransactionError(
        'E_TX_READ_ONLY',
        `tx cannot write: its handle was opened read-only, or has "pragma query_only" on, or the file is; pass a handle that may write ${this.#home.name}`,
        { cause: error },
      )
    // A full disk is not recorded here: it may be a limit of this connection, and the store's next write finds out.
    return translate(error, this.#home.name)
  }
}

/** A handle that was closed and opened again has lost its statements: one of them shows it. */
function isAlive(statements: Statements): boolean {
  if (transactionOf(statements.database) === 'closed') return false
  try {
    statements.of(callerQueries.files).all()
    return true
  } catch {
    return false
  }
}
