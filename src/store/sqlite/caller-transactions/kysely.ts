import { TransactionError } from '../../../errors.js'
import { transactionOf } from './handles.js'
import type { Kysely } from './handles.js'
import { callerQueries } from '../queries/caller-transactions.js'
import type { SqliteDatabase } from '../connection/driver.js'

/**
 * Transactions of Kysely, which does not expose its handle and answers asynchronously. Only those on the handle that the mill was
 * made with are accepted. Two checks through SQLite itself:
 *
 *   the same connection?    a setting is written through the handle and read back through `trx`
 *   the same transaction?   a savepoint is made before the first await; it is gone once the transaction has ended
 *
 * Then the rows are written through the handle, synchronously.
 */
export class KyselyTransactions {
  readonly #handle: SqliteDatabase | undefined
  readonly #random: () => number
  /** The mark that is set while queries of it are in flight; all of them share it. */
  #mark: Mark | undefined
  /** The savepoint of the latest transaction that such a query came in. */
  #hold: Hold | undefined

  constructor(handle: SqliteDatabase | undefined, random: () => number) {
    this.#handle = handle
    this.#random = random
  }

  /** Writes through the handle of this transaction, in this transaction or not at all. */
  async within<T>(trx: Kysely, write: (handle: SqliteDatabase) => T): Promise<T> {
    if (!trx.isTransaction)
      throw new TransactionError(
        'E_TX_NOT_OPEN',
        'tx is a Kysely database that is not in a transaction; pass the trx of db.transaction().execute(async (trx) => …)',
      )
    const handle = this.#handle
    if (handle === undefined) throw unreachable()
    if (transactionOf(handle) === 'closed')
      throw new TransactionError(
        'E_TX_CLOSED',
        'the handle that the mill was made with, and that Kysely uses, was closed',
      )
    // All of this before the first await: after it the transaction may have ended.
    const mark = this.#setMark(handle)
    const hold = this.#holdOn(handle)
    try {
      if (!(await isOn(trx, mark.value))) throw unreachable()
      if (hold === undefined || !isOpen(handle, hold))
        throw new TransactionError(
          'E_TX_NOT_OPEN',
          'tx is a Kysely transaction that ended before anything was written; await the call within it',
        )
      return write(handle)
    } finally {
      this.#release(handle, mark, hold)
    }
  }

  #setMark(handle: SqliteDatabase): Mark {
    if (this.#mark === undefined) {
      const before = onlyValue([handle.prepare(callerQueries.mark).get()])
      this.#mark = { value: 1 + Math.floor(this.#random() * 2 ** 30), before, users: 0 }
      handle.exec(callerQueries.setMark(this.#mark.value))
    }
    this.#mark.users += 1
    return this.#mark
  }

  /** Undefined when no transaction is open: a savepoint would begin one. */
  #holdOn(handle: SqliteDatabase): Hold | undefined {
    if (transactionOf(handle) !== 'open') return undefined
    if (this.#hold === undefined || !isOpen(handle, this.#hold)) {
      this.#hold = { name: callerQueries.holdName(Math.floor(this.#random() * 2 ** 48)), users: 0 }
      handle.exec(callerQueries.hold(this.#hold.name))
    }
    this.#hold.users += 1
    return this.#hold
  }

  #release(handle: SqliteDatabase, mark: Mark, hold: Hold | undefined): void {
    mark.users -= 1
    if (mark.users === 0) this.#mark = undefined
    if (hold !== undefined) hold.users -= 1
    if (hold?.users === 0 && this.#hold === hold) this.#hold = undefined
    if (transactionOf(handle) === 'closed') return
    if (mark.users === 0) handle.exec(callerQueries.setMark(mark.before))
    if (hold?.users === 0) release(handle, hold)
  }
}

interface Mark {
  readonly value: number
  readonly before: number
  users: number
}

interface Hold {
  readonly name: string
  users: number
}

/** SQLite shows whether a savepoint exists only by releasing it, so it is created again. */
function isOpen(handle: SqliteDatabase, hold: Hold): boolean {
  if (transactionOf(handle) !== 'open' || !release(handle, hold)) return false
  handle.exec(callerQueries.hold(hold.name))
  return true
}

function release(handle: SqliteDatabase, hold: Hold): boolean {
  try {
    handle.exec(callerQueries.releaseHold(hold.name))
    return true
  } catch {
    return false // It ended with its transaction.
  }
}

async function isOn(trx: Kysely, mark: number): Promise<boolean> {
  try {
    return onlyValue((await trx.executeQuery(plainQuery(callerQueries.mark))).rows) === mark
  } catch (error) {
    throw new TransactionError('E_TX_NOT_OPEN', 'tx is a Kysely transaction that cannot be used; has it ended?', {
      cause: error,
    })
  }
}

function unreachable(): TransactionError {
  return new TransactionError(
    'E_TX_UNREACHABLE',
    'tx is a Kysely transaction on a connection that Kysely does not show; make the mill with the handle that you give to Kysely: ' +
      'millrace({ store: sqlite(db) }) beside new SqliteDialect({ database: db })',
  )
}

/** A plugin may have renamed the column, and a handle may read numbers as BigInt or rows as arrays. */
function onlyValue(rows: readonly unknown[]): number {
  return Number(Object.values(Object(rows[0]) as object)[0])
}

/** The object that Kysely's own CompiledQuery.raw creates. */
function plainQuery(sql: string): object {
  return {
    sql,
    parameters: [],
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: 'millrace' },
  }
}
