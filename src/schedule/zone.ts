import { didYouMean } from '../codec/near-name.js'
import { show } from '../codec/show.js'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../job/duration/duration-units.js'

/** A time zone. Its reading at an instant is the local time as milliseconds since 1970. */
export interface Zone {
  /** The name as given. */
  readonly name: string
  /** The offset of its clocks from UTC at an instant, in milliseconds. */
  offsetAt(atMs: number): number
}

export type ParsedZone = { readonly ok: true; readonly zone: Zone } | { readonly ok: false; readonly problem: string }

/** The longest zone name has 32 characters; a longer text than this is refused without a lookup. */
const ZONE_TEXT_MAX = 40

/** Looks up a time zone in the tables of this Node. Never throws; the problem continues a sentence that names the option. */
export function parseZone(name: unknown): ParsedZone {
  if (typeof name !== 'string') return { ok: false, problem: `must be ${A_ZONE}, got ${show(name)}` }
  if (name === 'UTC') return { ok: true, zone: { name, offsetAt: () => 0 } }
  // Newer versions of Node accept an offset such as "+02:00" as a zone, and older ones do not. It has no daylight saving time.
  const clock = /^[A-Za-z]/u.test(name) && name.length <= ZONE_TEXT_MAX ? clockOf(name) : undefined
  if (clock === undefined) return { ok: false, problem: `must be ${A_ZONE}, got ${show(name)}${meant(name)}` }
  return { ok: true, zone: { name, offsetAt: (atMs) => offsetOf(clock, atMs) } }
}

const A_ZONE = 'a time zone such as "Europe/Oslo" or "UTC"'

/** The local time of a zone at an instant. */
export function readingAt(zone: Zone, atMs: number): number {
  return atMs + zone.offsetAt(atMs)
}

/**
 * The distance within which a clock change can matter. The largest changes, over the date line, are 24 hours; and no two changes
 * have been closer to each other than this.
 */
export const CHANGE_REACH_MS = DAY_MS + 2 * HOUR_MS

/** The first instant after `fromMs` and not after `toMs` at which the offset of the zone changes, if any. */
export function firstChange(zone: Zone, fromMs: number, toMs: number): number | undefined {
  for (let at = fromMs; at < toMs; at += CHANGE_REACH_MS) {
    const end = Math.min(at + CHANGE_REACH_MS, toMs)
    if (zone.offsetAt(at) !== zone.offsetAt(end)) return changeBetween(zone, at, end)
  }
  return undefined
}

/** Bisects the span to one second: clocks change at whole seconds. */
function changeBetween(zone: Zone, fromMs: number, toMs: number): number {
  const before = zone.offsetAt(fromMs)
  let low = Math.floor(fromMs / SECOND_MS)
  let high = Math.floor(toMs / SECOND_MS)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (zone.offsetAt(middle * SECOND_MS) === before) low = middle
    else high = middle
  }
  return high * SECOND_MS
}

function clockOf(name: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    // Intl reports an unknown zone only by throwing.
    return undefined
  }
}

/** Intl writes `3/12/2023, 03:00:00`; parsing that is faster than formatToParts. */
function offsetOf(clock: Intl.DateTimeFormat, atMs: number): number {
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = (
    clock.format(atMs).match(/\d+/gu) ?? []
  ).map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(atMs / SECOND_MS) * SECOND_MS
}

/** The suggested zone: the one of a city that was given alone, else the nearest spelling. */
function meant(name: string): string {
  if (name.length > ZONE_TEXT_MAX) return ''
  if (/^[+-]|^(?:utc|gmt)[+-]?\d/iu.test(name)) return '; an offset is no zone: name a place, or for UTC+2 "Etc/GMT-2"'
  const known = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const city = `/${name.replaceAll(' ', '_').toLowerCase()}`
  const ofCity = known.find((each) => each.toLowerCase().endsWith(city))
  return ofCity === undefined ? didYouMean(name, known) : `; did you mean ${JSON.stringify(ofCity)}?`
}
