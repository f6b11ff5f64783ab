import { SORTS } from '../../../protocol.js'
import type { Sort } from '../../../protocol.js'
import type { Route } from '../../route.js'

export function sortOf({ query }: Pick<Route, 'query'>): Sort {
  return SORTS.find((sort) => sort === query['sort']) ?? 'newest'
}

/** The first page of a search; the workflows page is the same, of workflows only. */
export function listTopic(route: Route): string {
  const kind = route.page === 'workflows' ? 'workflows' : 'list'
  return `${kind}:${sortOf(route)}:${route.query['q'] ?? ''}`
}

export function topics(route: Route): readonly string[] {
  return [listTopic(route)]
}
