import { TransactionError } from '../../errors.js'
import type { Kysely } from './caller.js'
import { callerQueries } from './caller-queries.js'
import type { SqliteDatabase } from './driver.js'

/**
 * Kysely gives its handle to nobody, so its transactions are taken only when they are on the handle that the mill was made
 * with, and that is asked of SQLite itself: a mark that belongs to one connection is set through the handle and read back
 * through the transaction. What answers with the mark is that connection, and then our rows are written through the handle.
 */
export class KyselyDoor {
  readonly #handle: SqliteDatabase | undefined
  readonly #random: () => number
  /** One question at a time: two marks at once would be taken for a stranger's. */
  #asking: Promise<unknown> = Promise.resolve()

  constructor(handle: SqliteDatabase | undefined, random: () => number) {
    this.#handle = handle
    this.#random = random
  }

  /** The handle this transaction is on. */
  async open(trx: Kysely): Promise<SqliteDatabase> {
    if (!trx.isTransaction)
      throw new TransactionError(
        'E_TX_NOT_OPEN',
        'tx is a Kysely database that is not in a transaction; pass the trx of db.transaction().execute(async (trx) => …)',
      )
    const handle = this.#handle
    const asked = this.#asking.then(() => handle !== undefined && this.#isOn(trx, handle))
    this.#asking = asked.catch(() => false) // Whoever asked has the error; the next question must still come.
    if (handle !== undefined && (await asked)) return handle
    throw new TransactionError(
      'E_TX_UNREACHABLE',
      'tx is a Kysely transaction on a connection that Kysely does not show; make the mill with the handle that you give to Kysely: ' +
        'millrace({ store: sqlite(db) }) beside new SqliteDialect({ database: db })',
    )
  }

  async #isOn(trx: Kysely, handle: SqliteDatabase): Promise<boolean> {
    const mark = 1 + Math.floor(this.#random() * 2 ** 30)
    const before = onlyValue([handle.prepare(callerQueries.mark).get()])
    handle.exec(callerQueries.setMark(mark))
    try {
      return onlyValue((await trx.executeQuery(plainQuery(callerQueries.mark))).rows) === mark
    } catch (error) {
      throw new TransactionError('E_TX_NOT_OPEN', 'tx is a Kysely transaction that cannot be used; has it ended?', {
        cause: error,
      })
    } finally {
      handle.exec(callerQueries.setMark(before))
    }
  }
}

/** A plugin may have renamed the column, and a handle may read numbers as BigInt or rows as arrays. */
function onlyValue(rows: readonly unknown[]): number {
  return Number(Object.values(Object(rows[0]) as object)[0])
}

/** What Kysely's own CompiledQuery.raw makes. */
function plainQuery(sql: string): object {
  return {
    sql,
    parameters: [],
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: 'millrace' },
  }
}
