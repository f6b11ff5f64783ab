import { THIN, UNKNOWN } from './number.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `< 1 ms`, `842 ms`, `3.4 s`, `2 m 05 s`, `3 h 12 m`, `4 d 6 h`: at most two units. A negative length is unknown. */
export function duration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms) || ms < 0) return UNKNOWN
  if (ms < 1) return ms === 0 ? `0${THIN}ms` : `< 1${THIN}ms`
  if (ms < 999.5) return `${Math.round(ms)}${THIN}ms`
  if (ms < 9_950) return `${trim((ms / SECOND).toFixed(1))}${THIN}s`
  return seconds(ms)
}

/** As `duration`, without tenths: for lengths that tick once a second. */
export function seconds(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms) || ms < 0) return UNKNOWN
  const all = Math.round(ms / SECOND)
  if (all < 60) return `${all}${THIN}s`
  if (all < 3_600) return two(Math.floor(all / 60), 'm', all % 60, 's')
  const minutes = Math.round(ms / MINUTE)
  if (minutes < 1_440) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'm')
  const hours = Math.round(ms / HOUR)
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

/** The longest span that a list shows as an age; after it the day and the time are clearer. */
export const AGE_MAX_MS = DAY

/** `now`, `12 s`, `3 m`, `5 h`, `9 d`: one unit, for ages in lists. */
export function age(ms: number): string {
  const length = Math.max(0, ms)
  if (length < MINUTE) return `${Math.floor(length / SECOND)}${THIN}s`
  if (length < HOUR) return `${Math.floor(length / MINUTE)}${THIN}m`
  if (length < DAY) return `${Math.floor(length / HOUR)}${THIN}h`
  return `${Math.floor(length / DAY)}${THIN}d`
}

function two(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return `${big}${THIN}${bigUnit} ${String(small).padStart(2, '0')}${THIN}${smallUnit}`
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${THIN}${bigUnit}` : `${big}${THIN}${bigUnit} ${small}${THIN}${smallUnit}`
}

function trim(text: string): string {
  return text.replace(/\.0$/, '')
}
