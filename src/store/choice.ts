import type { World } from '../world/world.js'
import type { Store } from './store.js'

export const STORE_CHOICE = Symbol.for('millrace.store')

/** Which store to use, chosen and not opened yet: what `sqlite(…)` and `postgres(…)` give. */
export interface StoreChoice {
  readonly [STORE_CHOICE]: true
  open(world: World, autoMigrate: boolean): Promise<Store>
}

export function isStoreChoice(value: unknown): value is StoreChoice {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[STORE_CHOICE] === true
}
