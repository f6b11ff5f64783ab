import { didYouMean } from '../codec/near-name.js'
import { showText } from '../codec/show.js'

/** One field of a cron text: its name and its values. */
export interface FieldShape {
  readonly name: 'second' | 'minute' | 'hour' | 'day of month' | 'month' | 'day of week'
  readonly min: number
  readonly max: number
  /** Names for values, the first for `min`. */
  readonly names?: readonly string[]
}

/** A parsed field: its values in order, and marks that are no value (`L`, `LW`, `15W`, `5#2`, `5#L`). */
export interface Field {
  /** The field is `*`. */
  readonly isOpen: boolean
  /** The field contains `*` or a step. */
  readonly hasStep: boolean
  readonly values: readonly number[]
  readonly marks: readonly string[]
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

export const SECOND: FieldShape = { name: 'second', min: 0, max: 59 }
export const MINUTE: FieldShape = { name: 'minute', min: 0, max: 59 }
export const HOUR: FieldShape = { name: 'hour', min: 0, max: 23 }
export const DAY: FieldShape = { name: 'day of month', min: 1, max: 31 }
export const MONTH: FieldShape = { name: 'month', min: 1, max: 12, names: MONTHS }
/** 7 is Sunday too. */
export const WEEKDAY: FieldShape = { name: 'day of week', min: 0, max: 7, names: DAYS }

/** Parses one field, or returns the problem, which continues a sentence that begins with the field's name. */
export function readField(text: string, shape: FieldShape): Field | string {
  const isDay = shape === DAY || shape === WEEKDAY
  if (text === '*' || (text === '?' && isDay))
    return { isOpen: true, hasStep: true, values: span(shape.min, lastOf(shape), 1), marks: [] }
  if (text === '?') return `must be ${expected(shape)}, got "?": write "*", since "?" is for the two day fields alone`
  const items = text.split(',')
  const values = new Set<number>()
  const marks = new Set<string>()
  for (const item of items) {
    const found = readItem(item, shape, items.length === 1)
    if (typeof found === 'string') return found
    for (const value of found.values) values.add(shape === WEEKDAY ? value % 7 : value)
    if (found.mark !== undefined) marks.add(found.mark)
  }
  const hasStep = text.includes('/')
  return { isOpen: false, hasStep, values: [...values].sort((a, b) => a - b), marks: [...marks] }
}

/** `0 to 23`, or `1 to 12 or JAN to DEC`. */
export function expected({ min, max, names }: FieldShape): string {
  const named = names === undefined ? '' : ` or ${names[0]?.toUpperCase()} to ${names.at(-1)?.toUpperCase()}`
  return `${min} to ${max}${named}`
}

interface Item {
  readonly values: readonly number[]
  readonly mark?: string
}

// `5`, `mon`, `1-5`, `*/15`, `1-5/2`; and in the day fields `L`, `LW`, `15W`, `5L`, `5#2`.
function readItem(item: string, shape: FieldShape, isAlone: boolean): Item | string {
  if (item === '') return `must be ${expected(shape)}, got nothing where a value should be: look for a comma too many`
  if (item === '*' || item === '?') return `must have ${showText(item)} alone or a list without it, not both`
  const mark = readMark(item, shape, isAlone)
  if (mark !== undefined) return typeof mark === 'string' ? mark : { values: [], mark: mark.text }
  const [range = '', step, ...more] = item.split('/')
  if (more.length > 0) return `must have one step at most, got ${showText(item)}`
  const bounds = readRange(range, shape)
  if (typeof bounds === 'string') return bounds
  const by = step === undefined ? 1 : readStep(step, item, bounds, shape)
  return typeof by === 'string' ? by : { values: span(bounds.from, bounds.to, by) }
}

interface Bounds {
  readonly from: number
  readonly to: number
  readonly isOne: boolean
}

function readRange(range: string, shape: FieldShape): Bounds | string {
  if (range === '*') return { from: shape.min, to: lastOf(shape), isOne: false }
  const [first = '', second, ...more] = range.split('-')
  if (more.length > 0) return `must have ranges of two ends such as "${shape.min}-${shape.max}", got ${showText(range)}`
  if (first === '' || second === '') return `must be ${expected(shape)}, got ${showText(range)}`
  const from = readValue(first, shape)
  if (typeof from === 'string') return from
  if (second === undefined) return { from, to: from, isOne: true }
  const end = readValue(second, shape)
  if (typeof end === 'string') return end
  // A week that ends on Sunday: "fri-sun".
  const to = shape === WEEKDAY && end === 0 && from > 0 ? 7 : end
  if (from <= to) return { from, to, isOne: false }
  return `must have ranges that go up, got ${showText(range)}: write "${roundTheEnd(shape, [first, from], [second, to])}"`
}

/** A range that wraps around the last value, as two ranges: `22-23,0-2`. */
function roundTheEnd(
  shape: FieldShape,
  [first, from]: readonly [string, number],
  [second, to]: readonly [string, number],
): string {
  const last = lastOf(shape)
  const begin = to === shape.min ? second : `${shape.min}-${second}`
  // Sunday as 7 is the beginning of the range.
  if (from > last) return begin
  return from === last ? `${first},${begin}` : `${first}-${last},${begin}`
}

function readValue(text: string, shape: FieldShape): number | string {
  const wrong = (why: string): string =>
    `must be ${expected(shape)}, got ${/^\d{1,9}$/u.test(text) ? text : showText(text)}${why}`
  if (/^\d{1,2}$/u.test(text)) {
    const value = Number(text)
    if (value >= shape.min && value <= shape.max) return value
    return wrong(shape === HOUR && value === 24 ? ': midnight is 0' : '')
  }
  const named = shape.names?.indexOf(text.toLowerCase()) ?? -1
  if (named >= 0) return shape.min + named
  if (/^\d+$/u.test(text)) return wrong(shape === WEEKDAY && text.length === 4 ? NO_YEAR : '')
  return wrong(shape.names === undefined ? hintFor(text, shape) : hintFor(text, shape) || didYouMean(text, shape.names))
}

const NO_YEAR = ': there is no field for the year: use the options from and until'

/** Why a letter that is valid in another field is not valid here. */
function hintFor(text: string, shape: FieldShape): string {
  if (shape === MONTH && DAYS.includes(text.toLowerCase()))
    return ': the day of the week is the last field; of six the first is the second, and there is none for the year'
  if (/w/iu.test(text) && /^[lw\d]+$/iu.test(text))
    return ': W (nearest weekday) belongs to a day of the month, such as "15W"'
  if (text.includes('#')) return ': # (which one of the month) belongs to the day of the week, such as "MON#2"'
  if (/^l$/iu.test(text) && shape === WEEKDAY) return ': for the last Friday of a month write "FRI#L"'
  if (/^\d*l$/iu.test(text)) return ': L (last) belongs to the day of the month ("L") or of the week ("FRI#L")'
  return ''
}

function readStep(step: string, item: string, { isOne, from }: Bounds, shape: FieldShape): number | string {
  if (isOne)
    return `must have steps after "*" or a range, got ${showText(item)}: write "${from}-${lastOf(shape)}/${step.slice(0, 9)}"`
  const by = /^\d{1,2}$/u.test(step) ? Number(step) : 0
  if (by >= 1 && by <= shape.max) return by
  return `must have steps of 1 to ${shape.max}, got ${showText(item)}`
}

/** A mark that only croner can resolve, in its spelling; undefined when the item is an ordinary value. */
function readMark(item: string, shape: FieldShape, isAlone: boolean): { readonly text: string } | string | undefined {
  if (shape === DAY) return readDayMark(item.toUpperCase(), isAlone)
  const found = shape === WEEKDAY ? /^(?<day>[^#]+?)(?:#(?<which>.*)|(?<last>l))$/iu.exec(item)?.groups : undefined
  if (found === undefined) return undefined
  const day = readValue(found['day'] ?? '', shape)
  if (typeof day === 'string') return day
  const which = (found['last'] ?? found['which'] ?? '').toUpperCase()
  if (!/^[1-5L]$/u.test(which)) return `must have 1 to 5 or L (the last) after "#", got ${showText(item)}`
  return { text: `${day % 7}#${which}` }
}

function readDayMark(item: string, isAlone: boolean): { readonly text: string } | string | undefined {
  if (item === 'L') return { text: item }
  if (/^\d+-\d+W$/u.test(item))
    return `must have W (nearest weekday) after one day, such as "15W", got ${showText(item)}: for Monday to Friday write "MON-FRI" as the day of week`
  if (/^L-\d+W?$/u.test(item))
    return `must be ${expected(DAY)}, got ${showText(item)}: days are not counted back from the last: write "L" (the last), "LW" (the last weekday) or a day such as "28"`
  if (item === 'LW') return isAlone ? { text: item } : 'must have "LW" (the last weekday) alone, not in a list'
  if (!/^\d{1,2}W$/u.test(item)) return undefined
  const day = readValue(item.slice(0, -1), DAY)
  return typeof day === 'string' ? day : { text: `${day}W` }
}

/** The last value of a field; Sunday counts once. */
const lastOf = (shape: FieldShape): number => (shape === WEEKDAY ? 6 : shape.max)

function span(from: number, to: number, by: number): number[] {
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, i) => from + i * by)
}
