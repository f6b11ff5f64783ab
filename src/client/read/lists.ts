import { progressOf as groupProgressOf } from '../../job/rules/group-progress.js'
import type { GroupProgress } from '../../job/rules/group-progress.js'
import type { WorkerListed } from '../../store/observing/lists.js'
import type { Store } from '../../store/store.js'
import { progressOf } from '../sequence/sequence.js'
import type { SequenceProgress } from '../sequence/sequence.js'
import { checkPage, isNumberCursor, isTextCursor, nameOfCursor, PAGE_LIMIT, textCursor } from './page.js'
import type { Page, PageOptions } from './page.js'

/** A worker as `mill.workers()` lists it. */
export interface WorkerRecord {
  readonly id: string
  readonly host: string
  readonly pid: number
  /** The version of its app; undefined when it is not known. */
  readonly version: string | undefined
  /**
   * 'silent': it has not beaten for a lease; its jobs are about to be taken over. 'dead': they were, in the last ten minutes. A worker that
   * was stopped is not listed.
   */
  readonly state: 'alive' | 'silent' | 'dead'
  readonly startedAt: Date
  /** Its last heartbeat. */
  readonly beatAt: Date
  /** When it was declared dead. */
  readonly diedAt: Date | undefined
  /** Handlers that it runs at once; undefined when it is not known. */
  readonly slots: number | undefined
  /** The names of the jobs that it can run; undefined: any, or not known. */
  readonly names: readonly string[] | undefined
  /** What it runs, by name and queue, and since when the oldest of them runs. */
  readonly running: readonly {
    readonly job: string
    readonly queue: string
    readonly count: number
    readonly since: Date
  }[]
  /** The id of a job whose handler blocks its event loop, so that it stopped its heartbeat. */
  readonly blockedBy: string | undefined
  /** Memory of its process, and the 99th percentile of its event-loop delay: a report every 30 s. */
  readonly memoryBytes: number | undefined
  readonly loopDelayMs: number | undefined
}

/** A group as `mill.groups()` lists it. */
export interface GroupRecord extends GroupProgress {
  readonly id: string
}

/** A sequence as `mill.sequences()` lists it. */
export interface SequenceRecord extends SequenceProgress {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly key: string | undefined
  readonly createdAt: Date
}

/** One page of workers in the order of their ids. */
export async function listWorkers(store: Store, options: PageOptions = {}): Promise<Page<WorkerRecord>> {
  checkPage('workers()', options, isTextCursor('workers'))
  const { limit = PAGE_LIMIT, cursor } = options
  const after = nameOfCursor('workers', cursor)
  const { now, rows, isMore } = await store.observing.listWorkers({ limit, after, withDead: true })
  const records = rows.map((row) => toWorkerRecord(row, now))
  return { rows: records, cursor: isMore ? textCursor('workers', records.at(-1)?.id ?? '') : undefined }
}

export function toWorkerRecord(
  { about, beatAt, leaseMs, startedAt, diedAt, blockedBy, running, ...row }: WorkerListed,
  now: number,
): WorkerRecord {
  return {
    ...row,
    version: about?.version,
    state: diedAt !== null ? 'dead' : isAlive({ beatAt, leaseMs }, now) ? 'alive' : 'silent',
    startedAt: new Date(startedAt),
    beatAt: new Date(beatAt),
    diedAt: diedAt === null ? undefined : new Date(diedAt),
    slots: about?.slots,
    names: about?.names,
    running: running.map((each) => ({ ...each, since: new Date(each.since) })),
    blockedBy: blockedBy ?? undefined,
    memoryBytes: about?.memoryBytes,
    loopDelayMs: about?.loopDelayMs,
  }
}

/** A worker without a lease time has no end of its lease: it is a test's. */
export function isAlive(worker: { readonly beatAt: number; readonly leaseMs: number | null }, now: number): boolean {
  return worker.leaseMs === null || now - worker.beatAt <= worker.leaseMs
}

/** One page of groups in the order of their names. */
export async function listGroups(store: Store, options: PageOptions = {}): Promise<Page<GroupRecord>> {
  checkPage('groups()', options, isTextCursor('groups'))
  const { limit = PAGE_LIMIT, cursor } = options
  const { rows, isMore } = await store.observing.listGroups({ limit, after: nameOfCursor('groups', cursor) })
  const records = rows.map(({ id, ...row }) => ({ id, ...groupProgressOf(row, undefined) }))
  return { rows: records, cursor: isMore ? textCursor('groups', records.at(-1)?.id ?? '') : undefined }
}

/** One page of sequences, the newest first. */
export async function listSequences(store: Store, options: PageOptions = {}): Promise<Page<SequenceRecord>> {
  checkPage('sequences()', options, isNumberCursor)
  const { limit = PAGE_LIMIT, cursor } = options
  const before = cursor === undefined ? null : Number(cursor)
  const { rows, isMore } = await store.observing.listSequences({ limit, before })
  const records = rows.map((row) => ({
    id: row.id,
    job: row.name,
    queue: row.queue,
    key: row.key ?? undefined,
    createdAt: new Date(row.createdAt),
    ...progressOf(row),
  }))
  return { rows: records, cursor: isMore ? String(rows.at(-1)?.ref) : undefined }
}
