import { partsOf } from '../../format/time.js'
import type { Zone } from '../../format/time.js'

/** How much a value may fall below the top of its scale before the scale shrinks: no jumps while a peak leaves the window. */
const SHRINK = 0.3

/** The top of a scale that begins at zero: it grows in 1-2-5 steps, and shrinks only when it is far too large. */
export function niceMax(highest: number, before: number): number {
  const needed = stepAbove(highest)
  return needed > before || highest < before * SHRINK ? needed : before
}

function stepAbove(highest: number): number {
  if (!(highest > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(highest))
  const step = [1, 2, 5, 10].find((each) => each * power >= highest) ?? 10
  return step * power
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
