import type { Due } from '../store.js'

/** The order of jobs in a lane, the same on both stores. */

/** Ten minutes of waiting weigh as much as one point of priority, so that low priority never starves. */
export const PRIORITY_STEP_MS = 600_000

/** The sort key in a lane: the due time, moved by priority. */
export function sortOf(dueAt: number, priority: number): number {
  return dueAt - priority * PRIORITY_STEP_MS
}

export function instant(due: Due, now: number): number {
  return 'at' in due ? due.at : now + due.inMs
}
