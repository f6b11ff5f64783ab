import type { ErrorRecord } from '../../codec/error-text.js'
import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { Registry } from '../../job/definition/registry.js'
import { decideWhy } from '../../job/why/why.js'
import type { Why, WhySnapshot, WhyWorker } from '../../job/why/why.js'
import type { State } from '../../job/rules/states.js'
import type { WorkerListed } from '../../store/observing/lists.js'
import type { JobRow, Store } from '../../store/store.js'
import { canBeId } from '../check-arguments.js'
import { isAlive } from './lists.js'

/** The most ids of one call. */
export const WHY_IDS_MAX = 50

type Facts = Awaited<ReturnType<Store['observing']['readWhy']>>

/** Why each of these jobs is not running; undefined for an id that no job has. */
export async function readWhy(ids: readonly unknown[], store: Store, registry: Registry): Promise<(Why | undefined)[]> {
  if (ids.length > WHY_IDS_MAX)
    throw new InvalidOptionsError('why()', [
      { path: 'ids', message: `must be at most ${WHY_IDS_MAX}, got ${show(ids.length)}` },
    ])
  const known = ids.filter((id): id is string => canBeId(id))
  // Limits of a job are those of its definition in this process, as a claim of this process would apply them.
  const facts = await store.observing.readWhy(known, registry.limits())
  const found = new Map(known.map((id, index) => [id, facts.jobs[index]]))
  const workers = facts.workers.map((worker) => toWorker(worker, facts.now))
  return ids.map((id) => {
    const job = found.get(id as string)
    return job === undefined ? undefined : decideWhy(snapshotOf(job, facts, workers))
  })
}

function snapshotOf(
  { row, parents, holder, waits, suspended, limits, rates }: NonNullable<Facts['jobs'][number]>,
  { now, queues }: Facts,
  workers: readonly WhyWorker[],
): WhySnapshot {
  const queue = queues.get(row.queue)
  const outage = queue?.outages.find(({ name, state }) => name === row.name && state === 'closed')
  const job = {
    id: row.id,
    job: row.name,
    queue: row.queue,
    state: row.state,
    claimed: row.claimed,
    dueAt: row.dueAt,
    startedAt: row.startedAt,
    streak: row.streak,
    reason: row.reason,
    error: errorOf(row),
  }
  return {
    now,
    job,
    parents: parents.map((parent) => ({ ...parent, state: parent.state as State })),
    holder: holder === undefined ? undefined : { worker: holder, host: hostOf(holder, workers) },
    pause: queue?.pause,
    workers,
    limits,
    rates,
    outage,
    waits,
    suspended,
  }
}

function hostOf(id: string, workers: readonly WhyWorker[]): string {
  return workers.find((worker) => worker.id === id)?.host ?? 'a host that is not known'
}

function errorOf({ error }: JobRow): string | null {
  if (error === null) return null
  const { name, message } = JSON.parse(error) as ErrorRecord
  return `${name}: ${message}`
}

function toWorker({ id, host, beatAt, leaseMs, about, running }: WorkerListed, now: number): WhyWorker {
  return {
    id,
    host,
    isAlive: isAlive({ beatAt, leaseMs }, now),
    names: about?.names,
    slots: about?.slots,
    queues: about?.queues ?? {},
    running,
  }
}
