import type { WorkerListed } from '../../store/observing/lists.js'
import { inWords, listed } from '../../job/why/words.js'

/** One thing that is wrong: since when, what it does to you, and what mends it. */
export interface Finding {
  readonly kind: FindingKind
  readonly text: string
  /** Undefined when it is not known. */
  readonly since: Date | undefined
  readonly effect: string
  readonly mend: string
}

export type FindingKind =
  | 'store'
  | 'failing-jobs'
  | 'no-worker'
  | 'silent-worker'
  | 'dead-worker'
  | 'unknown-name'
  | 'slow-handler'
  | 'blocked-loop'
  | 'clock'
  | 'horizon'
  | 'wal'
  | 'setting'
  | 'push'
  | 'migrations'

/** A job in an error state, and since when. */
export interface FailingJob {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly state: 'retrying' | 'parked' | 'failed'
  readonly since: number
}

/** What a check has read. */
export interface HealthFacts {
  /** The clock of the store, and of this process at the same moment. */
  readonly storeNow: number
  readonly ownNow: number
  readonly workers: readonly WorkerListed[]
  /** Workers that were declared dead in the last ten minutes. */
  readonly dead: readonly WorkerListed[]
  /** The oldest ready jobs. */
  readonly ready: readonly { readonly job: string; readonly since: number }[]
  /** Jobs in an error state for longer than `allowedErrorTime`. */
  readonly failing: readonly FailingJob[]
  readonly slowAfterMs: number
  /** What the store says about itself. */
  readonly ofStore: readonly Finding[]
  readonly warnings: readonly string[]
}

/** A clock that differs by more is reported. */
const SKEW_MAX_MS = 5_000
/** An event loop that is later than this is reported. */
const LOOP_DELAY_MAX_MS = 1_000

/** Everything that is wrong, the worst first. Pure. */
export function findingsOf(facts: HealthFacts): Finding[] {
  const alive = facts.workers.filter((worker) => isBeating(worker, facts.storeNow))
  return [
    ...facts.ofStore,
    ...missingWorkers(facts, alive),
    ...failingJobs(facts),
    ...silentWorkers(facts, alive),
    ...facts.dead.map(deadWorker),
    ...unknownNames(facts, alive),
    ...alive.flatMap((worker) => blockedLoop(worker)),
    ...slowHandlers(facts, alive),
    ...clockSkew(facts),
    ...facts.warnings.map((text) => setting(text)),
  ]
}

function isBeating({ beatAt, leaseMs }: WorkerListed, now: number): boolean {
  return leaseMs === null || now - beatAt <= leaseMs
}

function missingWorkers({ ready }: HealthFacts, alive: readonly WorkerListed[]): Finding[] {
  const [oldest] = ready
  if (alive.length > 0 || oldest === undefined) return []
  return [
    {
      kind: 'no-worker',
      text: 'No worker is running, and jobs are ready.',
      since: new Date(oldest.since),
      effect: 'No job runs.',
      mend: 'Call mill.start() in a process that has registered the jobs.',
    },
  ]
}

function failingJobs({ failing }: HealthFacts): Finding[] {
  const [oldest] = failing.toSorted((one, other) => one.since - other.since)
  if (oldest === undefined) return []
  const names = [...new Set(failing.map(({ job }) => job))]
  return [
    {
      kind: 'failing-jobs',
      text: `Jobs have been in error for too long: ${listed(names)}; the oldest is ${oldest.job} ${oldest.id}, ${oldest.state}.`,
      since: new Date(oldest.since),
      effect: 'Their work is not done.',
      mend: 'Read mill.get(id).error, mend the cause, and call mill.retryAll({ job }); delete those that are not needed.',
    },
  ]
}

function silentWorkers({ workers, storeNow }: HealthFacts, alive: readonly WorkerListed[]): Finding[] {
  return workers
    .filter((worker) => !alive.includes(worker))
    .map(({ id, host, pid, beatAt }) => ({
      kind: 'silent-worker',
      text: `Worker ${id} (${host}, pid ${pid}) has not beaten for ${inWords(storeNow - beatAt)}.`,
      since: new Date(beatAt),
      effect: 'Its jobs run again on another worker, once one has seen its silence for a lease.',
      mend: 'Look for a crash, a suspended machine or a lost connection on that host.',
    }))
}

function deadWorker({ id, host, pid, beatAt, diedAt }: WorkerListed): Finding {
  return {
    kind: 'dead-worker',
    text: `Worker ${id} (${host}, pid ${pid}) died: its last heartbeat was at ${new Date(beatAt).toISOString()}.`,
    since: new Date(diedAt ?? beatAt),
    effect: 'Its jobs were given to other workers. This is shown for ten minutes.',
    mend: 'Look for a crash, a kill for lack of memory or a lost machine; a process that is stopped by mill.stop() is not listed.',
  }
}

function unknownNames({ ready }: HealthFacts, alive: readonly WorkerListed[]): Finding[] {
  if (alive.length === 0 || alive.some(({ about }) => about?.names === undefined)) return []
  const known = new Set(alive.flatMap(({ about }) => about?.names ?? []))
  const first = new Map<string, number>()
  for (const { job, since } of ready) if (!known.has(job) && !first.has(job)) first.set(job, since)
  return [...first].map(([job, since]) => ({
    kind: 'unknown-name',
    text: `Jobs named ${JSON.stringify(job)} are ready, and no running worker knows that name.`,
    since: new Date(since),
    effect: 'They wait.',
    mend: 'Register the job in a process that runs jobs, or cancel them with mill.cancelAll({ job }).',
  }))
}

function blockedLoop({ id, host, blockedBy, about }: WorkerListed): Finding[] {
  const delayMs = about?.loopDelayMs ?? 0
  if (blockedBy === null && delayMs < LOOP_DELAY_MAX_MS) return []
  const by = blockedBy === null ? `is up to ${inWords(delayMs)} late` : `is blocked by job ${blockedBy}`
  return [
    {
      kind: 'blocked-loop',
      text: `The event loop of worker ${id} on ${host} ${by}.`,
      since: undefined,
      effect: 'Jobs of that process start and end late, and its timeouts come late.',
      mend: 'Run handlers that compute in a thread or a process: executor: "thread".',
    },
  ]
}

function slowHandlers({ slowAfterMs, storeNow }: HealthFacts, alive: readonly WorkerListed[]): Finding[] {
  return alive.flatMap(({ id, running }) =>
    running
      .filter(({ since }) => storeNow - since > slowAfterMs)
      .map(({ job, since }): Finding => ({
        kind: 'slow-handler',
        text: `A handler of ${job} has been running on worker ${id} for ${inWords(storeNow - since)}.`,
        since: new Date(since),
        effect: 'It holds a slot.',
        mend: 'Give the job a timeout, or a longer slowAfter if that is its usual time.',
      })),
  )
}

function clockSkew({ storeNow, ownNow }: HealthFacts): Finding[] {
  const skew = ownNow - storeNow
  if (Math.abs(skew) <= SKEW_MAX_MS) return []
  return [
    {
      kind: 'clock',
      text: `The clock of this process is ${inWords(Math.abs(skew))} ${skew > 0 ? 'ahead of' : 'behind'} that of the store.`,
      since: undefined,
      effect: 'Instants that this process gives are early or late by that.',
      mend: 'Synchronise the clocks of the machines (NTP).',
    },
  ]
}

function setting(text: string): Finding {
  return {
    kind: 'setting',
    text,
    since: undefined,
    effect: 'The store works, with what this says.',
    mend: 'The text says what to change.',
  }
}
