import { InvalidOptionsError } from '../../errors.js'
import { commandGiven } from '../../job/command-options.js'
import type { CommandOptions } from '../../job/command-options.js'
import { checkName } from '../../job/definition/check-options.js'
import type { When } from '../../job/duration/duration.js'
import { parseWhen } from '../../job/duration/duration.js'
import { thenOrRetry } from '../../store/unknown-outcome.js'
import type { QueueChange, QueueCounts, QueueListed, CurrentPause } from '../../store/queues.js'
import type { QueueOutage, QueueState } from '../../store/limits.js'
import type { Due, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { waitForLookAhead } from './look-ahead.js'
import { whenOf } from '../enqueue/prepare.js'

/** A queue, by its name. It may be empty. */
export interface QueueHandle {
  readonly name: string
  /** Starts no more jobs of this queue, in any process, until `resume()`. Running jobs continue, and jobs can be enqueued. */
  pause(options?: CommandOptions): Promise<void>
  /** Pauses until a time: a duration from now, or an instant. One in the past resumes the queue. */
  pauseUntil(when: When, options?: CommandOptions): Promise<void>
  /** Ends the pause. */
  resume(options?: CommandOptions): Promise<void>
  /** Whether it is paused, its limits, and the outages of its jobs. */
  get(): Promise<QueueRecord>
}

/** The public record of a queue. */
export interface QueueRecord {
  readonly name: string
  readonly paused: boolean
  /** Since when it is paused. */
  readonly pausedAt: Date | undefined
  /** When the pause ends by itself; undefined when the queue is not paused, or until `resume()`. */
  readonly pausedUntil: Date | undefined
  /** Jobs in flight at once, in all processes together; undefined without a limit. */
  readonly limit: { readonly max: number } | undefined
  /** Starts in any window of `perMs`, in all processes together; undefined without a rate. */
  readonly rate: { readonly max: number; readonly perMs: number } | undefined
  /** The jobs of the queue whose retries are held because of an outage, or are being released after it. */
  readonly outages: readonly OutageRecord[]
}

/** A queue as `mill.live.queues` lists it. */
export interface LiveQueue extends QueueRecord {
  /** Its unfinished and failed jobs by state. A ready job that a worker has claimed in advance is not counted. */
  readonly counts: QueueCounts
  /** False when a count stopped at its bound of 10,000 jobs: there are more. */
  readonly exact: boolean
  /** When the first of its ready jobs became due; undefined when none is ready. */
  readonly oldestDueAt: Date | undefined
}

/** An outage of one job of a queue. */
export interface OutageRecord {
  readonly job: string
  /** 'probing': retries are held, one of them is tried per poll. 'opening': one succeeded, and they are being released. */
  readonly state: 'probing' | 'opening'
  /** Since when retries are held. */
  readonly since: Date
  /** The retries that are due and held. */
  readonly waiting: number
  /** In words: `orders: probing, 412 waiting`. */
  readonly text: string
}

export interface QueueParts {
  readonly world: World
  readonly store: Store
  readonly auditKeepMs: number
  /** A queue was paused, or resumed (undefined). */
  readonly paused: (queue: string, pause: CurrentPause | undefined) => void
}

export function queueHandle(parts: QueueParts, name: unknown): QueueHandle {
  const problems = checkName('name', name)
  if (problems.length > 0) throw new InvalidOptionsError('queue()', problems)
  const queue = name as string
  return {
    name: queue,
    pause: async (options) => pauseQueue(parts, { queue, until: null, audit: auditOf(parts, queue, 'pause', options) }),
    pauseUntil: async (when, options) =>
      pauseQueueUntil(parts, queue, when, { audit: auditOf(parts, queue, 'pauseUntil', options) }),
    resume: async (options) =>
      thenOrRetry(parts.store.queues.resumeQueue(queue, auditOf(parts, queue, 'resume', options)), (isResumed) => {
        if (isResumed) parts.paused(queue, undefined)
      }),
    get: async () => {
      const [pause, state] = await Promise.all([
        parts.store.queues.readPause(queue),
        parts.store.queues.readQueue(queue),
      ])
      return toRecord(queue, pause, state)
    },
  }
}

/** Pauses a queue until a time. With a claim, the caller is a handler: see `decidePause`. */
export async function pauseQueueUntil(
  parts: QueueParts,
  queue: string,
  when: unknown,
  { claim, audit }: Pick<QueueChange, 'claim' | 'audit'>,
): Promise<void> {
  const until = untilOf(when, claim === undefined ? `queue ${JSON.stringify(queue)}` : 'ctx.queue', parts.world)
  await pauseQueue(parts, { queue, until, audit, ...(claim === undefined ? {} : { claim }) })
}

async function pauseQueue(parts: QueueParts, change: QueueChange): Promise<void> {
  return thenOrRetry(parts.store.queues.pauseQueue(change), async ({ pause, held }) => {
    parts.paused(change.queue, pause)
    if (held) await waitForLookAhead(parts)
  })
}

/** The options are an object in a call by a person; a number is accepted, as from `queues.map(pause)`. */
function auditOf(parts: QueueParts, queue: string, verb: string, options: unknown): QueueChange['audit'] {
  return commandGiven(verb, `queue ${JSON.stringify(queue)}.${verb}()`, options, parts.auditKeepMs).audit
}

function untilOf(when: unknown, subject: string, world: World): Due {
  const parsed = parseWhen(when, world.clock.now())
  if (parsed.ok) return whenOf(when)
  const message = `${parsed.problem}${when === Infinity ? '; to pause until further notice, call pause()' : ''}`
  throw new InvalidOptionsError(`${subject}.pauseUntil()`, [{ path: 'when', message }])
}

function toRecord(name: string, pause: CurrentPause | undefined, { limits, outages }: QueueState): QueueRecord {
  return {
    name,
    paused: pause !== undefined,
    pausedAt: pause === undefined ? undefined : new Date(pause.pausedAt),
    pausedUntil: pause === undefined || pause.until === null ? undefined : new Date(pause.until),
    limit: limits.limit,
    rate: limits.rate,
    outages: outages.map(toOutage),
  }
}

export function toLiveQueue({ name, pause, counts, isExact, oldestDueAt, ...state }: QueueListed): LiveQueue {
  const due = oldestDueAt === null ? undefined : new Date(oldestDueAt)
  return { ...toRecord(name, pause, state), counts, exact: isExact, oldestDueAt: due }
}

function toOutage({ name, state, since, waiting }: QueueOutage): OutageRecord {
  const shown = state === 'closed' ? 'probing' : 'opening'
  return { job: name, state: shown, since: new Date(since), waiting, text: `${name}: ${shown}, ${waiting} waiting` }
}
