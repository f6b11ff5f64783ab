import { UPCOMING_SPANS } from '../../../protocol.js'
import type { UpcomingSpan } from '../../../protocol.js'
import type { Route } from '../../route.js'

export function upcomingSpan({ query }: Pick<Route, 'query'>): UpcomingSpan {
  return UPCOMING_SPANS.find((span) => span === query['span']) ?? '24h'
}

export function topics(route: Route): readonly string[] {
  return [`upcoming:${upcomingSpan(route)}`]
}
