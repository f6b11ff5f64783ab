import { show } from '../../codec/show.js'
import { instantOf, type InstantLike, type InstantText } from './duration-instant.js'
import { durationOfText, tooLong } from './duration-text.js'
import { DAY_MS, FIELD_MS, YEAR_MS } from './duration-units.js'

/*
 * Durations and instants as callers write them. Nothing here throws or reads a clock: a caller collects the problems of a whole
 * call, and passes `now`.
 */

type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w'
type Part = `${number}${Unit}`

/** `5s`, `1h30m`, `1d12h30m`: numbers with a unit, each unit at most once, in any order. `m` is minutes. */
export type DurationText = Part | `${Part}${Part}` | `${Part}${Part}${Part}`

/** ISO 8601: `PT5M`, `P1DT12H`, `P2W`. Years and months are refused, because their length varies. */
export type IsoDurationText = `PT${number}${'H' | 'M' | 'S'}${string}` | `P${number}${'D' | 'W'}${string}`

/** A Temporal.Duration, or an object with some of its fields. Years and months must be absent or 0. */
export interface DurationLike {
  readonly weeks?: number
  readonly days?: number
  readonly hours?: number
  readonly minutes?: number
  readonly seconds?: number
  readonly milliseconds?: number
  readonly microseconds?: number
  readonly nanoseconds?: number
}

/** A duration from 0 to 10 years: a number is milliseconds. A day is 24 hours, also when daylight saving time changes. */
export type Duration = number | DurationText | IsoDurationText | DurationLike

/** An instant: a Date, a Temporal value, or ISO text with its zone. */
export type Instant = Date | InstantLike | InstantText

/** A point in time: a duration from now, or an instant. An instant in the past means at once. */
export type When = Duration | Instant

/** A duration in whole milliseconds, or its problem: the rest of a sentence that begins with the option's name. */
export type ParsedDuration =
  | { readonly ok: true; readonly ms: number }
  | { readonly ok: false; readonly problem: string }

/** An instant in milliseconds since 1970, or its problem. */
export type ParsedInstant =
  | { readonly ok: true; readonly atMs: number }
  | { readonly ok: false; readonly problem: string }

/** The longest duration and the furthest instant; a longer one is taken for a mistake. */
const DURATION_MAX_MS = 10 * YEAR_MS
const AWAY_MAX_MS = 100 * YEAR_MS

/** Parses a duration; fractions of a millisecond are rounded. Never throws. */
export function parseDuration(value: unknown): ParsedDuration {
  const span = durationOf(value)
  return typeof span === 'number' ? { ok: true, ms: span } : { ok: false, problem: got(A_DURATION, value, span) }
}

/** Parses an instant: a Date, an object with `epochMilliseconds`, or ISO text with its zone. Never throws. */
export function parseInstant(value: unknown): ParsedInstant {
  const instant = safely(() => instantOf(value))
  return typeof instant === 'number'
    ? { ok: true, atMs: instant }
    : { ok: false, problem: got(AN_INSTANT, value, instant) }
}

/** Parses a duration, which is added to `nowMs`, or an instant, which may be in the past. Never throws. */
export function parseWhen(value: unknown, nowMs: number): ParsedInstant {
  const moment = safely(() => momentOf(value, nowMs))
  if (typeof moment !== 'number') return { ok: false, problem: got(`${A_DURATION}, or ${AN_INSTANT}`, value, moment) }
  return { ok: true, atMs: moment }
}

/** A duration as readable text: `350 ms`, `5.0 s`, `2 m 5 s`, `2 h 5 m`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms)
  if (ms < 0) return `-${formatDuration(-ms)}`
  // Each threshold is where the smaller form would round up to the larger unit.
  if (ms < 9.95) return Number.isInteger(ms) ? `${ms} ms` : `${ms.toFixed(1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_599_500) return inTwo(Math.round(ms / 1000), 60, 'm', 's')
  if (ms < DAY_MS - 30_000) return inTwo(Math.round(ms / 60_000), 60, 'h', 'm')
  return inTwo(Math.round(ms / 3_600_000), 24, 'd', 'h')
}

const A_DURATION = 'a duration such as "5s", "1h30m", "PT5M" or a number of milliseconds'
const AN_INSTANT = 'an instant such as a Date, a Temporal.Instant or "2026-11-01T08:00:00Z"'

const got = (expected: string, value: unknown, why: string): string => `must be ${expected}, got ${show(value)}${why}`

/** A number, or why there is none. */
type Found = number | string

function momentOf(value: unknown, nowMs: number): Found {
  const isInstant =
    typeof value === 'string' ? /^[-+]?\d{4,6}-/u.test(value) : typeof value === 'object' && !isSpan(value)
  if (!isInstant) {
    const span = durationOf(value)
    return typeof span === 'number' ? nowMs + span : span
  }
  const instant = instantOf(value)
  const isFar = typeof instant === 'number' && instant - nowMs > AWAY_MAX_MS
  return isFar ? '; that is more than 100 years away' : instant
}

function durationOf(value: unknown): Found {
  const span = safely(() => spanOf(value))
  if (typeof span !== 'number') return span
  if (Number.isNaN(span)) return '; it is not a number'
  if (span < 0) return '; a duration cannot be negative'
  if (span > DURATION_MAX_MS) return typeof value === 'number' ? tooLargeNumber(value) : '; that is more than 10 years'
  // Adding 0 turns -0 into 0.
  return Math.round(span) + 0
}

function spanOf(value: unknown): Found {
  if (typeof value === 'number') return value
  if (typeof value === 'string') return durationOfText(value)
  if (typeof value !== 'object' || value === null) return ''
  return isSpan(value) ? spanOfFields(value) : ` without any of the fields ${FIELDS.slice(2).join(', ')}`
}

function isSpan(value: object | null): value is Readonly<Record<string, unknown>> {
  return value !== null && FIELDS.some((field) => field in value)
}

const FIELDS = Object.keys(FIELD_MS)

function spanOfFields(fields: Readonly<Record<string, unknown>>): Found {
  const unknown = Object.keys(fields).find((key) => !FIELDS.includes(key))
  if (unknown !== undefined) return ` with the field ${show(unknown)}; a duration has ${FIELDS.slice(2).join(', ')}`
  let sum = 0
  for (const [field, ms] of Object.entries(FIELD_MS)) {
    const count = fields[field] ?? 0
    if (typeof count !== 'number' || Number.isNaN(count))
      return ` whose ${field} are ${show(count)}; they must be a number`
    if (count < 0) return '; a duration cannot be negative'
    if (ms === undefined && count !== 0) return tooLong(field)
    sum += count * (ms ?? 0)
  }
  return sum
}

/** A number this large is most likely an instant in milliseconds, passed as a duration. */
function tooLargeNumber(value: number): string {
  const date = new Date(value)
  if (Number.isNaN(date.getTime())) return '; that is more than 10 years'
  return `; that is more than 10 years of milliseconds: did you mean a Date? new Date(${value}) is ${date.toISOString()}`
}

/** A proxy or a getter may throw at every read; the value is refused then. */
function safely(read: () => Found): Found {
  try {
    return read()
  } catch {
    return ', which throws when it is read'
  }
}

function inTwo(count: number, size: number, large: string, small: string): string {
  const rest = count % size
  return `${Math.floor(count / size)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`
}
