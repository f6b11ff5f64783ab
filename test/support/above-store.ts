import { describe } from 'vitest'
import { onPostgres } from './fresh-store.js'

/** Behaviour of code above the store: on PostgreSQL only the matrix repeats it, which names the programs of its servers. */
export function describeAboveStore(name: string, define: () => void): void {
  if (!onPostgres || process.env['MILLRACE_POSTGRES_BIN']) describe(name, define)
}
