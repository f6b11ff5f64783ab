import { inspectParts } from '../job/attempt/log-text.js'
import { InvalidOptionsError, MillraceError } from '../errors.js'
import { show } from '../codec/show.js'
import { isJob } from '../job/definition/brands.js'
import type { Fields } from '../job/definition/check-fields.js'
import type { Job } from '../job/definition/define.js'
import type { Duration, Instant } from '../job/duration/duration.js'
import { formatDuration, parseDuration, parseInstant } from '../job/duration/duration.js'
import type { Enqueueable } from '../job/enqueue.js'
import type { JobRecord } from '../job/record.js'
import type { Mill } from '../mill/mill-type.js'
import { checkMillOptions } from '../mill/options.js'
import { buildTestMill } from './test-mill.js'
import type { OpenTestStore, TestMill, TestOptions } from './test-mill.js'
import { matches } from './matches.js'
import type { Running } from '../worker/attempt/running.js'

/** A mill under test: virtual time, no timers, no threads; nothing runs unless you say so. */
export interface TestKit {
  /** Give this to the code under test. Its `start` and `stop` do nothing. */
  readonly mill: Mill
  /** Virtual now. */
  readonly now: Date
  /** Runs the next job of a queue and resolves with its result, or throws its error. An empty queue throws. */
  consume(queue?: string): Promise<unknown>
  /** Calls the handler of the last consumed job of a queue once more: is it idempotent? Nothing is recorded. */
  forceRetry(queue?: string): Promise<unknown>
  /** Runs everything that is due, and what that enqueues, until nothing is; counts how the jobs ended. Errors are not thrown. */
  drain(): Promise<Drained>
  /** Moves virtual time forward; jobs that are due by then are ready. */
  advance(by: Duration | number): Promise<void>
  /** Moves virtual time forward to an instant, as `advance` does; one before `now` is refused. */
  advanceTo(instant: Instant): Promise<void>
  /** The job that was enqueued with such a payload (fields you leave out are not compared); throws when there is none. */
  expectEnqueued<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    payload?: unknown,
  ): Promise<JobRecord<Payload, Result>>
  /** Closes the mill and its store. */
  close(): Promise<void>
}

export interface Drained {
  readonly ran: number
  readonly done: number
  readonly failed: number
  readonly retrying: number
  /** Attempts that threw `Snooze`: they are due again later. */
  readonly snoozed: number
}

const WAITING = ['scheduled', 'retrying', 'blocked', 'parked', 'paused', 'ready'] as const
/** How many waiting jobs of other queues are counted for the message. */
const COUNTED_MAX = 1_000

/** How many enqueued jobs a message lists. */
const SEEN_SHOWN_MAX = 10

/** A drain of more jobs than this is taken for a job that enqueues itself. */
const DRAIN_MAX = 2_000

/**
 * A mill for unit tests, on a store in memory.
 *
 * ```ts
 * import { job } from 'millrace'
 * import { testing } from 'millrace/testing'
 * const greet = job('greet', async (p: { name: string }) => `hello ${p.name}`)
 * const t = await testing({ jobs: [greet] })
 * await t.mill.enqueue(greet, { name: 'Ada' })
 * console.log(await t.consume())
 * await t.close()
 * ```
 */
export async function testing(options: TestOptions = {}): Promise<TestKit> {
  return testingOn(options)
}

/** The same on a store that the caller opens: our own tests of behaviour run on every store. */
export async function testingOn(options: TestOptions, openStore?: OpenTestStore): Promise<TestKit> {
  checkMillOptions(options, 'testing()', OF_THE_KIT)
  return new Kit(await buildTestMill(options, openStore))
}

/** Options of `testing()` alone. */
const OF_THE_KIT: Fields['fields'] = {
  now: (value) => {
    const parsed = parseInstant(value)
    return parsed.ok ? undefined : parsed.problem
  },
}

function notBack(atMs: number, now: Date): string {
  const to = new Date(atMs).toISOString()
  return `must not be before now, got ${to}: time goes forward only, and it is ${now.toISOString()}. Begin earlier with testing({ now: '${to}' })`
}

function neverDrains({ job }: Running): MillraceError {
  return new MillraceError(
    'E_NEVER_DRAINS',
    `drain() ran ${DRAIN_MAX} jobs and there are more; does ${job} enqueue itself?`,
  )
}

class Kit implements TestKit {
  readonly mill: Mill
  readonly #test: TestMill
  readonly #last = new Map<string, Running>()

  constructor(test: TestMill) {
    this.#test = test
    this.mill = test.mill
  }

  get now(): Date {
    return new Date(this.#test.time.now)
  }

  async consume(queue = 'default'): Promise<unknown> {
    await this.#test.promote()
    const ended = await this.#test.runNext([queue])
    if (ended === undefined) throw new MillraceError('E_QUEUE_EMPTY', await this.#whyEmpty(queue))
    this.#last.set(queue, ended.running)
    if (ended.threw) throw ended.thrown
    return ended.returned
  }

  async forceRetry(queue = 'default'): Promise<unknown> {
    const last = this.#last.get(queue)
    if (last === undefined)
      throw new MillraceError(
        'E_QUEUE_EMPTY',
        `queue ${show(queue)}: nothing was consumed yet, so there is nothing to run again`,
      )
    return this.#test.callAgain(last)
  }

  async drain(): Promise<Drained> {
    const sum = { ran: 0, done: 0, failed: 0, retrying: 0, snoozed: 0 }
    for (let claims = 0; ; claims += 1) {
      await this.#test.promote()
      const ended = await this.#test.runNext(undefined)
      if (ended === undefined) return sum
      this.#last.set(ended.running.claimed.queue, ended.running)
      if (claims >= DRAIN_MAX) throw neverDrains(ended.running)
      // A workflow that waits for something has not ended.
      if (ended.isSuspended === true) continue
      sum.ran += 1
      if (ended.to === 'done' || ended.to === 'failed' || ended.to === 'retrying') sum[ended.to] += 1
      // Nothing but a snooze schedules a job that ran.
      if (ended.to === 'scheduled') sum.snoozed += 1
    }
  }

  async advance(by: Duration | number): Promise<void> {
    const parsed = parseDuration(by)
    if (!parsed.ok) throw new InvalidOptionsError('advance()', [{ path: 'the duration', message: parsed.problem }])
    await this.#test.advance(parsed.ms)
  }

  async advanceTo(instant: Instant): Promise<void> {
    const parsed = parseInstant(instant)
    const byMs = parsed.ok ? parsed.atMs - this.#test.time.now : 0
    const problem = !parsed.ok ? parsed.problem : byMs < 0 ? notBack(parsed.atMs, this.now) : undefined
    if (problem !== undefined) throw new InvalidOptionsError('advanceTo()', [{ path: 'the instant', message: problem }])
    await this.#test.advance(byMs)
  }

  async expectEnqueued(job: Enqueueable, payload?: unknown): Promise<JobRecord<never, never>> {
    const name = isJob(job) ? job.name : job
    const seen: string[] = []
    for await (const found of this.mill.find({ order: 'newest' })) {
      if (found.job === name && (payload === undefined || matches(found.payload, payload)))
        return found as JobRecord<never, never>
      seen.push(`${found.job} ${inspectParts([found.payload])} (${found.state})`)
    }
    const payloadText = payload === undefined ? '' : ` with ${inspectParts([payload])}`
    const there = seen.length === 0 ? 'nothing was enqueued' : `there is: ${seen.slice(0, SEEN_SHOWN_MAX).join('; ')}`
    throw new MillraceError('E_NOT_ENQUEUED', `expected a job ${show(name)}${payloadText} to be enqueued; ${there}`)
  }

  close(): Promise<void> {
    return this.#test.close()
  }

  async #whyEmpty(queue: string): Promise<string> {
    const others: string[] = []
    for await (const { state, job, dueAt } of this.mill.find({
      queue,
      state: [...WAITING],
      order: 'oldest',
      limit: 5,
    }))
      others.push(
        state !== 'scheduled' && state !== 'retrying'
          ? `${job} is ${state}`
          : `${job} is ${state}, due in ${formatDuration(dueAt.getTime() - this.#test.time.now)}`,
      )
    const { paused, pausedUntil } = await this.mill.queue(queue).get()
    if (paused) others.unshift(`it is paused${pausedUntil === undefined ? '' : ` until ${pausedUntil.toISOString()}`}`)
    others.push(...(await this.#elsewhere(queue)))
    return `queue ${show(queue)} has nothing to run${others.length === 0 ? '' : `; ${others.join('; ')}`}`
  }

  /** What waits in other queues: `"mail" has 2 ready and 1 scheduled`. */
  async #elsewhere(queue: string): Promise<string[]> {
    const counts = new Map<string, Map<string, number>>()
    for await (const found of this.mill.find({ state: [...WAITING], limit: COUNTED_MAX })) {
      if (found.queue === queue) continue
      const states = counts.get(found.queue) ?? new Map<string, number>()
      counts.set(found.queue, states.set(found.state, (states.get(found.state) ?? 0) + 1))
    }
    return [...counts].map(([other, states]) => {
      const there = [...states].map(([state, count]) => `${count} ${state}`)
      return `queue ${show(other)} has ${there.join(' and ')}`
    })
  }
}
