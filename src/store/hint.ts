import type { Hint } from './store.js'

/** Nothing has changed. */
export const QUIET: Hint = { ready: false, dueInMs: null, settled: false, requested: false }

/** Both as one. */
export function mergeHints(hint: Hint, more: Partial<Hint>): Hint {
  const dueInMs = more.dueInMs ?? null
  return {
    ready: hint.ready || more.ready === true,
    dueInMs: hint.dueInMs === null || dueInMs === null ? (hint.dueInMs ?? dueInMs) : Math.min(hint.dueInMs, dueInMs),
    settled: hint.settled || more.settled === true,
    requested: hint.requested || more.requested === true,
  }
}
