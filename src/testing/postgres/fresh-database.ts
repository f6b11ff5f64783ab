import { MillraceError } from '../../errors.js'
import { systemIds } from '../../world/ids.js'

/** A database of one's own in a server that is there. */
export interface FreshDatabase {
  readonly url: string
  /** Of the server: `18.4`. */
  readonly version: string
  /** Ends every session in it and removes it. */
  readonly drop: () => Promise<void>
}

/** Makes a database with a name of chance, beside the one that the address names. Needs the right to create databases. */
export async function createDatabase(server: string): Promise<FreshDatabase> {
  const name = `millrace_test_${systemIds().workerId()}`
  const [shown] = await ask(server, 'show server_version', `create database ${name}`)
  return {
    url: withDatabase(server, name),
    version: /^\S+/.exec(shown?.['server_version'] ?? '')?.[0] ?? 'unknown',
    drop: async () => void (await ask(server, `drop database if exists ${name} with (force)`)),
  }
}

/** The part of `pg` that is called here. */
interface Client {
  connect(): Promise<void>
  query(text: string): Promise<{ readonly rows: readonly Row[] }>
  end(): Promise<void>
}
type Row = Readonly<Record<string, string>>

/** Runs statements one after the other on a connection of their own; the first row of each. */
async function ask(url: string, ...statements: readonly string[]): Promise<(Row | undefined)[]> {
  const client = new (await loadClient())({ connectionString: url })
  try {
    await client.connect()
    const rows = []
    for (const statement of statements) rows.push((await client.query(statement)).rows[0])
    return rows
  } finally {
    await client.end()
  }
}

async function loadClient(): Promise<new (options: { connectionString: string }) => Client> {
  try {
    const { default: pg } = (await import('pg')) as unknown as {
      default: { Client: new (options: { connectionString: string }) => Client }
    }
    return pg.Client
  } catch (cause) {
    const message = 'the package pg is needed to reach a PostgreSQL server and is not installed; run `npm install pg`'
    throw new MillraceError('E_NO_PG', message, { cause })
  }
}

function withDatabase(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}
