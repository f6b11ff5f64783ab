import { Cron } from 'croner'
import { didYouMean } from '../codec/near-name.js'
import { show } from '../codec/show.js'
import { DAY, HOUR, MINUTE, MONTH, readField, SECOND, WEEKDAY } from './cron-field.js'
import type { Field, FieldShape } from './cron-field.js'

/**
 * A parsed cron text. A reading is the local time that a clock shows, as milliseconds since 1970 on that clock; this module
 * knows no time zones.
 */
export interface CronTimes {
  /** The hours are named, so each reading fires once a day; otherwise the rule repeats with the hours. */
  readonly isFixed: boolean
  /** The first matching reading after this one, or undefined when there is none before the year 3000. */
  nextReading(afterReading: number): number | undefined
}

export type ParsedCron =
  | { readonly ok: true; readonly times: CronTimes }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Sixty minutes written out are 169 characters; a longer text is refused without parsing. */
const CRON_TEXT_MAX = 256

const FIVE: readonly FieldShape[] = [MINUTE, HOUR, DAY, MONTH, WEEKDAY]

const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
])

/** Parses a cron text, or returns the problem of each invalid field. Never throws. */
export function parseCron(text: string): ParsedCron {
  if (text.length > CRON_TEXT_MAX) return refuse(`must have at most ${CRON_TEXT_MAX} characters, got ${text.length}`)
  const plain = text.trim()
  if (plain.startsWith('@')) return parseNickname(plain)
  const texts = plain === '' ? [] : plain.split(/\s+/u)
  if (texts.length !== 5 && texts.length !== 6) return refuse(wrongCount(text, texts.length))
  const shapes = texts.length === 6 ? [SECOND, ...FIVE] : FIVE
  const fields = texts.map((each, i) => readField(each, shapes[i] as FieldShape))
  const wrong = fields.flatMap((field, i) => (typeof field === 'string' ? [`${nameOf(shapes, i)} ${field}`] : []))
  if (wrong.length > 0) return { ok: false, problems: wrong.map((each) => `${show(text)}: ${each}`) }
  const read = fields.length === 6 ? (fields as Field[]) : [ONLY_ZERO, ...(fields as Field[])]
  const never = neverFires(read, shapes)
  return never === undefined ? { ok: true, times: timesOf(read) } : refuse(`${show(text)}: ${never}`)
}

const refuse = (problem: string): ParsedCron => ({ ok: false, problems: [problem] })

function parseNickname(name: string): ParsedCron {
  const meaning = NICKNAMES.get(name.toLowerCase())
  if (meaning !== undefined) return parseCron(meaning)
  const known = [...NICKNAMES.keys()]
  if (name.toLowerCase() === '@reboot')
    return refuse('must be a time, got "@reboot": enqueue the job where your program starts')
  return refuse(`must be one of ${known.join(', ')} or five fields, got ${show(name)}${didYouMean(name, known)}`)
}

function wrongCount(text: string, count: number): string {
  const hint = count === 7 ? '; there is no field for the year: use the options from and until' : ''
  const fields = FIVE.map(({ name }) => name).join(', ')
  return `must be a cron text of 5 fields (${fields}), or 6 with seconds first, got ${count} in ${show(text)}${hint}`
}

const ORDINALS = ['1st', '2nd', '3rd', '4th', '5th', '6th']
const nameOf = (shapes: readonly FieldShape[], i: number): string => `the ${ORDINALS[i]} field (${shapes[i]?.name})`

const ONLY_ZERO: Field = { isOpen: false, hasStep: false, values: [0], marks: [] }

/** By month, in the longest year. */
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** A rule never fires only if none of its months has its days. */
function neverFires([, , , day, month, weekday]: readonly Field[], shapes: readonly FieldShape[]): string | undefined {
  if (day === undefined || month === undefined || weekday?.isOpen !== true) return undefined
  const days = [...day.values, ...day.marks.map(dayOfMark)]
  const longest = Math.max(...month.values.map((each) => MONTH_DAYS[each - 1] ?? 0))
  if (Math.min(...days) <= longest) return undefined
  return `${nameOf(shapes, shapes.indexOf(DAY))} must be at most ${longest} in the months that are named, got ${Math.min(...days)}: it would never fire; the last day of a month is "L"`
}

/** The day that a month must have for a mark to match: every month has a last day. */
const dayOfMark = (mark: string): number => (mark.startsWith('L') ? 1 : Number.parseInt(mark, 10))

/**
 * croner computes with a clock that never changes (an offset of 0), so its results are readings; calendar.ts maps them to
 * instants of a zone, with its gaps and folds. Its timers are not used.
 *
 * February is searched separately from the other months. In one search croner tries the days 29 to 31 of February too, takes
 * them for days of March, and continues from there: "0 0 1,31 * *" would skip the 1st of March.
 */
function timesOf(fields: readonly Field[]): CronTimes {
  const crons = apartFromFebruary(fields).map((each) => new Cron(each.map(spell).join(' '), { utcOffset: 0 }))
  const hours = fields[2] as Field
  return {
    isFixed: !hours.hasStep && hours.values.length < HOURS_OF_DAY,
    nextReading(afterReading) {
      const found = crons.flatMap((cron) => cron.nextRun(new Date(afterReading))?.getTime() ?? [])
      return found.length === 0 ? undefined : Math.min(...found)
    },
  }
}

function apartFromFebruary(fields: readonly Field[]): readonly (readonly Field[])[] {
  const [, , , day, month, weekday] = fields as readonly [Field, Field, Field, Field, Field, Field]
  if (!month.values.includes(FEBRUARY) || (day.isOpen && weekday.isOpen)) return [fields]
  const others = month.values.filter((each) => each !== FEBRUARY)
  const inOtherMonths = others.length === 0 ? [] : [fields.with(4, { ...month, isOpen: false, values: others })]
  // Days that February never has are left out: otherwise each search would walk through four centuries.
  const days = {
    ...day,
    values: day.values.filter((each) => each <= FEBRUARY_DAYS),
    marks: day.marks.filter((mark) => dayOfMark(mark) <= FEBRUARY_DAYS),
  }
  const isEmpty = days.values.length + days.marks.length === 0
  if (isEmpty && weekday.isOpen) return inOtherMonths
  const inFebruary = fields.with(3, { ...days, isOpen: day.isOpen || isEmpty })
  return [...inOtherMonths, inFebruary.with(4, { ...month, isOpen: false, values: [FEBRUARY] })]
}

const HOURS_OF_DAY = 24
const FEBRUARY = 2
const FEBRUARY_DAYS = 29

const spell = ({ isOpen, values, marks }: Field): string => (isOpen ? '*' : [...values, ...marks].join(','))
