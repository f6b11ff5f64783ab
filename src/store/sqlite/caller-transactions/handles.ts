import { show } from '../../../codec/show.js'
import { StoreError, TransactionError } from '../../../errors.js'
import { callerQueries } from '../queries/caller-transactions.js'
import { isHandle, sqliteCode, Statements } from '../connection/driver.js'
import type { SqliteConstructor, SqliteDatabase, SqliteStatement } from '../connection/driver.js'
import { libraryOf } from '../connection/library.js'
import { identify } from '../connection/one-library.js'

/**
 * Recognises the library of a `tx` by its shape, since no driver and no query builder is a dependency:
 *
 *   a handle   prepare and exec: node:sqlite, @photostructure/sqlite, better-sqlite3, libsql
 *   Drizzle    a transaction has its handle at `session.client`, a database also at `$client`
 *   Kysely     does not expose its handle; see kysely.ts
 */
export type Caller = { readonly handle: SqliteDatabase } | { readonly kysely: Kysely }

/** The part of Kysely that the store calls. */
export interface Kysely {
  readonly isTransaction: boolean
  getExecutor(): unknown
  executeQuery(query: object): Promise<{ readonly rows: readonly unknown[] }>
}

export function callerOf(tx: unknown): Caller {
  if (isHandle(tx)) return { handle: tx }
  const given = Object(tx) as { session?: { client?: unknown }; $client?: unknown }
  for (const inner of [given.session?.client, given.$client]) if (isHandle(inner)) return { handle: inner }
  if (isKysely(tx)) return { kysely: tx }
  throw new TransactionError(
    'E_TX_UNKNOWN',
    `tx must be an open SQLite handle (node:sqlite, better-sqlite3, libsql, @photostructure/sqlite), or a Drizzle or Kysely ` +
      `transaction on one, got ${describe(tx)}`,
  )
}

function isKysely(tx: unknown): tx is Kysely {
  const given = Object(tx) as Partial<Kysely>
  return typeof given.executeQuery === 'function' && typeof given.getExecutor === 'function'
}

function describe(tx: unknown): string {
  if (typeof tx !== 'object' && typeof tx !== 'function') return show(tx)
  const given = Object(tx) as { query?: unknown; unsafe?: unknown; execute?: unknown; batch?: unknown }
  if (typeof given.query === 'function' || typeof given.unsafe === 'function')
    return 'what looks like a PostgreSQL client, and this store is an SQLite file'
  if (typeof given.execute === 'function' && typeof given.batch === 'function')
    return 'what looks like an asynchronous client (@libsql/client), which cannot write within the call; use a synchronous handle such as that of the package libsql'
  return show(tx)
}

/**
 * Whether a handle is in a transaction. A closed handle is detected first: libsql ends the process when it is queried
 * then.
 */
export function transactionOf(handle: SqliteDatabase): 'open' | 'none' | 'closed' {
  const flags = handle as { open?: unknown; isOpen?: unknown; isTransaction?: unknown; inTransaction?: unknown }
  if (flags.open === false || flags.isOpen === false) return 'closed'
  try {
    const inside = flags.isTransaction ?? flags.inTransaction
    if (typeof inside === 'boolean') return inside ? 'open' : 'none'
    // The first versions of node:sqlite have no such property; a `begin` shows it.
    handle.exec(callerQueries.begin)
    handle.exec(callerQueries.rollback)
    return 'none'
  } catch (error) {
    return sqliteCode(error) === undefined ? 'closed' : 'open'
  }
}

/** The file and the library that a caller's handle must belong to. */
export interface Home {
  readonly name: string
  readonly library: SqliteConstructor
  /** The store's only connection, when no other can reach the database. */
  readonly only: SqliteDatabase | undefined
}

/**
 * Refuses a handle that is closed, of another library, or on another file. A handle that passed once is not checked
 * again.
 */
export function checkHome(handle: SqliteDatabase, home: Home): void {
  if (transactionOf(handle) === 'closed')
    throw new TransactionError('E_TX_CLOSED', 'tx is a handle that was closed; open one, and begin a transaction on it')
  if (handle === home.only) return
  if (!isOfLibrary(handle, home.library))
    throw new StoreError(
      'E_TWO_LIBRARIES',
      `tx is a handle of another SQLite library (${nameOf(handle)}) than the store's (${home.library.name}), and two libraries in one ` +
        `process lose each other’s locks on ${home.name}; make the mill with your library’s handle: millrace({ store: sqlite(db) })`,
    )
  const file = mainFile(handle)
  if (home.only !== undefined)
    throw new TransactionError(
      'E_TX_OTHER_FILE',
      `tx is on ${file === '' ? 'a database in memory of its own' : file}, and the store is in memory, where only its own handle ` +
        'reaches it; make the mill with that handle: millrace({ store: sqlite(db) })',
    )
  if (file !== '' && identify(file) === identify(home.name)) return
  throw new TransactionError(
    'E_TX_OTHER_FILE',
    `tx is on ${file === '' ? 'a database in memory' : file} and the jobs are in ${home.name}: one transaction spans one file; ` +
      'open the mill on the file of your data, or enqueue without tx',
  )
}

/** By prototype, because a user may extend the library's class. */
function isOfLibrary(handle: SqliteDatabase, library: SqliteConstructor): boolean {
  const own = libraryOf(handle).open
  if (own === library || isBelow(handle, library)) return true
  return own.name !== 'Object' && isBelow(library.prototype, own)
}

function isBelow(value: unknown, library: SqliteConstructor): boolean {
  return (
    typeof library.prototype === 'object' && Object.prototype.isPrototypeOf.call(library.prototype, value as object)
  )
}

function nameOf(handle: SqliteDatabase): string {
  return libraryOf(handle).module ?? handle.constructor.name
}

function mainFile(handle: SqliteDatabase): string {
  const list = new CallerStatements(handle).of(callerQueries.files).all() as { name: string; file: string | null }[]
  return list.find((each) => each.name === 'main')?.file ?? ''
}

/**
 * The store's statements on the caller's connection. They name the schema, so that no temporary table of the same name
 * is used, and they read numbers and rows as the store does, whatever defaults the handle has. Columns have names by
 * "as", because the connection may have full_column_names on.
 */
export class CallerStatements extends Statements {
  protected override prepare(sql: string): SqliteStatement {
    // An index is named without its schema.
    const named = sql.replaceAll(/(?<!indexed by )millrace_/g, 'main.millrace_')
    const statement: SqliteStatement & StatementSettings = super.prepare(named)
    statement.safeIntegers?.(false)
    statement.setReadBigInts?.(false)
    statement.setReturnArrays?.(false)
    return statement
  }
}

interface StatementSettings {
  safeIntegers?(on: boolean): unknown
  setReadBigInts?(on: boolean): unknown
  setReturnArrays?(on: boolean): unknown
}
