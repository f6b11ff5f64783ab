import { FAILURE_SPANS } from '../../../protocol.js'
import type { FailureSpan } from '../../../protocol.js'
import type { Route } from '../../route.js'

export function failureSpan({ query }: Pick<Route, 'query'>): FailureSpan {
  return FAILURE_SPANS.find((span) => span === query['span']) ?? '24h'
}

/** All error groups, or one of them. */
export function topics(route: Route): readonly string[] {
  return [route.id === undefined ? `failures:${failureSpan(route)}` : `failure:${route.id}`]
}
