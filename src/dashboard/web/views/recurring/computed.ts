import type { RecurringRow, Tick } from '../../../protocol.js'
import { duration, seconds } from '../../format/duration.js'
import { UNKNOWN } from '../../format/number.js'
import { dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import type { MarkName } from '../../parts/state.js'
import { jobHref, printRoute } from '../../route.js'

/** A cell of the strip of ticks. */
export interface TickCell {
  readonly key: string
  readonly sign: string
  readonly ink: MarkName | 'quiet'
  readonly href: string | undefined
  readonly title: string
}

const SIGNS = { ran: '✓', 'caught up': '↷', skipped: '⊘', 'run now': '◆', backfilled: '◇' } as const

export function tickCell(tick: Tick, now: number, zone: Zone): TickCell {
  const hasFailed = tick.state === 'failed'
  const took = tick.tookMs === null ? '' : `, took ${duration(tick.tookMs)}`
  const why = tick.reason === null ? '' : `: ${tick.reason}`
  return {
    key: `${tick.at}${tick.outcome}`,
    sign: hasFailed ? '✕' : SIGNS[tick.outcome],
    ink: hasFailed ? 'failed' : tick.outcome === 'skipped' ? 'retrying' : tick.outcome === 'ran' ? 'done' : 'quiet',
    href: tick.job === null ? undefined : jobHref(tick.job),
    title: `${dayAndTime(tick.at, now, zone, true)} ${hasFailed ? 'its job failed' : tick.outcome}${why}${took}`,
  }
}

/** A recurring job as its row shows it. */
export interface RecurringLine {
  readonly id: string
  readonly href: string
  readonly words: string
  readonly rule: string
  readonly zoneNote: string
  readonly next: string
  readonly nextIn: string
  readonly cells: readonly TickCell[]
  readonly policy: string
  readonly isPaused: boolean
  readonly warning: string
}

export function recurringLine(row: RecurringRow, now: number, zone: Zone): RecurringLine {
  return {
    id: row.id,
    href: printRoute({ page: 'recurring', id: row.id }),
    words: row.words,
    rule: row.rule,
    zoneNote: row.timezone === viewersZone(zone) ? '' : row.timezone,
    next: row.paused
      ? 'paused'
      : row.nextAt === null
        ? UNKNOWN
        : dayAndTime(row.nextAt, now, zone, row.nextAt - now < 3_600_000),
    nextIn: row.paused || row.nextAt === null ? '' : `in ${seconds(Math.max(0, row.nextAt - now))}`,
    cells: row.ticks.map((tick) => tickCell(tick, now, zone)),
    policy: `${row.missed} · ${row.overlap}`,
    isPaused: row.paused,
    warning: row.warning ?? '',
  }
}

/** What a row of the ledger says. */
export interface LedgerLine {
  readonly key: string
  readonly at: number
  readonly cell: TickCell
  readonly outcome: string
  readonly why: string
  readonly took: string
}

export function ledgerLine(tick: Tick, now: number, zone: Zone): LedgerLine {
  const cell = tickCell(tick, now, zone)
  return {
    key: cell.key,
    at: tick.at,
    cell,
    outcome: tick.state === 'failed' ? `${tick.outcome}, failed` : tick.outcome,
    why: tick.reason ?? '',
    took: tick.tookMs === null ? UNKNOWN : duration(tick.tookMs),
  }
}

function viewersZone(zone: Zone): string {
  return zone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
}

export interface BackfillArguments {
  readonly from: number | undefined
  readonly to: number | undefined
  readonly problem: string | undefined
}

/** The two instants of a backfill, as `datetime-local` fields give them. */
export function backfillArguments(from: string, to: string): BackfillArguments {
  const [start, end] = [Date.parse(from), Date.parse(to)]
  if (Number.isNaN(start) || Number.isNaN(end))
    return { from: undefined, to: undefined, problem: 'Choose both instants.' }
  if (end <= start) return { from: start, to: end, problem: 'The second instant must be after the first.' }
  return { from: start, to: end, problem: undefined }
}
