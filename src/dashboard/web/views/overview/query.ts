import { SPANS } from '../../../protocol.js'
import type { Span } from '../../../protocol.js'
import type { Route } from '../../route.js'

/** The time range of a page: an hour, unless the route has another. */
export function spanOf({ query }: Pick<Route, 'query'>): Span {
  const given = query['span'] ?? ''
  return Object.hasOwn(SPANS, given) ? (given as Span) : '1h'
}

export function topics(route: Route): readonly string[] {
  return [`overview:${spanOf(route)}`]
}
