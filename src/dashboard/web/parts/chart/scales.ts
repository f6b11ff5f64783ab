import { partsOf } from '../../format/time.js'
import type { Zone } from '../../format/time.js'

/** What a chart counts: jobs, or how long something took. */
export type ValueKind = 'count' | 'duration'

/** The y axis of a chart. Places are from the top, in per cent. */
export interface ValueScale {
  readonly top: number
  readonly isLog: boolean
  readonly y: (value: number) => number
  readonly grid: readonly { readonly y: number; readonly value: number }[]
}

/** A spread beyond this is drawn on a logarithmic axis: else the usual run time is a line on the ground. */
const LOG_SPREAD = 20
/** Lengths of time that read well: halves of them do too. */
const NICE_MS = [
  1, 2, 4, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 4e3, 10e3, 20e3, 60e3, 120e3, 240e3, 600e3, 1_200e3, 3_600e3, 7_200e3,
  14_400e3, 43_200e3, 86_400e3,
]

/** The axis for these values. `usual` is a typical one; `before` is the top that the axis had. */
export function valueScale(kind: ValueKind, highest: number, usual: number, before: number): ValueScale {
  const top = niceMax(kind, highest, before)
  const isLog = kind === 'duration' && usual > 0 && highest > LOG_SPREAD * usual
  const y = (value: number): number => {
    const share = isLog ? Math.log1p(Math.max(0, value)) / Math.log1p(top) : value / top
    return Math.round(1_000 * (1 - Math.min(1, Math.max(0, share)))) / 10
  }
  const middle = isLog ? niceAbove('duration', Math.sqrt(top)) : top / 2
  const values = kind === 'count' && !Number.isInteger(middle) ? [top, 0] : [top, middle, 0]
  return { top, isLog, y, grid: values.map((value) => ({ value, y: y(value) })) }
}

/** How much a value may fall below the top of its scale before the scale shrinks: no jumps while a peak leaves the window. */
const SHRINK = 0.3

/** The top of a scale that begins at zero: it grows in steps, and shrinks only when it is far too large. */
export function niceMax(kind: ValueKind, highest: number, before: number): number {
  const needed = niceAbove(kind, highest)
  return needed > before || highest < before * SHRINK ? needed : before
}

function niceAbove(kind: ValueKind, value: number): number {
  if (!(value > 0)) return 1
  const nice = kind === 'duration' ? NICE_MS.find((each) => each >= value) : undefined
  if (nice !== undefined) return nice
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((each) => each * power >= value) ?? 10) * power
}

const MINUTE = 60
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880].map((minutes) => minutes * MINUTE)
const TICKS_MAX = 8

/** A tick closer to the right end than this share of the axis would be cut. */
const END_SHARE = 0.04

/** At most eight ticks on whole steps of the zone's wall clock, in seconds. */
export function timeTicks(from: number, to: number, zone: Zone): number[] {
  const step = STEPS.find((each) => (to - from) / each <= TICKS_MAX) ?? (STEPS.at(-1) as number)
  const { hour, minute, second } = partsOf(from * 1_000, zone)
  const sinceMidnight = (hour * 60 + minute) * MINUTE + second
  const first = from + ((step - (sinceMidnight % step)) % step)
  const last = to - END_SHARE * (to - from)
  const count = Math.max(0, Math.floor((last - first) / step) + 1)
  return Array.from({ length: count }, (_, i) => first + i * step)
}
