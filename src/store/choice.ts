import type { World } from '../world/world.js'
import type { Migrations } from './migrations.js'
import type { Store } from './store.js'

export const STORE_CHOICE = Symbol.for('millrace.store')

/** Which store to use, chosen and not opened yet: what `sqlite(…)` and `postgres(…)` give. */
export interface StoreChoice {
  readonly [STORE_CHOICE]: true
  open(world: World, autoMigrate: boolean): Promise<Store>
  /** Its tables without the rest; a store that a test made has none. */
  readonly migrations?: Migrations
}

export function isStoreChoice(value: unknown): value is StoreChoice {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[STORE_CHOICE] === true
}
