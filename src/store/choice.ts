import type { World } from '../world/world.js'
import type { Migrations } from './migrations.js'
import type { Store } from './store.js'

export const STORE_CHOICE = Symbol.for('millrace.store')

/** The store to use, chosen but not opened: the return value of `sqlite(…)` and `postgres(…)`. */
export interface StoreChoice {
  readonly [STORE_CHOICE]: true
  open(world: World, autoMigrate: boolean): Promise<Store>
  /** Migrates the tables without opening the store; absent for a store that a test built. */
  readonly migrations?: Migrations
}

export function isStoreChoice(value: unknown): value is StoreChoice {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[STORE_CHOICE] === true
}
