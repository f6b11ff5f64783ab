import { show } from '../codec/show.js'
import type { Problem } from '../errors.js'
import { checkFields } from '../job/definition/check-fields.js'
import { parseDuration } from '../job/duration/duration.js'
import type { Duration } from '../job/duration/duration.js'
import { SECOND_MS } from '../job/duration/duration-units.js'
import { parseCron } from './cron.js'
import type { CronTimes } from './cron.js'
import { CHANGE_REACH_MS, firstChange, parseZone, readingAt } from './zone.js'
import type { Zone } from './zone.js'

/*
 * When a recurring job is due; pure, a function of instants. The rule for changes of the clocks (daylight saving):
 *
 * - Named hours ("30 2 * * *", "0 9-17 * * MON-FRI"): a time fires when the clock first reaches or passes it. Times inside a
 *   gap fire together, at the first instant after it; of a time repeated by a fold, the first one fires.
 * - Repeating hours ("*", a step, or all 24): the rule fires at every instant at which the clock shows a matching time. Times
 *   inside a gap do not fire; times repeated by a fold fire again.
 *
 *   clock   1:00 ─────── 2:00 ┐ gap           fold  1:00 ─────── 2:00 ┐
 *                             └ 3:00 ──────         1:00 ─────── 2:00 ┘ ──────
 *   2:30                      ▲               1:30         ▲
 *   every 30 minutes  ▲   ▲   ▲   ▲                  ▲     ▲     ▲     ▲     ▲
 */

/** When a recurring job runs: a cron text, or an interval. */
export type RuleInput = string | { readonly every: Duration }

export type Rule =
  | { readonly kind: 'cron'; readonly zone: Zone; readonly times: CronTimes }
  | { readonly kind: 'every'; readonly everyMs: number }

export type ParsedRule =
  | { readonly ok: true; readonly rule: Rule }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** The shortest `every`; cron has the same resolution. */
export const EVERY_MIN_MS = SECOND_MS

/** Ticks lie between 1970 and the year 3000: croner misreads years outside of it. */
const EARLIEST_MS = 0
const LATEST_MS = Date.UTC(3000, 0, 1)

/**
 * Parses a rule and its time zone (undefined: UTC) and reports all problems of both; their paths are `rule`, `rule.every` and
 * `options.timezone`.
 */
export function parseRule(given: unknown, timezone: unknown): ParsedRule {
  const zone = parseZone(timezone === undefined ? 'UTC' : timezone)
  const read = typeof given === 'string' ? readCron(given) : readEvery(given)
  if (zone.ok && !Array.isArray(read)) return { ok: true, rule: read(zone.zone) }
  const ofZone = zone.ok ? [] : [{ path: 'options.timezone', message: zone.problem }]
  return { ok: false, problems: [...(Array.isArray(read) ? read : []), ...ofZone] }
}

/** The problems, or a function that creates the rule for its zone. */
type Read = Problem[] | ((zone: Zone) => Rule)

function readCron(text: string): Read {
  const cron = parseCron(text)
  if (!cron.ok) return cron.problems.map((message) => ({ path: 'rule', message }))
  return (zone) => ({ kind: 'cron', zone, times: cron.times })
}

function readEvery(given: unknown): Read {
  if (typeof given !== 'object' || given === null) return [{ path: 'rule', message: notARule(given) }]
  const wrong = checkFields(given, 'rule', { fields: { every: isEvery } })
  if (wrong.length > 0) return wrong
  const every = parseDuration((given as { every?: unknown }).every)
  return every.ok ? () => ({ kind: 'every', everyMs: every.ms }) : [{ path: 'rule.every', message: every.problem }]
}

const notARule = (given: unknown): string =>
  `must be a cron text such as "0 9 * * *" or { every: "15m" }, got ${show(given)}`

const isEvery = (value: unknown): string | undefined => {
  const every = parseDuration(value)
  if (!every.ok) return every.problem
  return every.ms >= EVERY_MIN_MS ? undefined : `must be 1 second or more, got ${show(value)}`
}

/**
 * The first tick strictly after an instant, or undefined when there is none before the year 3000. `anchorMs` is the first tick
 * of `every`, from which it counts; a cron does not use it.
 */
export function nextTick(rule: Rule, afterMs: number, anchorMs: number): number | undefined {
  if (afterMs >= LATEST_MS) return undefined
  const after = Math.max(Math.floor(afterMs), EARLIEST_MS - 1)
  const found = rule.kind === 'every' ? nextEvery(rule.everyMs, after, anchorMs) : nextCron(rule, after)
  return found !== undefined && found < LATEST_MS ? found : undefined
}

/** Counted from the anchor each time, never from the previous tick, so errors do not accumulate. */
function nextEvery(everyMs: number, afterMs: number, anchorMs: number): number {
  if (afterMs < anchorMs) return anchorMs
  return anchorMs + (Math.floor((afterMs - anchorMs) / everyMs) + 1) * everyMs
}

/** Walks from one clock change to the next; only those near the start and near the end can matter. */
function nextCron({ zone, times }: Rule & { kind: 'cron' }, afterMs: number): number | undefined {
  let at = afterMs
  let reading = times.nextReading(times.isFixed ? highestReading(zone, afterMs) : readingAt(zone, afterMs))
  while (reading !== undefined) {
    const due = reading - zone.offsetAt(at)
    const isFar = due - at > 2 * CHANGE_REACH_MS
    const change = firstChange(zone, at, isFar ? at + CHANGE_REACH_MS : due)
    if (change === undefined && !isFar) return due
    // No reading matches between `at` and `due`, so clock changes in between have no effect.
    at = change ?? due - CHANGE_REACH_MS
    if (change === undefined) continue
    const shown = readingAt(zone, change)
    if (times.isFixed && shown >= reading) return change
    if (!times.isFixed) reading = times.nextReading(shown - 1)
  }
  return undefined
}

/** The highest reading of a clock up to an instant: in the second pass of a fold it was higher before. */
function highestReading(zone: Zone, atMs: number): number {
  const shown = readingAt(zone, atMs)
  const change = firstChange(zone, atMs - CHANGE_REACH_MS, atMs)
  return change === undefined ? shown : Math.max(shown, change - 1 + zone.offsetAt(change - 1))
}
