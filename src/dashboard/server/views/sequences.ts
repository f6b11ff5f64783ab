import type { SequenceRecord } from '../../../client/read/lists.js'
import type { SequenceOutput } from '../../../client/sequence/sequence.js'
import type { SequenceState } from '../../../job/rules/sequence.js'
import type { SequenceFields, SequenceItemRow, SequenceRow, SequencesFields } from '../../protocol/rows.js'
import type { Verb } from '../../protocol/verbs.js'
import { isUuid } from '../ids.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import { sealedError } from '../show/redact.js'
import type { Show } from '../show/redact.js'
import { asPage } from './reads.js'

const PAGE = 50
const ITEMS = 100
const RESULT_MAX = 2_000
const RATE_MIN = 2

/** Sequences, the newest first and unfinished ones before. */
export async function readSequences(parts: Parts, cursor?: string): Promise<MakeView> {
  const page = await asPage(() => parts.mill.sequences({ limit: PAGE, cursor }))
  const isOver = (state: SequenceState): boolean => state === 'done' || state === 'cancelled'
  const records = page.rows.toSorted((a, b) => Number(isOver(a.state)) - Number(isOver(b.state)))
  return (show) => ({
    fields: {
      total: page.cursor === undefined && cursor === undefined ? records.length : null,
    } satisfies SequencesFields,
    rows: records.map((record) => [record.id, sequenceRow(parts, record, [], show)]),
    cursor: page.cursor ?? null,
    absent: { perItemMs: 'How long an item takes is on the page of the sequence.' },
  })
}

/** Verbs by state, as the engine's table has them. */
const APPLY: Readonly<Record<SequenceState, readonly Verb[]>> = {
  waiting: ['sequence.start', 'sequence.cancel', 'sequence.reset'],
  running: ['sequence.pause', 'sequence.cancel', 'sequence.reset'],
  paused: ['sequence.resume', 'sequence.cancel', 'sequence.reset'],
  failed: ['sequence.resume', 'sequence.reset'],
  done: ['sequence.reset'],
  cancelled: ['sequence.reset'],
}

/** One sequence: its newest items, in order, and what applies now. */
export async function readSequence(parts: Parts, id: string): Promise<MakeView> {
  if (!isUuid(id)) throw new ViewGone(`There is no sequence "${id}": the id of a sequence is a UUID.`)
  const sequence = parts.mill.sequence(id)
  const [progress, record] = await Promise.all([sequence.progress().catch(() => undefined), parts.mill.get(id)])
  if (progress === undefined || record === undefined) throw new ViewGone('This sequence was deleted or never existed.')
  const items = await sequence.output({ from: Math.max(0, progress.done - ITEMS), limit: ITEMS })
  const { job, queue, key, createdAt } = record
  const isSealed = parts.isSealed(job)
  return (show) => ({
    fields: {
      sequence: sequenceRow(parts, { ...progress, id, job, queue, key, createdAt }, items, show),
      lastError:
        progress.error === undefined ? null : show.error(isSealed ? sealedError(progress.error) : progress.error),
      verbs: APPLY[progress.state],
      logTail: isSealed ? [] : show.lines(progress.item?.log),
    } satisfies SequenceFields,
    rows: items.map((item) => [String(item.index), itemRow(item, show, isSealed)]),
  })
}

function sequenceRow(parts: Parts, record: SequenceRecord, items: readonly SequenceOutput[], show: Show): SequenceRow {
  const { id, job, queue, key, state, requested, done, total, error, item, createdAt } = record
  const line = show.errorLine(error === undefined ? undefined : parts.isSealed(job) ? sealedError(error) : error)
  const perItemMs = paceOf(items)
  return {
    id,
    job,
    queue,
    key: key ?? null,
    state,
    requested: requested ?? null,
    done,
    total,
    error: line === null || error === undefined ? null : { ...line, index: error.index },
    item: item === undefined ? null : { done: item.done, total: item.total ?? null },
    createdAt: createdAt.getTime(),
    perItemMs,
    endsAt: perItemMs === null || state !== 'running' ? null : parts.world.clock.now() + perItemMs * (total - done),
  }
}

/** From the first to the last of the newest items. */
function paceOf(items: readonly SequenceOutput[]): number | null {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined || items.length < RATE_MIN) return null
  return Math.max(0, (last.endedAt.getTime() - first.startedAt.getTime()) / items.length)
}

function itemRow(item: SequenceOutput, show: Show, isSealed: boolean): SequenceItemRow {
  const { index, result, reason, log, attempt, startedAt, endedAt } = item
  return {
    index,
    result: result === undefined ? null : isSealed ? 'encrypted' : show.value(result, 'result', RESULT_MAX).text,
    reason: show.text(reason),
    log: isSealed ? [] : show.lines(log),
    attempt,
    startedAt: startedAt.getTime(),
    endedAt: endedAt.getTime(),
  }
}
