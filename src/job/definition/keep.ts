import type { Duration, DurationText, IsoDurationText } from '../duration/duration.js'
import { parseDuration } from '../duration/duration.js'

/** How long finished jobs are kept: one duration for all, or one for each final state. Infinity keeps them for ever, 'none' keeps nothing. */
export type KeepOptions =
  | 'none'
  | number
  | DurationText
  | IsoDurationText
  | {
      readonly done?: Duration | number | undefined
      readonly cancelled?: Duration | number | undefined
      readonly failed?: Duration | number | undefined
    }

export interface KeepMs {
  readonly done: number
  readonly cancelled: number
  readonly failed: number
}

const DAY_MS = 86_400_000
export const KEEP_DEFAULTS: KeepMs = { done: 7 * DAY_MS, cancelled: 7 * DAY_MS, failed: 30 * DAY_MS }
/** For a job that is released or rescued and will run again: no keep policy applies yet. */
export const KEEP_ALL: KeepMs = { done: Infinity, cancelled: Infinity, failed: Infinity }

/** Merges the levels, most specific first, state by state. */
export function mergeKeep(levels: readonly (KeepOptions | undefined)[]): KeepMs {
  const pick = (state: keyof KeepMs): number => {
    for (const level of levels) {
      const value = keptFor(level, state)
      if (value !== undefined) return value === Infinity ? Infinity : durationMs(value, KEEP_DEFAULTS[state])
    }
    return KEEP_DEFAULTS[state]
  }
  return { done: pick('done'), cancelled: pick('cancelled'), failed: pick('failed') }
}

/** The duration that one level sets for a state; undefined when it sets none. */
export function keptFor(keep: KeepOptions | undefined, state: keyof KeepMs): Duration | number | undefined {
  if (keep === 'none') return 0
  return typeof keep === 'object' ? keep[state] : keep
}

function durationMs(value: Duration | number, otherwise: number): number {
  const parsed = parseDuration(value)
  return parsed.ok ? parsed.ms : otherwise
}

/** How long a row of the audit trail is kept: as failed jobs, and at least a day. */
export function auditKeepMs(keep: KeepOptions | undefined): number {
  return Math.max(mergeKeep([keep]).failed, DAY_MS)
}
