/**
 * The part of a SQLite driver that the store calls, described structurally: node:sqlite, @photostructure/sqlite,
 * better-sqlite3 and libsql all fit it, and no driver's types are imported.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
}

/**
 * An open handle of an app. Its statements are not typed here, because better-sqlite3 types them by their parameters.
 */
export interface SqliteHandle {
  exec(sql: string): unknown
  prepare(sql: string): unknown
  close(): unknown
}

export interface SqliteStatement {
  run(...values: SqliteValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown[]
}

/** A statement that returns rows as arrays, in the order of its columns. */
export interface RowStatement {
  all(...values: SqliteValue[]): unknown[]
}

export type SqliteValue = null | number | bigint | string | Uint8Array
export type SqliteConstructor = new (path: string) => SqliteDatabase

/** The primary result codes of SQLite that the store distinguishes. */
export const SQLITE = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const

const CODE_BY_NAME: { readonly [name: string]: number } = {
  SQLITE_BUSY: SQLITE.busy,
  SQLITE_LOCKED: SQLITE.locked,
  SQLITE_READONLY: SQLITE.readOnly,
  SQLITE_IOERR: SQLITE.ioError,
  SQLITE_CORRUPT: SQLITE.corrupt,
  SQLITE_FULL: SQLITE.full,
  SQLITE_CANTOPEN: SQLITE.cannotOpen,
  SQLITE_NOTADB: SQLITE.notADatabase,
}

/** The primary result code of an error of any driver, or undefined when it is not an error of SQLite. */
export function sqliteCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const given = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  for (const code of [given.errcode, given.rawCode]) if (typeof code === 'number') return code & 0xff
  if (typeof given.code !== 'string') return undefined
  // better-sqlite3 reports extended names such as SQLITE_BUSY_SNAPSHOT and SQLITE_IOERR_WRITE.
  for (const [name, code] of Object.entries(CODE_BY_NAME)) if (given.code.startsWith(name)) return code
  return undefined
}

/** An error of the whole file, not of one statement. */
export function isFileError(error: unknown): boolean {
  const code = sqliteCode(error)
  return code !== undefined && Object.values<number>(SQLITE).includes(code)
}

/** The transaction began with a read, and another connection has written since: it can never write. */
export function isStale(error: unknown): boolean {
  const given = Object(error) as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  return [given.errcode, given.rawCode].includes(BUSY_SNAPSHOT) || given.code === 'SQLITE_BUSY_SNAPSHOT'
}
const BUSY_SNAPSHOT = 517

/** The connection's snapshot is from before the store created its tables. */
export function isBeforeTables(error: unknown): boolean {
  return error instanceof Error && /no such table: (main\.)?millrace_/.test(error.message)
}

/** Any object with the two methods that every synchronous driver has. */
export function isHandle(value: unknown): value is SqliteDatabase {
  const given = value as { prepare?: unknown; exec?: unknown } | null
  return typeof value === 'object' && typeof given?.prepare === 'function' && typeof given.exec === 'function'
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === SQLITE.busy || code === SQLITE.locked
}

/**
 * Prepared statements by their text. They are kept with their database, because not every driver keeps it alive for
 * them.
 */
export class Statements {
  readonly database: SqliteDatabase
  readonly #prepared = new Map<string, SqliteStatement>()
  readonly #rows = new Map<string, RowStatement>()
  constructor(database: SqliteDatabase) {
    this.database = database
  }
  of(sql: string): SqliteStatement {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }
  /** For reads of hundreds of rows: a row as an object costs twice what an array does. */
  rowsOf(sql: string): RowStatement {
    let statement = this.#rows.get(sql)
    if (statement === undefined) {
      statement = asRows(this.prepare(sql))
      this.#rows.set(sql, statement)
    }
    return statement
  }
  /** Drops the statements: some libraries keep a closed file open while a statement of it exists. */
  clear(): void {
    this.#prepared.clear()
    this.#rows.clear()
  }
  protected prepare(sql: string): SqliteStatement {
    return this.database.prepare(sql)
  }
}

/** Every driver has its own switch for this; for a driver without one, the values of its row objects are used. */
function asRows(statement: SqliteStatement): RowStatement {
  const able = statement as { setReturnArrays?: (on: boolean) => void; raw?: (on: boolean) => unknown }
  if (typeof able.setReturnArrays === 'function') able.setReturnArrays(true)
  else if (typeof able.raw === 'function') able.raw(true)
  else return { all: (...values) => statement.all(...values).map((row) => Object.values(row as object)) }
  return statement as RowStatement
}

/** Text unchanged; bytes as a Uint8Array, whatever type a driver returns. */
export function toEncoded(value: unknown): string | Uint8Array {
  return typeof value === 'string' || value instanceof Uint8Array ? value : new Uint8Array(value as ArrayBuffer)
}
