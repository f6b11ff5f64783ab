import { show } from '../codec/show.js'
import type { Check } from '../job/definition/check-fields.js'
import { isStoreChoice } from '../store/choice.js'
import { isPool } from '../store/postgres/connection/target.js'

/** Accepts what can name a store. For a value that resembles one, the error says what to pass instead. The store's driver checks the rest. */
export const isStore: Check = (value) => {
  if (typeof value === 'string' && value.trim() !== '') return undefined
  // A library's handle is an instance of a class and may have only private fields, so no field is required here.
  const cannotBeStore = value instanceof Promise || value instanceof Map || Array.isArray(value)
  if (typeof value !== 'object' || value === null || cannotBeStore)
    return `must be a path, ":memory:", a postgres:// URL, sqlite(…) or postgres(…), got ${show(value)}`
  return isStoreChoice(value) ? undefined : insteadOf(value)
}

const POSTGRES = 'postgres(pool), from "millrace/postgres"'

function insteadOf(value: object): string | undefined {
  if (isPool(value)) return `must be ${POSTGRES}, got the pool itself`
  const given = value as Record<'connect' | 'query' | 'url' | 'connectionString', unknown>
  if (typeof given.connect === 'function' && typeof given.query === 'function')
    return `must be a postgres:// URL or ${POSTGRES}, got one connection: Millrace makes connections of its own`
  if (value instanceof URL) return 'must be the URL as a text, got a URL object; pass url.href'
  if (typeof given.url === 'string' || typeof given.connectionString === 'string')
    return `must be the postgres:// URL itself, or ${POSTGRES}, got ${show(value)} that has it`
  return undefined
}
