import type { Route } from '../../route.js'
import { spanOf } from '../overview/query.js'

/** All queues, or one with its charts. */
export function topics(route: Route): readonly string[] {
  return [queueTopic(route)]
}

export function queueTopic(route: Route): string {
  return route.id === undefined ? 'queues' : `queue:${spanOf(route)}:${route.id}`
}
