/** A Temporal.Instant or Temporal.ZonedDateTime, or another object with its milliseconds since 1970. */
export interface InstantLike {
  readonly epochMilliseconds: number
}

/** ISO 8601 with `Z` or an offset: `2026-11-01T08:00:00Z`, `2026-11-01T09:00+01:00`. */
export type InstantText = `${number}-${number}-${number}T${string}`

/** The furthest instant a Date can hold, in either direction. */
const DATE_MAX_MS = 8.64e15

const TEXT_MAX = 64

/** The milliseconds since 1970 of an instant, or the end of an error message that follows "got …". A getter of the value may throw. */
export function instantOf(value: unknown): number | string {
  if (typeof value === 'string') return instantOfText(value)
  if (typeof value === 'number') return '; a number could be seconds or milliseconds, so pass new Date(milliseconds)'
  if (typeof value !== 'object' || value === null) return ''
  const time = timeOf(value)
  if (time !== undefined) return Number.isNaN(time) ? ' that is invalid' : time
  if (!('epochMilliseconds' in value)) return ''
  const { epochMilliseconds } = value
  const isInRange = typeof epochMilliseconds === 'number' && Math.abs(epochMilliseconds) <= DATE_MAX_MS
  return isInRange
    ? Math.floor(epochMilliseconds)
    : ` whose epochMilliseconds are ${typeof epochMilliseconds === 'number' ? 'out of range' : 'no number'}`
}

/** The time of a Date of any realm; undefined for anything else. */
function timeOf(value: object): number | undefined {
  if (Object.prototype.toString.call(value) !== '[object Date]') return undefined
  return Date.prototype.getTime.call(value)
}

const DAY = String.raw`(?<year>\d{4}|[-+]\d{6})-(?<month>\d\d)-(?<day>\d\d)`
const CLOCK = String.raw`(?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d)(?:[.,](?<fraction>\d{1,9}))?)?`
const ZONE = String.raw`(?:[Zz]|(?<sign>[-+])(?<zoneHour>\d\d):?(?<zoneMinute>\d\d))`

const WITH_ZONE = new RegExp(`^${DAY}[Tt ]${CLOCK}${ZONE}$`, 'u')
const WITHOUT_ZONE = new RegExp(`^${DAY}[Tt ]${CLOCK}$`, 'u')
const DAY_ONLY = new RegExp(`^${DAY}$`, 'u')

function instantOfText(text: string): number | string {
  if (text.length > TEXT_MAX) return `; it is longer than ${TEXT_MAX} characters`
  if (text.endsWith(']')) return '; leave out the zone in brackets: the offset alone names the instant'
  if (DAY_ONLY.test(text)) return `; a day begins at another instant in each zone: did you mean "${text}T00:00:00Z"?`
  if (WITHOUT_ZONE.test(text)) return `; it has no zone: add Z or an offset, did you mean "${text}Z"?`
  const fields = WITH_ZONE.exec(text)?.groups
  return fields === undefined ? '; it is no ISO 8601 instant' : instantOfFields(fields)
}

function instantOfFields(fields: Readonly<Record<string, string | undefined>>): number | string {
  const part = (name: string): number => Number(fields[name] ?? 0)
  const date = new Date(0)
  // Not Date.UTC, which maps the years 0 to 99 to 1900 to 1999.
  date.setUTCFullYear(part('year'), part('month') - 1, part('day'))
  // Date would turn 30 February into 2 March without an error.
  const isDay = date.getUTCMonth() === part('month') - 1 && date.getUTCDate() === part('day')
  if (!isDay) return '; there is no such day'
  const isTime = part('hour') < 24 && part('minute') < 60 && part('second') < 60
  if (!isTime || part('zoneHour') > 23 || part('zoneMinute') > 59) return '; there is no such time'
  const ms = Number((fields['fraction'] ?? '').padEnd(3, '0').slice(0, 3))
  const offset = (part('zoneHour') * 60 + part('zoneMinute')) * (fields['sign'] === '-' ? -1 : 1)
  const time = ((part('hour') * 60 + part('minute') - offset) * 60 + part('second')) * 1000 + ms
  const instant = date.getTime() + time
  return Math.abs(instant) <= DATE_MAX_MS ? instant : '; it is out of range'
}
