import pg from 'pg'
import { schemaOf } from '../../src/store/postgres/connection/target.js'
import type { SqliteDatabase } from '../../src/store/sqlite/connection/driver.js'
import { chooseLibrary } from '../../src/store/sqlite/connection/library.js'
import { onPostgres } from './fresh-store.js'

/** Reads and changes a store behind the engine's back. */
export interface RawTables {
  /** Every column of every row of every table, as one text; bytes also as the text that they may hold. */
  text(): Promise<string>
  /** The tables are named as on PostgreSQL: `jobs`, without the prefix that SQLite has. */
  run(statement: (table: (name: string) => string) => string): Promise<void>
  read<Row>(query: (table: (name: string) => string) => string): Promise<Row[]>
}

export function rawTables(store: string): RawTables {
  return onPostgres ? postgresTables(store) : sqliteTables(store)
}

/** With the library that the store uses: two in one process would drop each other's locks. */
function sqliteTables(file: string): RawTables {
  const { open: Database } = chooseLibrary()
  const open = <T>(call: (database: SqliteDatabase) => T): T => {
    const database = new Database(file)
    try {
      return call(database)
    } finally {
      database.close()
    }
  }
  return {
    text: async () =>
      open((database) => {
        const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
        return (tables as { name: string }[])
          .map(({ name }) => textOf(database.prepare(`select * from "${name}"`).all()))
          .join('\n')
      }),
    run: async (statement) => open((database) => void database.exec(statement((name) => `millrace_${name}`))),
    read: async <Row>(query: Parameters<RawTables['read']>[0]) =>
      open((database) => database.prepare(query((name) => `millrace_${name}`)).all() as Row[]),
  }
}

function postgresTables(store: string): RawTables {
  const { where, schema } = schemaOf(store)
  const open = async <T>(call: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client(where as string)
    await client.connect()
    try {
      return await call(client)
    } finally {
      await client.end()
    }
  }
  return {
    text: () =>
      open(async (client) => {
        const { rows } = await client.query<{ table_name: string }>(
          'select table_name from information_schema.tables where table_schema = $1',
          [schema],
        )
        const texts: string[] = []
        for (const { table_name: name } of rows)
          texts.push(textOf((await client.query(`select * from "${schema}"."${name}"`)).rows))
        return texts.join('\n')
      }),
    run: (statement) => open(async (client) => void (await client.query(statement((name) => `"${schema}"."${name}"`)))),
    read: <Row>(query: Parameters<RawTables['read']>[0]) =>
      open(async (client) => (await client.query(query((name) => `"${schema}"."${name}"`))).rows as Row[]),
  }
}

function textOf(rows: readonly unknown[]): string {
  return JSON.stringify(rows, (_, value: unknown) => {
    if (typeof value === 'bigint') return String(value)
    const bytes = value instanceof Uint8Array ? value : bufferOf(value)
    return bytes === undefined ? value : Buffer.from(bytes).toString('latin1')
  })
}

/** A Buffer reaches the replacer as what its toJSON returned. */
function bufferOf(value: unknown): Uint8Array | undefined {
  const { type, data } = Object(value) as { readonly type?: unknown; readonly data?: unknown }
  return type === 'Buffer' && Array.isArray(data) ? Uint8Array.from(data as number[]) : undefined
}
