import { progressOf as groupProgressOf } from '../../job/rules/group-progress.js'
import type { GroupProgress } from '../../job/rules/group-progress.js'
import type { JobRecord } from '../../job/record.js'
import type { LiveState } from '../../job/live-state.js'
import { isSameJson } from '../../live/live.js'
import type { LiveContext } from '../../live/live.js'
import { evenPace } from '../../live/observed-reads.js'
import type { JobRow, Store } from '../../store/store.js'
import { toLiveQueue } from '../commands/queues.js'
import type { LiveQueue } from '../commands/queues.js'
import { toWorkerRecord } from './lists.js'
import type { WorkerRecord } from './lists.js'
import { readProgress } from '../sequence/sequence.js'
import type { SequenceProgress, SequenceTarget } from '../sequence/sequence.js'

/** Queues and workers. */
const SLOW_PACE = evenPace(1_000, 1_000)
const WORKERS_MAX = 1_000

export interface WatchParts {
  readonly live: LiveContext
  readonly store: Store
  readonly record: (row: JobRow) => JobRecord
}

/** Live state that a client gives: one read of the store for all jobs that are watched, one for each group and sequence. */
export interface Watches {
  readonly job: (id: string) => LiveState<JobRecord | undefined>
  readonly group: (id: string) => LiveState<GroupProgress>
  readonly sequence: (target: SequenceTarget) => LiveState<SequenceProgress | undefined>
  readonly queues: () => LiveState<readonly LiveQueue[]>
  readonly workers: () => LiveState<readonly WorkerRecord[]>
}

export function watchesOf({ live, store, record }: WatchParts): Watches {
  const sequence = live.kind<SequenceProgress | undefined, SequenceProgress | undefined>({
    read: (targets) => Promise.all(targets.map((target) => readProgress(store, JSON.parse(target) as SequenceTarget))),
    isSame: isSameJson,
    valueOf: (progress) => progress,
  })
  return {
    job: live.kind<JobRow | undefined, JobRecord | undefined>({
      read: (ids) => store.jobs.readJobs(ids),
      isSame: isSameRow,
      valueOf: (row) => (row === undefined ? undefined : record(row)),
    }),
    group: live.kind<GroupProgress, GroupProgress>({
      read: (ids) => Promise.all(ids.map(async (id) => groupProgressOf(await store.groups.readGroup(id), undefined))),
      isSame: isSameJson,
      valueOf: (progress) => progress,
    }),
    sequence: (target) => sequence(JSON.stringify(target)),
    queues: live.single<readonly LiveQueue[]>({
      pace: SLOW_PACE,
      read: async () => [(await store.observing.listQueues()).map(toLiveQueue)],
      isSame: isSameJson,
      valueOf: (queues) => queues,
    }),
    workers: live.single<readonly WorkerRecord[]>({
      pace: SLOW_PACE,
      read: async () => {
        const { now, rows } = await store.observing.listWorkers({ limit: WORKERS_MAX, after: '', withDead: true })
        return [rows.map((row) => toWorkerRecord(row, now))]
      },
      isSame: isSameJson,
      valueOf: (workers) => workers,
    }),
  }
}

/** Rows are compared before they are decoded: most reads find most jobs unchanged. */
function isSameRow(before: JobRow | undefined, now: JobRow | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  return (Object.keys(now) as (keyof JobRow)[]).every((field) => isSameField(before[field], now[field]))
}

function isSameField(before: unknown, now: unknown): boolean {
  if (before instanceof Uint8Array && now instanceof Uint8Array) return Buffer.compare(before, now) === 0
  if (Array.isArray(before) && Array.isArray(now)) return before.join() === now.join()
  return Object.is(before, now)
}
