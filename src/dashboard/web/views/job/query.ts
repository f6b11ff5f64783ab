import type { Route } from '../../route.js'

export function topics(route: Route): readonly string[] {
  return route.id === undefined ? [] : [`job:${route.id}`]
}
