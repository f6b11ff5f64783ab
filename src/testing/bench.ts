import type { AsyncLocalStorage } from 'node:async_hooks'
import { defaultCodec } from '../codec/codec.js'
import type { Handler } from '../job/definition/define.js'
import { withHooksAndContext } from '../mill/hooks-and-context.js'
import type { HooksAndContext } from '../mill/hooks-and-context.js'
import { logOf } from '../mill/parts-from-options.js'
import { engineEvents } from '../observe/engine-events.js'
import type { MillOptions } from '../mill/options.js'
import { toMs } from '../mill/options.js'
import type { Mill } from '../mill/mill-type.js'
import { Registry } from '../job/definition/registry.js'
import type { Registered } from '../job/definition/registry.js'
import type { Outcome } from '../job/rules/outcome.js'
import { readOptions } from '../job/definition/stored-options.js'
import type { State } from '../job/rules/states.js'
import type { ClaimedJob, SettledJob, Store } from '../store/store.js'
import { parentResults } from '../client/read/parent-results.js'
import { pauseQueueUntil } from '../client/commands/queues.js'
import { firePartsOf } from '../mill/recurring.js'
import { fireDue } from '../schedule/fire.js'
import type { FireParts } from '../schedule/fire.js'
import { tellWishes } from '../worker/requests.js'
import { overdue, tellCancelled } from '../worker/overdue.js'
import { loopExecutor } from '../worker/executors/loop.js'
import { runAttempt } from '../worker/run.js'
import { Running } from '../worker/running.js'
import type { JobVerbs } from '../worker/running.js'
import { settleJob } from '../store/settled-job.js'
import { SelfSettler } from '../worker/settle-in.js'
import { Watchdog } from '../worker/watchdog.js'
import type { World } from '../world/world.js'
import { rest } from './simulation/virtual-time.js'
import type { VirtualTime } from './simulation/virtual-time.js'

/** Turns of the loop that the store is given to answer before time goes on all the same. */
const CALM_TURNS_MAX = 1_000

/** What became of one attempt. */
export interface EndedAttempt {
  readonly running: Running
  readonly to: State
  readonly threw: boolean
  readonly thrown: unknown
  readonly returned: unknown
}

/** A mill on a store in memory, with time that stands still and a worker that runs one job when it is told to. */
export interface TestMill {
  readonly mill: Mill
  readonly time: VirtualTime
  promote(): Promise<void>
  /** Moves time on, stopping at each moment at which something happens. */
  advance(ms: number): Promise<void>
  runNext(queues: readonly string[] | undefined): Promise<EndedAttempt | undefined>
  callAgain(running: Running): Promise<unknown>
  close(): Promise<void>
}

export class Bench implements TestMill {
  readonly mill: Mill
  readonly time: VirtualTime
  readonly #store: Store
  readonly #world: World
  readonly #options: Omit<MillOptions, 'store'>
  readonly #worker: string
  /** What runs now, and how each is settled without its handler. */
  readonly #inHand = new Map<Running, (outcome: Outcome) => void>()
  /** What stands around an attempt, as in a real mill: captured context and hooks. */
  readonly #around: HooksAndContext
  readonly #settling: SelfSettler
  readonly #watchdog: Watchdog
  readonly #firing: FireParts
  /** When the next tick is, as far as it is known: a hint tells of an earlier one. */
  #tickAt = -Infinity
  /** Questions that the store has not answered yet. */
  #working = 0

  constructor(
    mill: Mill,
    store: Store,
    world: World,
    time: VirtualTime,
    options: Omit<MillOptions, 'store'>,
    worker: string,
    inside: AsyncLocalStorage<Running>,
  ) {
    this.mill = mill
    this.time = time
    this.#store = store
    this.#world = world
    this.#options = options
    this.#worker = worker
    this.#around = withHooksAndContext(options, {
      events: engineEvents(logOf(options.logger ?? false, world)),
      executor: loopExecutor(inside),
    })
    const parts = { store, world, events: this.#around.events }
    this.#firing = firePartsOf({ ...parts, registry: this.#registry() })
    this.#settling = new SelfSettler(parts, (running, outcome) => this.#settlement(running, outcome))
    const inHand = this.#inHand
    const members = {
      [Symbol.iterator]: () => inHand.keys(),
      get size() {
        return inHand.size
      },
    }
    const { executor } = this.#around
    this.#watchdog = new Watchdog({ world, executor }, members, (running, now) => this.#overdue(running, now))
    store.changes.onHint((hint) => {
      if (hint.requested && this.#inHand.size > 0) void this.#tellCancelled()
      if (hint.dueInMs !== null) this.#tickAt = Math.min(this.#tickAt, this.time.now + hint.dueInMs)
    })
  }

  promote(): Promise<void> {
    return this.#inStore(() => this.#promote())
  }

  async advance(ms: number): Promise<void> {
    const until = this.time.now + ms
    await this.#calm()
    for (let at = await this.#nextMoment(); at <= until; at = await this.#nextMoment()) {
      if (this.time.next === undefined || at < this.time.next) await this.time.advanceTo(at)
      else await this.time.step()
      await this.#calm()
    }
    await this.time.advanceTo(until)
    await this.promote()
  }

  async runNext(queues: readonly string[] | undefined): Promise<EndedAttempt | undefined> {
    const registry = this.#registry()
    const request = {
      worker: this.#worker,
      fence: this.#world.ids.fence(),
      names: registry.claimable(),
      queues,
      max: 1,
      starting: 1,
      rooms: new Map(),
      suspects: 'none' as const,
    }
    const { jobs } = await this.#inStore(() => this.#store.leases.claimJobs(request))
    const [claimed] = jobs
    return claimed === undefined ? undefined : this.#run(claimed, registry)
  }

  callAgain(running: Running): Promise<unknown> {
    return running.registered.job.run(running.registered.codec.decode(running.claimed.payload), running)
  }

  async close(): Promise<void> {
    this.#watchdog.stop()
    await this.mill.close()
  }

  /** When something happens next: a timer, or a tick of what recurs. What is due of those is fired. */
  async #nextMoment(): Promise<number> {
    await this.#inStore(() => this.#fire())
    return Math.min(this.time.next ?? Infinity, this.#tickAt)
  }

  async #fire(): Promise<void> {
    while (this.#tickAt <= this.time.now) {
      const { fired, nextInMs } = await fireDue(this.#firing)
      if (fired === 0) this.#tickAt = nextInMs === null ? Infinity : this.time.now + nextInMs
    }
  }

  async #promote(): Promise<void> {
    await this.#fire()
    const { expired, again } = await this.#store.jobs.promoteJobs(10_000)
    if (again) await this.#promote()
    for (const job of expired)
      await this.#store.jobs.changeJob({
        id: job.id,
        from: job.state,
        to: 'cancelled',
        reason: 'it expired before it began',
        keepMs: Infinity,
      })
  }

  async #inStore<T>(work: () => Promise<T>): Promise<T> {
    this.#working += 1
    try {
      return await work()
    } finally {
      this.#working -= 1
    }
  }

  /** A job that is being taken begins, and one that ended is settled, before time goes on: neither takes any time here. */
  async #calm(): Promise<void> {
    for (let turn = 0; turn === 0 || (this.#working > 0 && turn < CALM_TURNS_MAX); turn += 1) await rest()
  }

  /** Jobs may be registered while a test runs, so it is asked anew each time. */
  #registry(): Registry {
    const { codec, retry, timeout, keep, unknown } = this.#options
    const jobs = this.mill.jobs().map((listed) => listed.job)
    return new Registry(jobs, { codec: codec ?? defaultCodec, retry, timeoutMs: toMs(timeout, '30m'), keep, unknown })
  }

  async #run(claimed: ClaimedJob, registry: Registry): Promise<EndedAttempt> {
    const registered = registry.runnable(claimed.name) as Registered
    const running = this.#running(claimed, registered)
    const seen: { threw: boolean; thrown: unknown; returned: unknown } = {
      threw: false,
      thrown: undefined,
      returned: undefined,
    }
    const attempt = {
      registered,
      payload: claimed.payload,
      retry: running.options.retry,
      retries: claimed.retries,
      attempt: running.attempt,
      random: this.#world.random,
      now: () => this.#world.clock.now(),
      call: async (handler: Handler<unknown, unknown>, payload: unknown) => {
        try {
          return (seen.returned = await this.#around.executor.call(handler, payload, running))
        } catch (error) {
          seen.threw = true
          throw (seen.thrown = error)
        }
      },
      abortReason: () => running.abortReason,
      note: (line: string) => running.log(line),
    }
    const { surround } = this.#around
    const handled = surround === undefined ? runAttempt(attempt) : surround(running, attempt)
    const graceOver = new Promise<Outcome>((settle) => this.#inHand.set(running, settle))
    this.#watchdog.watch(running)
    const outcome = await Promise.race([handled, graceOver])
    this.#inHand.delete(running)
    if ((outcome.kind === 'cancelled' || outcome.kind === 'failed') && !seen.threw)
      Object.assign(seen, { threw: true, thrown: running.abortReason })
    if (outcome.kind === 'unreadable') Object.assign(seen, { threw: true, thrown: new Error(outcome.error.message) })
    const settled = this.#settlement(running, this.#settling.outcomeOf(running, outcome))
    const { refused, changed: turned } = await this.#inStore(() =>
      this.#store.leases.settleJobs([settled], [claimed.fence]),
    )
    const written = turned[0] ?? settled
    const to = refused.length > 0 && running.settledIn !== undefined ? 'done' : written.to
    this.#around.events.settled(written, 0, running)
    return { running, to, ...seen, threw: seen.threw && to !== 'done' }
  }

  #settlement(running: Running, outcome: Outcome): SettledJob {
    const { startedAt, lines } = running
    const ended = { startedAt, endedAt: this.#world.clock.now(), worker: this.#worker, lines }
    const policy = { crashBudget: this.#options.crashBudget ?? 3, keepMs: running.registered.keepMs }
    return settleJob(running.claimed, outcome, policy, { ...ended, running: undefined })
  }

  /** As a worker does it: the handler is told, and has its grace, in virtual time, to come back. */
  async #tellCancelled(): Promise<void> {
    await tellWishes({
      store: this.#store,
      running: new Set(this.#inHand.keys()),
      cancelled: (running, reason) => {
        tellCancelled(running, reason, this.time.now)
        this.#watchdog.watch(running)
      },
    })
  }

  /** As a worker does it: told that its time is up, then settled without its handler when the grace is over too. */
  #overdue(running: Running, now: number): void {
    const { executor, surround } = this.#around
    const outcome = overdue(running, now, { world: this.#world, executor, surround })
    if (outcome !== undefined) this.#inHand.get(running)?.(outcome)
  }

  #running(claimed: ClaimedJob, registered: Registered): Running {
    const now = this.#world.clock.now()
    const options = readOptions(claimed.options)
    const begin = {
      claimed,
      registered,
      options,
      startedAt: now,
      begunAt: this.time.now,
      timeoutMs: options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity),
      slowAfterMs: Infinity,
      reported: true,
    }
    const verbs: JobVerbs = {
      enqueue: (_, job, payload, options) => this.mill.enqueue(job as string, payload, options as object),
      pauseQueue: (under, queue, when) =>
        pauseQueueUntil({ world: this.#world, store: this.#store, paused: () => undefined }, queue, when, under),
      results: (id, parent) => parentResults(id, parent, { store: this.#store, registry: this.#registry() }),
    }
    return new Running(begin, {
      verbs,
      noteProgress: () => undefined,
      logLine: () => undefined,
      settling: this.#settling,
    })
  }
}
