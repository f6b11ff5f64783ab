import type { QueueRow } from '../../../protocol.js'
import type { MarkName } from '../../parts/state.js'
import { duration, seconds } from '../../format/duration.js'
import { UNKNOWN, count, percent, rate } from '../../format/number.js'
import { clockTime, dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import { jobsHref, printRoute, term } from '../../route.js'

/** A queue as its row shows it. */
export interface QueueLine {
  readonly name: string
  readonly href: string
  readonly mark: MarkName
  readonly word: string
  readonly why: string
  readonly waiting: number
  readonly waitingHref: string
  readonly oldest: string
  readonly running: number
  readonly slots: number | null
  readonly runningText: string
  readonly runningHref: string
  readonly perMinute: string
  readonly spark: QueueRow['spark']
  readonly failed: number
  readonly failedHref: string
  readonly retried: string
  readonly waitP95: string
  readonly emptyIn: string
  readonly isPaused: boolean
}

export function queueLine(row: QueueRow, now: number, zone: Zone): QueueLine {
  const inQueue = term('queue', row.name)
  const slots = row.slots ?? row.limit
  return {
    name: row.name,
    href: printRoute({ page: 'queues', id: row.name }),
    ...stateOf(row, now, zone),
    waiting: row.waiting.n,
    waitingHref: jobsHref(`${inQueue} state:ready,retrying,blocked`),
    oldest: row.oldestDueAt === null ? UNKNOWN : seconds(Math.max(0, now - row.oldestDueAt)),
    running: row.running,
    slots,
    runningText: slots === null ? count(row.running) : `${count(row.running)}/${count(slots)}`,
    runningHref: jobsHref(`${inQueue} state:running`),
    perMinute: rate(row.perMinute),
    spark: row.spark,
    failed: row.failed.n,
    failedHref: jobsHref(`${inQueue} state:failed`),
    retried: row.retryPercent === null ? UNKNOWN : percent(row.retryPercent / 100),
    waitP95: row.waitP95Ms === null ? UNKNOWN : duration(row.waitP95Ms),
    emptyIn: emptyText(row, now, zone),
    isPaused: row.state === 'paused',
  }
}

function stateOf(row: QueueRow, now: number, zone: Zone): Pick<QueueLine, 'mark' | 'word' | 'why'> {
  const held = row.outages.reduce((total, { waiting }) => total + waiting, 0)
  const why = row.outages.map(({ text }) => text).join(' ')
  switch (row.state) {
    case 'open':
      return { mark: 'open', word: 'open', why }
    case 'paused': {
      const until = row.pausedUntil === null ? '' : ` until ${dayAndTime(row.pausedUntil, now, zone)}`
      return {
        mark: 'paused',
        word: `paused${until}`,
        why: row.pausedAt === null ? '' : `since ${clockTime(row.pausedAt, zone)}`,
      }
    }
    case 'probing':
      return { mark: 'probing', word: held === 0 ? 'probing' : `probing, ${count(held)} held`, why }
    case 'opening':
      return { mark: 'probing', word: 'opening again', why }
    default:
      return row.state satisfies never
  }
}

/** `now`, `2 h 10 m`, `grows by 40/min`; of a paused queue when it may begin. */
export function emptyText(row: QueueRow, now: number, zone: Zone): string {
  if (row.waiting.n === 0) return 'now'
  if (row.state === 'paused')
    return row.pausedUntil === null ? 'not while paused' : `after ${dayAndTime(row.pausedUntil, now, zone)}`
  if (row.emptyInMs === 0) return 'now'
  if (row.emptyInMs !== null) return seconds(row.emptyInMs)
  if (row.growsPerMinute !== null && row.growsPerMinute > 0) return `grows by ${rate(row.growsPerMinute)}/min`
  return UNKNOWN
}

/** The rows that a filter of name and state leaves. */
export function matching(rows: readonly QueueRow[], name: string, state: string): QueueRow[] {
  const wanted = name.toLowerCase()
  return rows.filter((row) => row.name.toLowerCase().includes(wanted) && (state === '' || row.state === state))
}
