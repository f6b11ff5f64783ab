import type { Registry } from '../job/definition/registry.js'
import type { Store } from '../store/store.js'
import type { World } from '../world/world.js'

/** How `millrace/testing` and the command line reach the parts of a mill; no public name. */
export const INTERNALS = Symbol('millrace.internals')

export interface MillInternals {
  readonly store: Store
  readonly registry: Registry
  readonly world: World
}

export function internalsOf(mill: object): MillInternals | undefined {
  return (mill as { readonly [INTERNALS]?: MillInternals })[INTERNALS]
}
