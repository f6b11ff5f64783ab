import type { Hint } from './store.js'

/** A hint of no change. */
export const EMPTY_HINT: Hint = { ready: false, dueInMs: null, settled: false, requested: false }

/** The union of both hints. */
export function mergeHints(hint: Hint, more: Partial<Hint>): Hint {
  const dueInMs = more.dueInMs ?? null
  return {
    ready: hint.ready || more.ready === true,
    dueInMs: hint.dueInMs === null || dueInMs === null ? (hint.dueInMs ?? dueInMs) : Math.min(hint.dueInMs, dueInMs),
    settled: hint.settled || more.settled === true,
    requested: hint.requested || more.requested === true,
  }
}
