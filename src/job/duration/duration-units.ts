/** Milliseconds in each unit. A day has 24 hours; the average year is used for limits only. */
export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
export const WEEK_MS = 7 * DAY_MS
export const YEAR_MS = 365.25 * DAY_MS

/** The units of text like `1h30m`. A Map, so that text cannot name a property of Object.prototype. */
export const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', SECOND_MS],
  ['m', MINUTE_MS],
  ['h', HOUR_MS],
  ['d', DAY_MS],
  ['w', WEEK_MS],
])

/** The fields of a Temporal.Duration; those without a fixed length have none here. */
export const FIELD_MS: Readonly<Record<string, number | undefined>> = {
  years: undefined,
  months: undefined,
  weeks: WEEK_MS,
  days: DAY_MS,
  hours: HOUR_MS,
  minutes: MINUTE_MS,
  seconds: SECOND_MS,
  milliseconds: 1,
  microseconds: 1e-3,
  nanoseconds: 1e-6,
}
