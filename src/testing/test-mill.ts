import { defaultCodec } from '../codec/codec.js'
import { JobCancelledError } from '../errors.js'
import type { Handler } from '../job/define.js'
import { aroundOf } from '../mill/around.js'
import type { Around } from '../mill/around.js'
import { logOf } from '../mill/choose.js'
import { engineEvents } from '../observe/engine-events.js'
import { buildMill } from '../mill.js'
import type { MillOptions } from '../mill/options.js'
import { toMs } from '../mill/options.js'
import type { Mill } from '../mill/surface.js'
import { Registry } from '../job/registry.js'
import type { Registered } from '../job/registry.js'
import type { Outcome } from '../job/outcome.js'
import { readOptions } from '../job/stored-options.js'
import type { State } from '../job/states.js'
import { STORE_CHOICE } from '../store/choice.js'
import { chooseLibrary } from '../store/sqlite/library.js'
import { openFile } from '../store/sqlite/open.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import type { SqliteDatabase } from '../store/sqlite/driver.js'
import type { ClaimedJob, SettledJob, Store } from '../store/store.js'
import { pauseQueueUntil } from '../client/queues.js'
import { tellWishes } from '../worker/listen.js'
import { ABORT_GRACE_MS, tellCancelled } from '../worker/overdue.js'
import { cancelledOutcome, runAttempt } from '../worker/run.js'
import { Running } from '../worker/running.js'
import { policyOf, settlementOf } from '../worker/settle.js'
import { SelfSettler } from '../worker/settle-in.js'
import { makeIds } from '../world/ids.js'
import { systemTimers } from '../world/timers.js'
import type { World } from '../world/world.js'
import { systemWorld } from '../world/world.js'
import { seeded } from './random.js'
import { VirtualTime } from './virtual-time.js'

/** Noon on a day that every test shares. */
const START = Date.UTC(2030, 0, 1, 12)

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
  runNext(queues: readonly string[] | undefined): Promise<EndedAttempt | undefined>
  callAgain(running: Running): Promise<unknown>
  close(): Promise<void>
}

/** What a mill under test takes: all that any mill does, but for its store, which is in memory unless you have a handle. */
export type TestOptions = Omit<MillOptions, 'store'> & { readonly store?: SqliteDatabase | undefined }

export async function buildTestMill({ store: given, ...options }: TestOptions): Promise<TestMill> {
  const time = new VirtualTime(START)
  const world = testWorld(time)
  const file = await openFile(
    { target: given ?? new (chooseLibrary().open)(':memory:'), durability: 'process' },
    true,
    systemWorld(),
  )
  const store = new SqliteStore(file, world, { durability: 'process', now: () => Math.floor(time.now) })
  const choice = { [STORE_CHOICE]: true as const, open: () => Promise.resolve(store) }
  const mill = await buildMill({ ...options, logger: options.logger ?? false }, { world, store: choice })
  const worker = world.ids.workerId()
  await store.addWorker({ id: worker, host: 'test', pid: 0 })
  // Code under test may start and stop its mill as in production: here that changes nothing.
  Object.assign(mill, { start: () => Promise.resolve(), stop: () => Promise.resolve() })
  const bench = new Bench(mill, store, world, time, options, worker)
  return bench
}

/** Turns of the loop are real, so that what is awaited goes on; timers wait for time to be moved. */
function testWorld(time: VirtualTime): World {
  const random = seeded(1)
  return {
    clock: { now: () => Math.floor(time.now), monotonic: () => time.now },
    timers: {
      after: (ms, run, o) => time.at(time.now + Math.max(0, ms), run, o),
      soon: (run) => systemTimers.soon(run),
    },
    ids: makeIds(() => random.word()),
    random: () => random.next(),
  }
}

class Bench implements TestMill {
  readonly mill: Mill
  readonly time: VirtualTime
  readonly #store: Store
  readonly #world: World
  readonly #options: Omit<MillOptions, 'store'>
  readonly #worker: string
  /** What runs now, and how each is settled without its handler. */
  readonly #inHand = new Map<Running, (outcome: Outcome) => void>()
  /** What stands around an attempt, as in a real mill: captured context and hooks. */
  readonly #around: Around
  readonly #settling: SelfSettler

  constructor(
    mill: Mill,
    store: Store,
    world: World,
    time: VirtualTime,
    options: Omit<MillOptions, 'store'>,
    worker: string,
  ) {
    this.mill = mill
    this.time = time
    this.#store = store
    this.#world = world
    this.#options = options
    this.#worker = worker
    this.#around = aroundOf(options, {
      events: engineEvents(logOf(options.logger ?? false, world)),
      executor: { call: (handler, payload, running) => handler(payload, running) },
    })
    const parts = { store, world, events: this.#around.events }
    this.#settling = new SelfSettler(parts, (running, outcome) => this.#settlement(running, outcome))
    store.changes.onHint((hint) => {
      if (hint.asked && this.#inHand.size > 0) void this.#tellCancelled()
    })
  }

  async promote(): Promise<void> {
    const { expired } = await this.#store.jobs.promoteJobs(10_000)
    for (const job of expired)
      await this.#store.jobs.changeJob({
        id: job.id,
        from: job.state,
        to: 'cancelled',
        reason: 'it expired before it began',
        keepMs: Infinity,
      })
  }

  async runNext(queues: readonly string[] | undefined): Promise<EndedAttempt | undefined> {
    const fence = this.#world.ids.fence()
    const registry = this.#registry()
    const request = {
      worker: this.#worker,
      fence,
      names: registry.claimable(),
      queues,
      max: 1,
      starting: 1,
      rooms: new Map(),
      suspects: 'none' as const,
    }
    const { jobs } = await this.#store.leases.claimJobs(request)
    const [claimed] = jobs
    return claimed === undefined ? undefined : this.#run(claimed, registry)
  }

  callAgain(running: Running): Promise<unknown> {
    return running.registered.job.run(running.registered.codec.decode(running.claimed.payload), running)
  }

  async close(): Promise<void> {
    await this.mill.close()
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
      call: async (handler: Handler<unknown, unknown>, payload: unknown) => {
        try {
          return (seen.returned = await this.#around.executor.call(handler, payload, running))
        } catch (error) {
          seen.threw = true
          throw (seen.thrown = error)
        }
      },
      abortReason: () => running.abortReason,
    }
    const { surround } = this.#around
    const handled = surround === undefined ? runAttempt(attempt) : surround(running, attempt)
    const graceOver = new Promise<Outcome>((settle) => this.#inHand.set(running, settle))
    const outcome = await Promise.race([handled, graceOver])
    this.#inHand.delete(running)
    if (outcome.kind === 'cancelled' && !seen.threw) Object.assign(seen, { threw: true, thrown: running.abortReason })
    if (outcome.kind === 'unreadable') Object.assign(seen, { threw: true, thrown: new Error(outcome.error.message) })
    const settled = this.#settlement(running, this.#settling.outcomeOf(running, outcome))
    const { refused, turned } = await this.#store.leases.settleJobs([settled], [claimed.fence])
    const written = turned[0] ?? settled
    const to = refused.length > 0 && running.settledIn !== undefined ? 'done' : written.to
    this.#around.events.settled(written, 0, running)
    return { running, to, ...seen, threw: seen.threw && to !== 'done' }
  }

  #settlement(running: Running, outcome: Outcome): SettledJob {
    const { startedAt, lines } = running
    const ended = { startedAt, endedAt: this.#world.clock.now(), worker: this.#worker, lines }
    const policy = policyOf(this.#options.crashBudget ?? 3, running.registered.keepMs)
    return settlementOf(running.claimed, outcome, policy, ended)
  }

  /** As a worker does it: the handler is told, and has its grace, in virtual time, to come back. */
  async #tellCancelled(): Promise<void> {
    await tellWishes({
      store: this.#store,
      running: new Set(this.#inHand.keys()),
      cancelled: (running, reason) => {
        tellCancelled(running, reason, this.time.now)
        const cancel = running.abortReason
        if (cancel instanceof JobCancelledError)
          this.#world.timers.after(ABORT_GRACE_MS, () => this.#inHand.get(running)?.(cancelledOutcome(cancel, cancel)))
      },
    })
  }

  #running(claimed: ClaimedJob, registered: Registered): Running {
    const now = this.#world.clock.now()
    const begin = {
      claimed,
      registered,
      options: readOptions(claimed.options),
      startedAt: now,
      begunAt: this.time.now,
      timeoutMs: Infinity,
      slowAfterMs: Infinity,
      reported: true,
    }
    return new Running(begin, {
      enqueue: (_, job, payload, options) => this.mill.enqueue(job as string, payload, options as object),
      pauseQueue: (under, queue, when) =>
        pauseQueueUntil({ world: this.#world, store: this.#store, paused: () => undefined }, queue, when, under),
      noteProgress: () => undefined,
      logLine: () => undefined,
      settling: this.#settling,
    })
  }
}
