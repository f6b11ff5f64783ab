import type { UpcomingFields, UpcomingRow } from '../../../protocol.js'
import { duration, seconds } from '../../format/duration.js'
import { UNKNOWN, plural, whole } from '../../format/number.js'
import { visible } from '../../format/text.js'
import { clockTime, dateOf, dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import { timeTicks } from '../../parts/chart/scales.js'
import { jobHref, printRoute } from '../../route.js'

/** A queue's lane: bars of 0 to 100, each with what it counts. */
export interface LaneLine {
  readonly queue: string
  readonly total: string
  readonly bars: readonly { readonly key: number; readonly height: number; readonly title: string }[]
}

export function laneLines({ lanes, from, bucketMs }: UpcomingFields, zone: Zone): LaneLine[] {
  return lanes.map(({ queue, counts }) => {
    const most = Math.max(1, ...counts)
    return {
      queue,
      total: whole(counts.reduce((sum, n) => sum + n, 0)),
      bars: counts.map((n, i) => ({
        key: i,
        height: n === 0 ? 0 : Math.max(12, Math.round((100 * n) / most)),
        title: `${clockTime(from + i * bucketMs, zone)}: ${plural(n, 'run')}`,
      })),
    }
  })
}

/** The axis above the lanes: places in per cent. */
export function axisTicks({ from, to }: UpcomingFields, zone: Zone): { readonly x: number; readonly text: string }[] {
  return timeTicks(from / 1_000, to / 1_000, zone).map((at) => {
    const time = clockTime(at * 1_000, zone)
    return { x: (100 * (at * 1_000 - from)) / (to - from), text: time === '00:00' ? dateOf(at * 1_000, zone) : time }
  })
}

/** A run to come as its row shows it. */
export interface UpcomingLine {
  readonly key: string
  readonly at: string
  readonly inText: string
  readonly name: string
  readonly href: string | undefined
  readonly queue: string
  readonly from: string
  readonly takes: string
  readonly id: string | null
  readonly state: UpcomingRow['state']
  readonly schedule: string | null
}

export function upcomingLine(row: UpcomingRow, now: number, zone: Zone): UpcomingLine {
  return {
    key: row.id ?? `${row.schedule}@${row.at}`,
    at: dayAndTime(row.at, now, zone, row.at - now < 3_600_000),
    inText: row.at <= now ? 'due' : `in ${seconds(row.at - now)}`,
    name: visible(row.title ?? row.schedule ?? row.job),
    href:
      row.id !== null
        ? jobHref(row.id)
        : row.schedule === null
          ? undefined
          : printRoute({ page: 'recurring', id: row.schedule }),
    queue: row.queue,
    from: row.from,
    takes: row.usuallyTakesMs === null ? UNKNOWN : duration(row.usuallyTakesMs),
    id: row.id,
    state: row.state,
    schedule: row.schedule,
  }
}

export function leadText({ total, isMore, span }: UpcomingFields): string {
  if (total === 0) return `Nothing is due in the next ${span}.`
  return isMore
    ? `More than ${whole(total)} runs in the next ${span}; the nearest are listed.`
    : `${plural(total, 'run')} in the next ${span}.`
}

/** A page draws so many rows at first: a thousand would be slow to draw and to read. */
export const PAGE_ROWS = 50

/** What the button under the list says; empty when all rows are shown. */
export function leftText(all: number, shown: number): string {
  return all <= shown ? '' : `${whole(Math.min(PAGE_ROWS, all - shown))} more of ${whole(all - shown)}`
}
