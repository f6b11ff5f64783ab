import { AGE_MAX_MS, age, seconds } from './duration.js'
import { UNKNOWN } from './number.js'

/** A zone's name for `Intl`; undefined is the viewer's own. */
export type Zone = string | undefined

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

export interface Parts {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

/** The wall clock of an instant in a zone. */
export function partsOf(at: number, zone: Zone): Parts {
  // A page has hundreds of times each second: making a formatter for each would cost more than drawing them.
  const date = new Date(at)
  if (zone === undefined)
    return {
      year: date.getFullYear(),
      month: date.getMonth() + 1,
      day: date.getDate(),
      hour: date.getHours(),
      minute: date.getMinutes(),
      second: date.getSeconds(),
    }
  if (zone === 'UTC')
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
    }
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const found = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  return found as unknown as Parts
}

/** `14:02`, or with seconds `14:02:31`. */
export function clockTime(at: number | undefined, zone: Zone, withSeconds = false): string {
  if (!isInstant(at)) return UNKNOWN
  const { hour, minute, second } = partsOf(at, zone)
  const text = `${pad(hour)}:${pad(minute)}`
  return withSeconds ? `${text}:${pad(second)}` : text
}

/** `14:02` today, `yesterday 14:02`, `3 Nov 14:02`, and with the year once it is another one. */
export function dayAndTime(at: number | undefined, now: number, zone: Zone, withSeconds = false): string {
  if (!isInstant(at)) return UNKNOWN
  const then = partsOf(at, zone)
  const today = partsOf(now, zone)
  const time = clockTime(at, zone, withSeconds)
  const days = dayNumber(then) - dayNumber(today)
  if (days === 0) return time
  if (days === 1) return `tomorrow ${time}`
  if (days === -1) return `yesterday ${time}`
  const date = `${then.day} ${MONTHS[then.month - 1]}`
  return then.year === today.year ? `${date} ${time}` : `${date} ${then.year} ${time}`
}

/** `3 Nov`, for an axis or the start of a day. */
export function dateOf(at: number, zone: Zone): string {
  const { day, month } = partsOf(at, zone)
  return `${day} ${MONTHS[month - 1]}`
}

/** `12 s ago`, `in 40 s`; after a day the date. */
export function relative(at: number | undefined, now: number, zone: Zone): string {
  if (!isInstant(at)) return UNKNOWN
  const length = at - now
  if (Math.abs(length) >= AGE_MAX_MS) return dayAndTime(at, now, zone)
  if (length > 0) return `in ${seconds(length)}`
  return `${age(-length)} ago`
}

/** For titles: ISO with the zone's offset, and UTC. */
export function exact(at: number | undefined, zone: Zone): string {
  if (!isInstant(at)) return 'not known'
  const utc = new Date(at).toISOString()
  if (zone === 'UTC') return utc
  const { year, month, day } = partsOf(at, zone)
  return `${year}-${pad(month)}-${pad(day)} ${clockTime(at, zone, true)} ${zoneName(at, zone)} · ${utc}`
}

/** `CET`, `GMT+1` or `UTC`. */
export function zoneName(at: number, zone: Zone): string {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeZoneName: 'short' })
  return format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
}

function isInstant(at: number | undefined): at is number {
  return at !== undefined && Number.isFinite(at)
}

function dayNumber({ year, month, day }: Parts): number {
  return Math.floor(Date.UTC(year, month - 1, day) / AGE_MAX_MS)
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
