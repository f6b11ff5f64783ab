import type { Hint } from './store.js'

/** Nothing to tell. */
export const QUIET: Hint = { ready: false, dueInMs: null, settled: false, requested: false }
