import type { Route } from '../../route.js'

/** All recurring jobs, and the ledger of the one that is open. */
export function topics(route: Route): readonly string[] {
  return route.id === undefined ? ['recurring'] : ['recurring', `recurring:${route.id}`]
}
