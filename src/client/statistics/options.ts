import { didYouMean } from '../../codec/near-name.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Check, Fields } from '../../job/definition/check-fields.js'
import { isName } from '../../job/definition/check-options.js'
import { formatDuration, parseDuration, parseInstant } from '../../job/duration/duration.js'
import type { Duration, Instant } from '../../job/duration/duration.js'
import {
  DAY_MS,
  floorTo,
  HOUR_MS,
  HOURS_READ_MS,
  MINUTE_MS,
  MINUTES_READ_MS,
  SPANS,
} from '../../job/statistics/buckets.js'
import type { BucketRange } from '../../job/statistics/buckets.js'
import { isInstant } from '../check-arguments.js'

/** Which attempts to add up. */
export interface StatisticsOptions {
  /** The last days until `now`; Infinity: everything. Default 30. */
  readonly days?: number | undefined
  /** Only this queue. Default: all. */
  readonly queue?: string | undefined
  /** Only jobs of this name. Default: all. */
  readonly job?: string | undefined
  /** The end of the window. Default: now. */
  readonly now?: Instant | undefined
}

/** The same for durations. */
export interface TimesOptions extends StatisticsOptions {
  /** The unit of the answer. Default 'ms'. */
  readonly unit?: TimeUnit | undefined
}

export type TimeUnit = 'ms' | 's' | 'm' | 'h' | 'd'

/** The ms of each unit. */
export const UNIT_MS: Readonly<Record<TimeUnit, number>> = { ms: 1, s: 1_000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

/** A series of points in time. */
export interface SeriesOptions {
  readonly queue?: string | undefined
  readonly job?: string | undefined
  /** Default: an hour before `to`. */
  readonly from?: Instant | undefined
  /** Default: now. */
  readonly to?: Instant | undefined
  /** The length of each point: whole minutes for a day back, whole hours for 90 days back, whole days before. Default '1m'. */
  readonly bucket?: Duration | undefined
}

/** The most points of one series. */
export const SERIES_MAX = 2_000
export const DAYS_DEFAULT = 30
const DAYS_MAX = 36_500

const isDays: Check = (value) =>
  value === Infinity || (typeof value === 'number' && value > 0 && value <= DAYS_MAX)
    ? undefined
    : `must be a number of days above 0, up to ${DAYS_MAX}, or Infinity, got ${show(value)}`

const isUnit: Check = (value) =>
  typeof value === 'string' && Object.hasOwn(UNIT_MS, value)
    ? undefined
    : `must be one of ${Object.keys(UNIT_MS).join(', ')}, got ${show(value)}${typeof value === 'string' ? didYouMean(value, Object.keys(UNIT_MS)) : ''}`

const isBucket: Check = (value) => {
  const parsed = parseDuration(value)
  if (!parsed.ok) return parsed.problem
  return parsed.ms > 0 && parsed.ms % MINUTE_MS === 0 ? undefined : `must be whole minutes, got ${show(value)}`
}

const LANE: Fields['fields'] = { queue: isName, job: isName }
const meant = (value: unknown): string | undefined =>
  typeof value === 'number' ? `{ days: ${value} }` : typeof value === 'string' ? `{ queue: ${show(value)} }` : undefined

/** The fields of a window; `more` are those of one verb. */
export const WINDOW_FIELDS: Fields['fields'] = { ...LANE, days: isDays, now: isInstant }
export const TIMES_FIELDS: Fields['fields'] = { ...WINDOW_FIELDS, unit: isUnit }
const SERIES_FIELDS: Fields['fields'] = { ...LANE, from: isInstant, to: isInstant, bucket: isBucket }

/** Throws all problems of the options of a verb. */
export function checkStatistics(verb: string, options: unknown, fields: Fields['fields']): void {
  refuse(verb, checkFields(options, '', { fields, meant }))
}

function refuse(verb: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidOptionsError(`stats.${verb}()`, problems)
}

export function instantOf(given: Instant | undefined): number | undefined {
  const parsed = given === undefined ? undefined : parseInstant(given)
  return parsed?.ok === true ? parsed.atMs : undefined
}

/** The points of a series: buckets that are multiples of one that is kept. */
export interface SeriesWindow {
  readonly bucketMs: number
  /** The kept buckets that are read for them. */
  readonly range: BucketRange
}

export function seriesWindow(options: SeriesOptions, now: number): SeriesWindow {
  refuse('series', checkFields(options, '', { fields: SERIES_FIELDS }))
  const to = instantOf(options.to) ?? now
  const from = instantOf(options.from) ?? to - HOUR_MS
  const parsed = parseDuration(options.bucket ?? MINUTE_MS)
  const bucketMs = parsed.ok ? parsed.ms : MINUTE_MS
  const first = floorTo(from, bucketMs)
  const end = floorTo(to, bucketMs) + bucketMs
  refuse('series', rangeProblems(from, to, bucketMs, (end - first) / bucketMs, now))
  return { bucketMs, range: { spanMs: spanFor(bucketMs), from: first, to: end } }
}

function rangeProblems(from: number, to: number, bucketMs: number, points: number, now: number): Problem[] {
  if (from > to) return [{ path: 'from', message: `must be before to, got ${iso(from)}, which is after ${iso(to)}` }]
  if (points > SERIES_MAX)
    return [
      {
        path: 'bucket',
        message: `must make at most ${SERIES_MAX} points, got ${points}; try a longer bucket, such as ${show(longerBucket(to - from))}`,
      },
    ]
  const least = from >= now - MINUTES_READ_MS ? MINUTE_MS : from >= now - HOURS_READ_MS ? HOUR_MS : DAY_MS
  if (bucketMs % least === 0) return []
  const unit =
    least === HOUR_MS ? 'hours, since from is more than a day ago' : 'days, since from is more than 90 days ago'
  return [{ path: 'bucket', message: `must be whole ${unit}, got ${formatDuration(bucketMs)}` }]
}

/** The longest kept buckets of which this one is made. */
function spanFor(bucketMs: number): number {
  return SPANS.findLast((span) => bucketMs % span === 0) ?? MINUTE_MS
}

function longerBucket(lengthMs: number): string {
  return lengthMs / HOUR_MS < SERIES_MAX ? '1h' : lengthMs / DAY_MS < SERIES_MAX ? '1d' : '30d'
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
