const FIRST_MS = 500
const LONGEST_MS = 15_000
/** By how much a wait varies, so that a thousand tabs do not come back at once. */
const SPREAD = 0.3

/** How long to wait before the next try: 0.5, 1, 2, 4 … 15 s, ± 30 %. `chance` is between 0 and 1. */
export function waitBefore(tries: number, chance: number): number {
  const even = Math.min(LONGEST_MS, FIRST_MS * 2 ** tries)
  return Math.round(even * (1 - SPREAD + 2 * SPREAD * chance))
}
