import { InvalidOptionsError } from '../../errors.js'
import { checkName } from '../../job/definition/check-options.js'
import type { When } from '../../job/duration/duration.js'
import { parseWhen } from '../../job/duration/duration.js'
import { followed } from '../../store/followed.js'
import type { QueueChange, StandingPause } from '../../store/queues.js'
import type { Claim, Due, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { waitForLookAhead } from './command.js'
import { whenOf } from '../enqueue/prepare.js'

/** A queue, by its name: it need not hold anything. */
export interface QueueHandle {
  readonly name: string
  /** Begins nothing more of this queue, in any process, until it is resumed. What runs goes on; enqueueing works. */
  pause(): Promise<void>
  /** The same, until a moment: a duration from now, or an instant. One in the past resumes the queue. */
  pauseUntil(when: When): Promise<void>
  /** Lets the queue run again. */
  resume(): Promise<void>
  /** Whether it is paused, since when, and until when. */
  get(): Promise<QueueRecord>
}

/** A queue as people and programs read it. */
export interface QueueRecord {
  readonly name: string
  readonly paused: boolean
  /** Since when it is paused. */
  readonly pausedAt: Date | undefined
  /** When it goes on by itself; undefined when it runs, or when it waits for `resume()`. */
  readonly pausedUntil: Date | undefined
}

export interface QueueParts {
  readonly world: World
  readonly store: Store
  /** A queue was paused, or runs again (undefined). */
  readonly paused: (queue: string, pause: StandingPause | undefined) => void
}

export function queueHandle(parts: QueueParts, name: unknown): QueueHandle {
  const problems = checkName('name', name)
  if (problems.length > 0) throw new InvalidOptionsError('queue()', problems)
  const queue = name as string
  return {
    name: queue,
    pause: () => pauseQueue(parts, { queue, until: null }),
    pauseUntil: (when) => pauseQueueUntil(parts, queue, when),
    resume: () =>
      followed(parts.store.queues.resumeQueue(queue), (isResumed) => {
        if (isResumed) parts.paused(queue, undefined)
      }),
    get: async () => toRecord(queue, await parts.store.queues.readPause(queue)),
  }
}

/** Pauses a queue until a moment; under a claim, it is a handler that asks. */
export async function pauseQueueUntil(parts: QueueParts, queue: string, when: unknown, under?: Claim): Promise<void> {
  const until = untilOf(when, under === undefined ? `queue ${JSON.stringify(queue)}` : 'ctx.queue', parts.world)
  await pauseQueue(parts, { queue, until, ...(under === undefined ? {} : { under }) })
}

async function pauseQueue(parts: QueueParts, change: QueueChange): Promise<void> {
  return followed(parts.store.queues.pauseQueue(change), async ({ pause, held }) => {
    parts.paused(change.queue, pause)
    if (held) await waitForLookAhead(parts)
  })
}

function untilOf(when: unknown, subject: string, world: World): Due {
  const parsed = parseWhen(when, world.clock.now())
  if (parsed.ok) return whenOf(when)
  const message = `${parsed.problem}${when === Infinity ? '; to pause until further notice, call pause()' : ''}`
  throw new InvalidOptionsError(`${subject}.pauseUntil()`, [{ path: 'when', message }])
}

function toRecord(name: string, pause: StandingPause | undefined): QueueRecord {
  return {
    name,
    paused: pause !== undefined,
    pausedAt: pause === undefined ? undefined : new Date(pause.pausedAt),
    pausedUntil: pause === undefined || pause.until === null ? undefined : new Date(pause.until),
  }
}
