/** The lengths of the time buckets that statistics are kept in. */
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** Buckets of a minute are read for a day, buckets of an hour for 90 days, those of a day for ever. */
export const MINUTES_READ_MS = 24 * HOUR_MS
export const HOURS_READ_MS = 90 * DAY_MS

/** They are kept for longer than they are read: a reader's clock may be behind. */
export const MINUTES_KEPT_MS = MINUTES_READ_MS + HOUR_MS
export const HOURS_KEPT_MS = HOURS_READ_MS + DAY_MS

export const SPANS: readonly number[] = [MINUTE_MS, HOUR_MS, DAY_MS]

/** Buckets of one length, from an instant until before another. */
export interface BucketRange {
  readonly spanMs: number
  readonly from: number
  readonly to: number
}

/** A window of time, made of whole buckets. */
export interface Window {
  readonly from: number
  /** The end of the last bucket. */
  readonly to: number
  readonly ranges: readonly BucketRange[]
}

export function floorTo(at: number, spanMs: number): number {
  return Math.floor(at / spanMs) * spanMs
}

/** The shortest buckets that are read at an instant. */
export function spanAt(at: number, now: number): number {
  if (at >= now - MINUTES_READ_MS) return MINUTE_MS
  return at >= now - HOURS_READ_MS ? HOUR_MS : DAY_MS
}

/**
 * The buckets that cover a window. Its edges round down to a bucket: it begins with the bucket that has `from`, and ends
 * with the one that has `to`. In between the longest buckets are read, so that a year is a few hundred rows.
 */
export function windowOf(from: number, to: number, now: number): Window {
  const first = floorTo(Math.max(0, from), spanAt(from, now))
  const lastSpan = spanAt(to, now)
  const end = floorTo(to, lastSpan) + lastSpan
  const ranges: BucketRange[] = []
  const add = (spanMs: number, begin: number, until: number): number => {
    if (until <= begin) return begin
    ranges.push({ spanMs, from: begin, to: until })
    return until
  }
  let at = add(MINUTE_MS, first, Math.min(end, ceilTo(first, HOUR_MS)))
  at = add(HOUR_MS, at, Math.min(floorTo(end, HOUR_MS), ceilTo(at, DAY_MS)))
  at = add(DAY_MS, at, floorTo(end, DAY_MS))
  at = add(HOUR_MS, at, floorTo(end, HOUR_MS))
  add(MINUTE_MS, at, end)
  return { from: first, to: end, ranges }
}

function ceilTo(at: number, spanMs: number): number {
  return Math.ceil(at / spanMs) * spanMs
}
