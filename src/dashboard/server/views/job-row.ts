import type { Why } from '../../../job/why/why.js'
import type { JobRecord } from '../../../job/record.js'
import { isWorkflow } from '../../../job/definition/brands.js'
import type { JobRow, WhyShown } from '../../protocol/jobs.js'
import type { Parts } from '../parts.js'
import { sealedError } from '../show/redact.js'
import type { Show } from '../show/redact.js'
import { link, ms } from './reads.js'

/** A record as a row of a list. */
export function jobRow(parts: Parts, record: JobRecord, show: Show, why?: Why): JobRow {
  const { state, attempts, progress, tick, title } = record
  const listed = parts.mill.has(record.job) ? parts.mill.jobs().find(({ name }) => name === record.job) : undefined
  const thrown =
    record.error ?? (state === 'done' ? undefined : attempts.findLast(({ error }) => error !== undefined)?.error)
  const last = attempts.at(-1)
  const isSealed = parts.isSealed(record.job)
  return {
    id: record.id,
    job: record.job,
    title: show.text(title),
    queue: record.queue,
    state,
    why: why === undefined ? null : shownWhy(why, show),
    error: show.errorLine(isSealed ? sealedError(thrown) : thrown),
    reason: isSealed && thrown !== undefined ? null : show.text(record.reason),
    attempt: record.attempt,
    attemptMax: listed === undefined ? null : listed.retryLimit + 1,
    priority: record.priority,
    labels: record.labels,
    key: record.key ?? null,
    group: record.group ?? null,
    schedule: tick?.schedule ?? null,
    kind: listed === undefined ? null : isWorkflow(listed.job) ? 'workflow' : 'job',
    progress: progress === undefined ? null : { done: progress.done, total: progress.total ?? null },
    createdAt: record.createdAt.getTime(),
    dueAt: record.dueAt.getTime(),
    startedAt: ms(record.startedAt),
    settledAt: ms(record.settledAt),
    changedAt: changedAt(record),
    tookMs:
      state === 'running' || last === undefined ? null : Math.max(0, last.endedAt.getTime() - last.startedAt.getTime()),
    step: null,
  }
}

export function shownWhy({ reason, text, blockers }: Why, show: Show): WhyShown {
  return {
    reason,
    text: show.text(text),
    blockers: blockers.map(({ kind, id }) => ({ kind, id, link: blockerLink(kind, id) })),
  }
}

function blockerLink(kind: Why['blockers'][number]['kind'], id: string): string | null {
  if (kind === 'job') return link('job', id)
  if (kind === 'queue') return link('queues', id)
  return kind === 'worker' ? '#/workers' : null
}

export function changedAt({ createdAt, startedAt, settledAt, attempts, state }: JobRecord): number {
  const ended = state === 'running' ? undefined : attempts.at(-1)?.endedAt
  return Math.max(createdAt.getTime(), startedAt?.getTime() ?? 0, settledAt?.getTime() ?? 0, ended?.getTime() ?? 0)
}

const WHY_MAX = 50

/** Rows with the reason of each that waits: one read of the store for 50 of them. */
export async function readWhys({ mill }: Parts, records: readonly JobRecord[]): Promise<ReadonlyMap<string, Why>> {
  const waiting = records.filter(
    ({ state }) => state !== 'done' && state !== 'failed' && state !== 'cancelled' && state !== 'running',
  )
  const ids = waiting.slice(0, WHY_MAX).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const whys = await mill.why(ids)
  return new Map(ids.flatMap((id, i) => (whys[i] === undefined ? [] : [[id, whys[i]] as const])))
}
