import type { GroupRow, SequenceRow, Verb } from '../../../protocol.js'
import type { Segment } from '../../parts/bar.js'
import type { MarkName } from '../../parts/state.js'
import { duration, seconds } from '../../format/duration.js'
import { UNKNOWN, plural, whole } from '../../format/number.js'
import { shortId, visible } from '../../format/text.js'
import { clockTime, dayAndTime } from '../../format/time.js'
import type { Zone } from '../../format/time.js'
import { jobsHref, printRoute, term } from '../../route.js'

/** A group as its row shows it. */
export interface GroupLine {
  readonly id: string
  readonly href: string
  readonly segments: readonly Segment[]
  readonly total: number
  readonly ended: string
  readonly failed: number
  readonly failedHref: string
  readonly note: string
  readonly isUnfinished: boolean
  readonly isSealed: boolean
  readonly mark: MarkName
  readonly word: string
}

export function groupLine(row: GroupRow, now: number, zone: Zone): GroupLine {
  const { counts } = row
  const inGroup = term('group', row.id)
  const isUnfinished = row.unfinished > 0
  return {
    id: row.id,
    href: printRoute({ page: 'groups', id: row.id }),
    segments: [
      { kind: 'done', value: counts.done },
      { kind: 'failed', value: counts.failed },
      { kind: 'cancelled', value: counts.cancelled },
      { kind: 'running', value: counts.running },
    ],
    total: row.total,
    ended: `${whole(row.total - row.unfinished)} of ${whole(row.total)}`,
    failed: counts.failed,
    failedHref: jobsHref(`${inGroup} state:failed`),
    note: noteOf(row, now, zone),
    isUnfinished,
    isSealed: row.sealed,
    mark: row.completedAt !== null ? 'done' : isUnfinished ? 'running' : 'unknown',
    word: row.completedAt !== null ? 'complete' : row.sealed ? 'sealed' : 'open',
  }
}

function noteOf({ completedAt, emptyInMs, unfinished }: GroupRow, now: number, zone: Zone): string {
  if (completedAt !== null) return `ended ${dayAndTime(completedAt, now, zone)}`
  if (unfinished === 0) return 'all members have ended'
  return emptyInMs === null ? `${plural(unfinished, 'job')} left` : `empty in ${seconds(emptyInMs)}`
}

/** A sequence as its row shows it. */
export interface SequenceLine {
  readonly id: string
  /** Its key, or a part of its id. */
  readonly name: string
  readonly href: string
  readonly mark: MarkName
  readonly word: string
  readonly segments: readonly Segment[]
  readonly total: number
  readonly done: string
  readonly note: string
  readonly isError: boolean
  readonly state: SequenceRow['state']
  /** The verb that the row most probably needs. */
  readonly likely: { readonly verb: Verb; readonly label: string } | undefined
}

const MARKS: Readonly<Record<SequenceRow['state'], MarkName>> = {
  waiting: 'ready',
  running: 'running',
  paused: 'paused',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}

export function sequenceLine(row: SequenceRow, now: number, zone: Zone): SequenceLine {
  return {
    id: row.id,
    name: row.key ?? shortId(row.id),
    href: printRoute({ page: 'sequences', id: row.id }),
    mark: MARKS[row.state],
    word: row.requested === 'pause' ? `finishing item ${whole(row.done + 1)}` : row.state,
    segments: [
      { kind: 'done', value: row.done },
      { kind: 'failed', value: row.state === 'failed' ? Math.max(1, row.total / 100) : 0 },
    ],
    total: Math.max(1, row.total),
    done: row.total === 0 ? '0 items' : `${whole(row.done)} of ${whole(row.total)}`,
    note: sequenceNote(row, now, zone),
    isError: row.error !== null,
    state: row.state,
    likely: LIKELY[row.state],
  }
}

const LIKELY: Partial<Record<SequenceRow['state'], { verb: Verb; label: string }>> = {
  waiting: { verb: 'sequence.start', label: 'Start' },
  running: { verb: 'sequence.pause', label: 'Pause' },
  paused: { verb: 'sequence.resume', label: 'Resume' },
  failed: { verb: 'sequence.resume', label: 'Resume' },
}

function sequenceNote({ state, error, perItemMs, endsAt }: SequenceRow, now: number, zone: Zone): string {
  if (error !== null)
    return visible(`stopped at item ${whole(error.index + 1)}: ${error.name}: ${error.message.split('\n')[0]}`)
  const pace = perItemMs === null ? '' : `${duration(perItemMs)} per item`
  const end = state === 'running' && endsAt !== null ? `ends ≈ ${dayAndTime(endsAt, now, zone)}` : ''
  return [pace, end].filter((each) => each !== '').join(', ')
}

/** One cell for each item, or for a few when there are many. */
export interface ItemCell {
  readonly key: number
  readonly kind: 'done' | 'failed' | 'running' | 'waiting'
  readonly title: string
}

const CELLS_MAX = 500

export function itemCells({ done, total, state }: Pick<SequenceRow, 'done' | 'total' | 'state'>): ItemCell[] {
  const perCell = Math.max(1, Math.ceil(total / CELLS_MAX))
  const cells = Math.ceil(total / perCell)
  return Array.from({ length: cells }, (_, i): ItemCell => {
    const last = Math.min(total, (i + 1) * perCell)
    const isCurrent = done < last && done >= i * perCell
    const kind =
      last <= done
        ? 'done'
        : !isCurrent
          ? 'waiting'
          : state === 'failed'
            ? 'failed'
            : state === 'running'
              ? 'running'
              : 'waiting'
    const name = perCell === 1 ? `item ${whole(i + 1)}` : `items ${whole(i * perCell + 1)} to ${whole(last)}`
    return { key: i, kind, title: `${name}: ${kind}` }
  })
}

/** A recorded item as its row shows it. */
export interface ItemLine {
  readonly key: string
  readonly number: string
  readonly result: string
  readonly took: string
  readonly at: string
  readonly log: readonly string[]
}

export function itemLine(
  item: {
    readonly index: number
    readonly result: string | null
    readonly reason: string | null
    readonly log: readonly string[]
    readonly startedAt: number
    readonly endedAt: number
  },
  zone: Zone,
): ItemLine {
  return {
    key: String(item.index),
    number: whole(item.index + 1),
    result: visible(item.result ?? item.reason ?? UNKNOWN),
    took: duration(item.endedAt - item.startedAt),
    at: clockTime(item.endedAt, zone, true),
    log: item.log.map(visible),
  }
}

/** Counts by state × queue: each is a link. */
export interface CrossRow {
  readonly queue: string
  readonly cells: readonly { readonly state: string; readonly count: number; readonly href: string }[]
}

export function crossRows(
  id: string,
  queues: readonly { readonly queue: string; readonly counts: GroupRow['counts'] }[],
): CrossRow[] {
  return queues.map(({ queue, counts }) => ({
    queue,
    cells: Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([state, count]) => ({
        state,
        count,
        href: jobsHref(`${term('group', id)} ${term('queue', queue)} state:${state}`),
      })),
  }))
}
