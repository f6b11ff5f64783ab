import type { State } from '../../job/rules/states.js'
import type { JobLimits } from '../../job/limits/limits.js'
import { isFinal } from '../../job/rules/states.js'
import { WHY_PARENTS_MAX, WHY_WORKERS_MAX } from '../observing/why.js'
import type { WhyFacts, WhyRow } from '../observing/why.js'
import type { QueueFacts } from '../queues.js'
import type { JobRow } from '../store.js'
import { numberOf } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { JobSteps } from './job-steps.js'
import { listWorkers } from './lists.js'
import { readQueueState } from './outages.js'
import { readPause } from './pauses.js'
import { readBounds } from './why-bounds.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** Reads what `decideWhy` needs of these jobs. Workers and queues are read once for all of them. */
export function* readWhy(
  session: VerbSession & JobSteps,
  ids: readonly string[],
  limits: ReadonlyMap<string, JobLimits>,
): Verb<WhyFacts<JobRow, QueueFacts>> {
  const rows = yield* awaited(session.readJobs(ids))
  const waiting = rows.filter((row): row is JobRow => row !== undefined && !isFinal(row.state))
  const refs = session.list(waiting.map(({ ref }) => ref))
  const none = waiting.length === 0
  const parents = none ? [] : yield* awaited(session.rows<StoredParent>('whyParents', refs, WHY_PARENTS_MAX))
  const holders = none ? [] : yield* awaited(session.rows<StoredHolder>('whyHolders', refs))
  const waits = none ? [] : yield* awaited(session.rows<StoredWaits>('whyWaits', refs))
  const { now, rows: workers } = yield* listWorkers(session, { limit: WHY_WORKERS_MAX, after: '' })
  const queues = new Map<string, QueueFacts>()
  for (const queue of new Set(waiting.map((row) => row.queue))) {
    const pause = yield* readPause(session, queue)
    queues.set(queue, { ...(yield* readQueueState(session, queue)), pause })
  }
  const ready = waiting.filter((row) => row.state === 'ready' && !row.claimed)
  const bounds = yield* readBounds(session, { jobs: ready, limits, queues, now })
  const of = (row: JobRow): WhyRow<JobRow> => ({
    row,
    ...(bounds.get(row.ref) ?? { limits: [], rates: [] }),
    ...waitsOf(waits.find(({ ref }) => numberOf(ref) === row.ref)),
    parents: parents
      .filter(({ child }) => numberOf(child) === row.ref)
      .map(({ id, job, state }) => ({ id, job, state })),
    holder: holders.find(({ ref }) => numberOf(ref) === row.ref)?.worker,
  })
  return { now, workers, queues, jobs: rows.map((row) => (row === undefined ? undefined : of(row))) }
}

interface StoredParent {
  readonly child: Numeric
  readonly id: string
  readonly job: string
  readonly state: State
}

interface StoredHolder {
  readonly ref: Numeric
  readonly worker: string
}

interface StoredWaits {
  readonly ref: Numeric
  readonly waits: string | null
  readonly wakeAt: Numeric | null
}

function waitsOf(stored: StoredWaits | undefined): Pick<WhyRow<JobRow>, 'waits' | 'suspended'> {
  if (stored === undefined || stored.waits === null) return { waits: [], suspended: undefined }
  const wakeAt = stored.wakeAt === null ? null : numberOf(stored.wakeAt)
  return { waits: JSON.parse(stored.waits) as string[], suspended: { wakeAt } }
}
