import { join } from 'node:path'
import { lendSchema } from './schema-pool.js'

let stores = 0

/**
 * A new store: a file in `folder`, or a schema of its own where the run is one on PostgreSQL. Behaviour is the
 * same on both, so the tests of behaviour get their store here.
 */
export function freshStore(folder: string, name?: string): string {
  const fresh = freshSchema()
  if (fresh !== undefined) return `${fresh.url}?schema=${fresh.schema}`
  stores += 1
  return join(folder, name ?? `${stores}.db`)
}

/** The same for jobs that are not read afterwards: in memory, where the run is one on SQLite. */
export function passingStore(): string {
  const fresh = freshSchema()
  return fresh === undefined ? ':memory:' : `${fresh.url}?schema=${fresh.schema}`
}

/** A schema without jobs in the database of this run; undefined where the run is one on SQLite. */
export function freshSchema(): { readonly url: string; readonly schema: string } | undefined {
  const url = process.env['MILLRACE_TEST_POSTGRES']
  if (url === undefined) return undefined
  return { url, schema: lendSchema() }
}

export const onPostgres = process.env['MILLRACE_TEST_POSTGRES'] !== undefined

/** The matrix runs every test on each PostgreSQL, and names the programs of its servers. */
export const inMatrix = Boolean(process.env['MILLRACE_POSTGRES_BIN'])

/** On PostgreSQL outside the matrix: what costs much there is done in a smaller number. */
export const isShort = onPostgres && !inMatrix

/** The warning of every mill on the tests' server, which does not flush, to be fast. */
export const UNFLUSHED = 'fsync is off: a crash of the machine can lose or damage everything; turn it on'
