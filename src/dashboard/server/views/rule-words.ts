import { inWords } from '../../../job/why/words.js'
import type { RuleInput } from '../../../schedule/calendar.js'

/*
 * A rule of a schedule in words: "every day at 09:00". Rules that would be long in words are shown as they are written. The fields are
 * numbers of two digits, so no rule costs more than its own text.
 */

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
const DAY_NAMES = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const MACROS: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
}
const RULE_MAX = 200

/** The rule as it was written: the cron text, or "every 5m". */
export function ruleText(rule: RuleInput): string {
  return typeof rule === 'string' ? rule : `every ${durationText(rule.every)}`
}

export function ruleWords(rule: RuleInput): string {
  if (typeof rule !== 'string') return `every ${durationText(rule.every)}`
  const text = rule.trim().slice(0, RULE_MAX)
  const macro = Object.hasOwn(MACROS, text.toLowerCase()) ? MACROS[text.toLowerCase()] : undefined
  return cronWords((macro ?? text).split(/\s+/)) ?? `by the rule ${text}`
}

function durationText(every: unknown): string {
  return typeof every === 'number' ? inWords(every) : String(every)
}

function cronWords(fields: readonly string[]): string | undefined {
  const [seconds, rest] = fields.length === 6 ? [fields[0], fields.slice(1)] : ['0', fields]
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = rest
  if (rest.length !== 5 || seconds === undefined) return undefined
  if (seconds !== '0') return rest.every((field) => field === '*') ? steps(seconds, 'second') : undefined
  if (month !== '*') return undefined
  const isEveryDay = day === '*' && weekday === '*'
  if (isEveryDay && hour === '*')
    return steps(minute, 'minute') ?? (isNumber(minute) ? `every hour at minute ${Number(minute)}` : undefined)
  if (isEveryDay && minute === '0' && hour.includes('/')) return steps(hour, 'hour')
  const time = timeText(hour, minute)
  if (time === undefined) return undefined
  if (isEveryDay) return `every day at ${time}`
  if (day === '*') return weekdayWords(weekday, time)
  return weekday === '*' ? dayWords(day, time) : undefined
}

const isNumber = (field: string): boolean => /^\d{1,2}$/.test(field)

function steps(field: string, unit: string): string | undefined {
  if (field === '*') return `every ${unit}`
  const step = /^(?:\*|0)\/(\d{1,2})$/.exec(field)?.[1]
  if (step === undefined) return undefined
  return Number(step) === 1 ? `every ${unit}` : `every ${Number(step)} ${unit}s`
}

/** Up to three hours: "09:00, 12:00 and 18:00". */
function timeText(hour: string, minute: string): string | undefined {
  const hours = hour.split(',')
  if (!isNumber(minute) || hours.length > 3 || !hours.every(isNumber)) return undefined
  const times = hours.map((each) => `${each.padStart(2, '0')}:${minute.padStart(2, '0')}`)
  return times.length === 1 ? times[0] : `${times.slice(0, -1).join(', ')} and ${times.at(-1)}`
}

function weekdayWords(field: string, time: string): string | undefined {
  const lower = field.toLowerCase()
  if (lower === '1-5' || lower === 'mon-fri') return `Monday to Friday at ${time}`
  const names = lower.split(',').map((each) => (isNumber(each) ? DAYS[Number(each)] : DAYS[DAY_NAMES.indexOf(each)]))
  if (names.length > 6 || names.some((name) => name === undefined)) return undefined
  return `every ${names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`} at ${time}`
}

function dayWords(field: string, time: string): string | undefined {
  if (field.toUpperCase() === 'L') return `on the last day of the month at ${time}`
  return isNumber(field) ? `on day ${Number(field)} of the month at ${time}` : undefined
}
