import { clockTime, dateOf } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import { timeTicks, valueScale } from './scales.js'
import type { ValueKind, ValueScale } from './scales.js'

/** The drawing is 1,000 × 100 units, stretched to its place: no measuring, no redraw when the window changes. */
export const WIDTH = 1_000
export const HEIGHT = 100

export interface Shapes {
  readonly scale: ValueScale
  readonly ticks: readonly { readonly x: number; readonly text: string }[]
  /** Where nothing is known: hatched, never drawn as zero. */
  readonly gaps: readonly { readonly x: number; readonly width: number }[]
}

export interface ShapesOf {
  readonly at: number
  readonly bucketMs: number
  readonly kind: ValueKind
  readonly columns: readonly (readonly (number | null)[])[]
}

/** The scales of a chart. `before` is the top that it had: it does not jump while a peak leaves. */
export function chartShapes({ at, bucketMs, kind, columns }: ShapesOf, before: number, zone: Zone): Shapes {
  const length = columns[0]?.length ?? 0
  const to = at + length * bucketMs
  const highest = Math.max(0, ...columns.flatMap(knownOf))
  return {
    scale: valueScale(kind, highest, medianOf(knownOf(columns[0] ?? [])), before),
    ticks: timeTicks(at / 1_000, to / 1_000, zone).map((second) => tick(second * 1_000, at, to, zone)),
    gaps: gapsOf(columns, length),
  }
}

function knownOf(values: readonly (number | null)[]): number[] {
  return values.filter((value): value is number => value !== null)
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** A line through the known values; it breaks where nothing is known. */
export function linePath(values: readonly (number | null)[], scale: ValueScale): string {
  return (
    runsOf(values)
      // A value between two gaps is a dot: a line of no length with round ends.
      .map(
        (run) =>
          `M${run.map(([i, value]) => `${xOf(i, values.length)} ${scale.y(value)}`).join('L')}${run.length === 1 ? 'h0' : ''}`,
      )
      .join('')
  )
}

/** The same, filled down to zero. */
export function areaPath(values: readonly (number | null)[], scale: ValueScale): string {
  return runsOf(values)
    .map((run) => {
      const [first, last] = [run[0]?.[0] ?? 0, run.at(-1)?.[0] ?? 0]
      const points = run.map(([i, value]) => `${xOf(i, values.length)} ${scale.y(value)}`).join('L')
      return `M${xOf(first, values.length)} ${HEIGHT}L${points}L${xOf(last, values.length)} ${HEIGHT}Z`
    })
    .join('')
}

/** One column for each bucket that is not zero, with a gap between two. */
export function columnsPath(values: readonly (number | null)[], scale: ValueScale): string {
  const step = WIDTH / Math.max(1, values.length)
  return values
    .map((value, i) =>
      value ? `M${round(i * step + step * 0.1)} ${HEIGHT}V${scale.y(value)}h${round(step * 0.8)}V${HEIGHT}Z` : '',
    )
    .join('')
}

/** Where an instant is, in per cent of the width. */
export function percentAt(instant: number, at: number, bucketMs: number, length: number): number {
  return round((100 * (instant - at)) / Math.max(1, bucketMs * length))
}

function tick(instant: number, from: number, to: number, zone: Zone): Shapes['ticks'][number] {
  const time = clockTime(instant, zone)
  return { x: round((100 * (instant - from)) / (to - from)), text: time === '00:00' ? dateOf(instant, zone) : time }
}

function gapsOf(columns: readonly (readonly (number | null)[])[], length: number): Shapes['gaps'] {
  const isGap = (i: number): boolean => columns.every((values) => (values[i] ?? null) === null)
  const starts = Array.from({ length }, (_, i) => i).filter((i) => isGap(i) && (i === 0 || !isGap(i - 1)))
  return starts.map((from) => {
    const rest = Array.from({ length: length - from }, (_, i) => from + i)
    const to = rest.find((i) => !isGap(i)) ?? length
    return { x: round((WIDTH * from) / length), width: round((WIDTH * (to - from)) / length) }
  })
}

function runsOf(values: readonly (number | null)[]): (readonly [index: number, value: number])[][] {
  const runs: (readonly [number, number])[][] = []
  values.forEach((value, i) => {
    if (value === null) return
    if (i === 0 || values[i - 1] === null || values[i - 1] === undefined) runs.push([])
    runs.at(-1)?.push([i, value])
  })
  return runs
}

function xOf(i: number, length: number): number {
  return round(((i + 0.5) * WIDTH) / Math.max(1, length))
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
