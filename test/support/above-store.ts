import { describe } from 'vitest'
import { inMatrix, onPostgres } from './fresh-store.js'

/** Behaviour of code above the store: on PostgreSQL only the matrix repeats it, which names the programs of its servers. */
export function describeAboveStore(name: string, define: () => void): void {
  if (!onPostgres || inMatrix) describe(name, define)
}
