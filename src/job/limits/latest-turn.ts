import { CLAIM_PACE_MS, STEPS_PER_WINDOW } from './limits.js'

/** The ready jobs that start before a job under the same limit or rate. */
export interface Ahead {
  readonly jobs: number
  /** What the heaviest of them uses of a rate. */
  readonly heaviest: number
  /** False: there are more than were counted. */
  readonly isAll: boolean
}

/** What is known of a limit that bounds a waiting job. */
export interface SlotUse {
  /** `queue mail`, `job send` or `job send for its key`. */
  readonly of: string
  readonly max: number
  readonly inFlight: number
  /** The ids of some of the jobs that have its slots. */
  readonly holders: readonly string[]
  readonly ahead: Ahead
}

/** What is known of a rate that bounds a waiting job. */
export interface RateUse {
  readonly of: string
  readonly max: number
  readonly perMs: number
  /** What the job uses. */
  readonly weight: number
  /** The starts in the window, and when they leave it. */
  readonly starts: readonly { readonly used: number; readonly until: number }[]
  readonly ahead: Ahead
}

/** What the rate has room for now. */
export function roomOf({ max, starts }: Pick<RateUse, 'max' | 'starts'>): number {
  return Math.max(0, max - starts.reduce((sum, { used }) => sum + used, 0))
}

/**
 * When the turn of a job under one rate is at the latest, while workers have slots and no job comes before it: the start of each
 * job frees its place one window later. A row of starts is counted until the last one of its step, and full rates are claimed
 * at a pace, so that each window adds as much. Undefined when not all jobs before it were counted.
 */
export function latestTurn(rate: RateUse, now: number): number | undefined {
  const { max, perMs, weight, ahead } = rate
  if (!ahead.isAll) return undefined
  const starts = rate.starts.toSorted((a, b) => a.until - b.until)
  const lagMs = Math.ceil(perMs / STEPS_PER_WINDOW) + CLAIM_PACE_MS
  const heaviest = Math.min(max, Math.max(weight, ahead.heaviest))
  if (heaviest > 1) {
    // Jobs of several weights leave gaps: so many start in each window, from when it is empty on.
    const windows = Math.floor(ahead.jobs / Math.floor(max / heaviest))
    return Math.max(now, starts.at(-1)?.until ?? now) + windows * (perMs + lagMs) + lagMs
  }
  const [windows, place] = [Math.floor(ahead.jobs / max), ahead.jobs % max]
  const free = roomOf(rate)
  const first = place < free ? now : nthEnd(starts, place - free, now)
  return first + windows * (perMs + lagMs) + (place < free ? 0 : lagMs)
}

function nthEnd(starts: RateUse['starts'], nth: number, now: number): number {
  let left = nth
  for (const { used, until } of starts) {
    if (left < used) return until
    left -= used
  }
  return now
}
