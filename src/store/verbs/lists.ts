import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { GroupListed } from '../groups.js'
import type {
  ListPage,
  ListQuery,
  RunningJobs,
  WorkerAbout,
  WorkerListed,
  WorkerListQuery,
} from '../observing/lists.js'
import type { SequenceListed } from '../sequences.js'
import { DEAD_KEPT_MS } from '../workers.js'
import { readGroup } from './groups.js'
import { readSequence } from './sequences.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** One page of workers in the order of their ids, with what each runs. */
export function* listWorkers(
  session: VerbSession,
  { limit, after, withDead = false }: WorkerListQuery,
): Verb<ListPage<WorkerListed>> {
  const registered = yield* awaited(session.rows<StoredWorker>('listWorkers', after, limit + 1))
  const dead = withDead ? yield* listDead(session, after, limit + 1) : []
  const stored = [...registered, ...dead].toSorted((one, other) => (one.id < other.id ? -1 : 1)).slice(0, limit + 1)
  const page = stored.slice(0, limit)
  const ids = JSON.stringify(page.map(({ id }) => id))
  const running = page.length === 0 ? [] : yield* awaited(session.rows<StoredRunning>('runningOf', ids))
  const now = yield* awaited(session.now())
  const rows = page.map((row) => toWorker(row, running))
  return { now, rows, isMore: stored.length > limit }
}

function* listDead(session: VerbSession, after: string, limit: number): Verb<StoredWorker[]> {
  const now = yield* awaited(session.now())
  return yield* awaited(session.rows<StoredWorker>('listDeadWorkers', after, now - DEAD_KEPT_MS, limit))
}

interface StoredWorker {
  readonly id: string
  readonly host: string
  readonly pid: Numeric
  readonly startedAt: Numeric
  readonly beatAt: Numeric
  readonly leaseMs: Numeric | null
  readonly about: string | null
  readonly blockedBy: string | null
  readonly diedAt?: Numeric | undefined
}

interface StoredRunning {
  readonly worker: string
  readonly job: string
  readonly queue: string
  readonly count: Numeric
  readonly since: Numeric
}

function toWorker({ id, host, blockedBy, ...row }: StoredWorker, running: readonly StoredRunning[]): WorkerListed {
  return {
    id,
    host,
    pid: numberOf(row.pid),
    startedAt: numberOf(row.startedAt),
    beatAt: numberOf(row.beatAt),
    leaseMs: numberOrNull(row.leaseMs),
    diedAt: numberOrNull(row.diedAt),
    blockedBy,
    about: row.about === null ? undefined : (JSON.parse(row.about) as WorkerAbout),
    running: running.filter(({ worker }) => worker === id).map(toRunning),
  }
}

function toRunning({ job, queue, count, since }: StoredRunning): RunningJobs {
  return { job, queue, count: numberOf(count), since: numberOf(since) }
}

/** One page of groups in the order of their names. */
export function* listGroups(session: VerbSession, { limit, after }: ListQuery): Verb<ListPage<GroupListed>> {
  const stored = yield* awaited(session.rows<{ readonly grp: string }>('listGroups', after, limit + 1))
  const rows: GroupListed[] = []
  for (const { grp } of stored.slice(0, limit)) {
    const { sealedAt, completedAt, counts } = yield* readGroup(session, grp)
    rows.push({ id: grp, sealedAt, completedAt, counts })
  }
  return { now: yield* awaited(session.now()), rows, isMore: stored.length > limit }
}

/** One page of sequences, the newest first, before this ref. */
export function* listSequences(
  session: VerbSession,
  { limit, before }: { readonly limit: number; readonly before: number | null },
): Verb<ListPage<SequenceListed>> {
  const from = before ?? Number.MAX_SAFE_INTEGER
  const stored = yield* awaited(session.rows<StoredListed>('listSequences', from, limit + 1))
  const rows: SequenceListed[] = []
  for (const { id, key, created_at } of stored.slice(0, limit)) {
    const row = yield* readSequence(session, id)
    if (row !== undefined) rows.push({ ...row, id, key, createdAt: numberOf(created_at) })
  }
  return { now: yield* awaited(session.now()), rows, isMore: stored.length > limit }
}

interface StoredListed {
  readonly id: string
  readonly key: string | null
  readonly created_at: Numeric
}
