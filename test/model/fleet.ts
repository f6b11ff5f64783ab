import { job } from '../../src/index.js'
import type { Context, Mill } from '../../src/index.js'
import { buildMill } from '../../src/mill.js'
import { firePartsOf } from '../../src/mill/recurring.js'
import type { PartsToStart } from '../../src/mill/started-parts.js'
import { promotePartsOf } from '../../src/mill/upkeep.js'
import { fireDue } from '../../src/schedule/fire.js'
import { STORE_CHOICE } from '../../src/store/choice.js'
import type { Hint, Store } from '../../src/store/store.js'
import { seeded } from '../../src/testing/simulation/random.js'
import { rest, VirtualTime } from '../../src/testing/simulation/virtual-time.js'
import { promoteOnce } from '../../src/upkeep/promote.js'
import { Rescuer } from '../../src/upkeep/rescue.js'
import type { ClaimPlan } from '../../src/worker/claim.js'
import { Worker } from '../../src/worker/worker.js'
import type { WorkerOptions } from '../../src/worker/worker.js'
import { makeIds } from '../../src/world/ids.js'
import { systemTimers } from '../../src/world/timers.js'
import type { World } from '../../src/world/world.js'
import { workflowOf } from './bodies.js'
import type { HeldSteps } from './bodies.js'
import type { ModelDatabase } from './databases.js'
import { LIMITS } from './reference/limits.js'
import { BACKOFF_MS, CRASH_BUDGET, KEEP_MS, LEASE_MS, RETRY_LIMIT, WORKFLOW } from './reference/state.js'
import type { HeldEnd } from './reference/workflows.js'
import { CallsInFlight, watchedStore } from './watched-store.js'

/** Shortly after noon on a day that every program shares: no delay of a program ends at a time that a cron text names. */
export const START = Date.UTC(2030, 0, 1, 12, 0, 7, 3)

/** A handler that runs until the program ends it. */
export interface RunningHandler {
  readonly ctx: Context
  readonly returns: () => void
  readonly throws: (error: Error) => void
}

/** What a claim began: a handler that runs, or a workflow that goes on. */
export interface Begun {
  readonly id: string
  readonly handler: RunningHandler | undefined
}

interface FleetMill {
  readonly mill: Mill
  readonly store: Store
  readonly worker: Worker
  readonly parts: PartsToStart
  readonly process: FleetProcess
  /** The claim that a step asks for; the worker claims nothing else. */
  plan: ClaimPlan
  begun: RunningHandler | undefined
  /** The workflow that it began to drive last. */
  driven: string | undefined
  readonly held: HeldSteps
}

/** Several mills on one store, each with a worker of its own, in one virtual time. Nothing happens unless a step says so. */
export class Fleet {
  readonly #time = new VirtualTime(START)
  readonly #calls = new CallsInFlight()
  readonly #database: ModelDatabase
  readonly #names: readonly string[]
  readonly #queues: { readonly [queue: string]: { readonly limit: { readonly max: number } } }
  readonly #mills: FleetMill[] = []
  readonly #listeners = new Set<{ readonly process: FleetProcess; readonly callback: (hint: Hint) => void }>()
  #started = 0
  /** Mills that stopped beating and whose jobs are not rescued yet. */
  #observed = 0
  readonly #failures: unknown[] = []
  /** A commit since the last look said that something is due at once. */
  #isDue = false
  /** The next look finds nothing before these times, as the last looks and the hints since then say. */
  #promoteAt = -Infinity
  #fireAt = -Infinity
  /** The stores get a hint that the mills have got, or get, from the fleet. */
  #isNotifying = false
  /** Claims whose answers are to be lost. */
  #lostAnswers = 0

  private constructor(database: ModelDatabase, isUsed: (name: string) => boolean, names: readonly string[]) {
    this.#database = database
    this.#names = names.filter((name) => isUsed(name) || !(name in LIMITS.inFlight || name in LIMITS.starts))
    this.#queues = Object.fromEntries(
      Object.entries(LIMITS.inQueue).flatMap(([queue, max]) => (isUsed(queue) ? [[queue, { limit: { max } }]] : [])),
    )
  }

  /** `isUsed`: whether the program has a job or a queue of this name. A worker that knows limits claims twice. */
  static async start(
    database: ModelDatabase,
    mills: number,
    names: readonly string[],
    isUsed: (name: string) => boolean,
  ): Promise<Fleet> {
    const fleet = new Fleet(database, isUsed, names)
    for (let mill = 0; mill < mills; mill += 1) await fleet.restart(mill)
    return fleet
  }

  mill(index: number): Mill {
    return this.#of(index).mill
  }

  store(index: number): Store {
    return this.#of(index).store
  }

  /** A new mill, in the place of a dead one. */
  async restart(index: number): Promise<void> {
    const process = new FleetProcess(this.#time, (this.#started += 1))
    const store = this.#database.storeFor(index, process.world, () => Math.floor(this.#time.now))
    const made: Partial<FleetMill> = { process, plan: NO_CLAIM, begun: undefined, driven: undefined, held: new Map() }
    const self = made as FleetMill
    store.changes.onHint((hint) => this.#hinted(process, hint))
    const watched = watchedStore(store, this.#calls, {
      onHint: (callback) => {
        const listener = { process, callback }
        this.#listeners.add(listener)
        return () => this.#listeners.delete(listener)
      },
      claimed: () => {
        this.#lostAnswers -= 1
        if (this.#lostAnswers >= 0) throw LOST
      },
      driven: (ids) => (self.driven = ids[0]),
    })
    const mill = await buildMill(
      // Outages pick their probes at random: the simulator checks them (src/testing/checkers), and the model has none.
      {
        jobs: jobsOf(this.#names, self),
        queues: this.#queues,
        logger: false,
        crashBudget: CRASH_BUDGET,
        outage: false,
        // In one of the mills every claim replays.
        workflows: { strict: true, ...(index === 1 ? { sticky: 0 } : {}) },
      },
      {
        world: process.world,
        store: { [STORE_CHOICE]: true, open: () => Promise.resolve(watched) },
        startParts: async (parts) => {
          const worker = new Worker({ ...parts, planClaim: () => takePlan(self) }, stepped(parts.options()))
          await worker.start()
          Object.assign(made, { parts, worker })
          return { wake: nothing, configure: nothing, stop: resolved, abandon: nothing, releasedCount: () => 0 }
        },
        // Without async context, which makes every promise slower, and slower with each mill of the process.
        executor: { call: (handler, payload, running) => handler(payload, running) },
        watch: { storeFailed: (what, error) => void (isPlanned(what, error) || this.#failures.push(error)) },
      },
    )
    Object.assign(made, { mill, store: watched })
    await mill.start()
    this.#mills[index] = self
    await this.calm()
  }

  /** Everything that is under way has come to rest. */
  async calm(): Promise<void> {
    do {
      await this.#calls.none()
      do await rest()
      while (this.#mills.some(({ process }) => process.soonCount > 0))
      if (this.#calls.isNone && (this.#time.next ?? Infinity) <= this.#time.now) await this.#time.step()
    } while (!this.#calls.isNone || (this.#time.next ?? Infinity) <= this.#time.now)
    if (this.#failures.length > 0) throw this.#failures[0]
  }

  /** Makes ready what is due, cancels what has expired, completes groups. It sleeps as a mill does: until something is due. */
  async promote(index: number): Promise<void> {
    if (this.#now() < this.#promoteAt) return
    const parts = promotePartsOf(this.#of(index).parts)
    for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
      this.#isDue = false
      this.#promoteAt = Infinity
      const { promoted, again, expired, cancelledByParents, failedGroups, nextInMs } = await promoteOnce(parts)
      // What follows a group and is refused now is tried again by the next poll.
      const inMs = failedGroups.length > 0 ? 0 : (nextInMs ?? Infinity)
      this.#promoteAt = Math.min(this.#promoteAt, this.#now() + inMs)
      // A hint that something is due at once makes a mill look again, as it does in production.
      if (!again && !this.#isDue && promoted + expired.length + cancelledByParents.length === 0) return
    }
  }

  /** Fires the ticks that are due; false when none was. */
  async fire(index: number): Promise<boolean> {
    let isAny = false
    while (this.#now() >= this.#fireAt) {
      this.#fireAt = Infinity
      const { fired, nextInMs } = await fireDue(firePartsOf(this.#of(index).parts))
      isAny ||= fired > 0
      this.#fireAt = fired > 0 ? -Infinity : Math.min(this.#fireAt, this.#now() + (nextInMs ?? Infinity))
    }
    return isAny
  }

  async prune(index: number): Promise<void> {
    const { jobs } = this.store(index)
    while ((await jobs.pruneJobs(0)).pruned > 0);
    while ((await jobs.sweepRows(0)).more);
  }

  /** Runs the timers up to a moment, each when everything before it has come to rest. */
  async moveTo(moment: number): Promise<void> {
    await this.calm()
    while ((this.#time.next ?? Infinity) <= moment) {
      await this.#time.step()
      await this.calm()
    }
    await this.#time.advanceTo(moment)
    await this.calm()
  }

  /** The worker of this mill claims one job of a queue; undefined when it found none. */
  async begin(index: number, queue: string, isIdle: boolean): Promise<Begun | undefined> {
    const self = this.#of(index)
    const { workerId } = self.worker
    const begun = await this.#claim(self, queue, isIdle)
    // A worker that was declared dead registers again first, and claims then.
    return begun ?? (self.worker.workerId === workerId ? undefined : this.#claim(self, queue, isIdle))
  }

  async #claim(self: FleetMill, queue: string, isIdle: boolean): Promise<Begun | undefined> {
    self.begun = undefined
    self.driven = undefined
    self.plan = { claim: true, max: 1, starting: 1, suspects: isIdle ? 'first' : 'none', queues: [queue] }
    self.worker.wake()
    await this.calm()
    self.plan = NO_CLAIM
    const { begun, driven: id } = self as FleetMill
    if (begun !== undefined) return { id: begun.ctx.id, handler: begun }
    return id === undefined ? undefined : { id, handler: undefined }
  }

  /** Ends the act of a step that waits for it. */
  async endStep(index: number, { id, address }: { id: string; address: string }, how: HeldEnd): Promise<void> {
    this.#of(index).held.get(`${id} ${address}`)?.(how)
    await this.calm()
  }

  /** Ends the handler of an item; the next one, if it begins. */
  async endItem(index: number, end: () => void): Promise<RunningHandler | undefined> {
    const self = this.#of(index)
    self.begun = undefined
    end()
    await this.calm()
    return self.begun
  }

  /** The claim is written, and its answer is lost on the way: the worker gives back what it may have taken. */
  async loseClaim(index: number, queue: string, isIdle: boolean): Promise<void> {
    this.#lostAnswers = 1
    await this.#claim(this.#of(index), queue, isIdle)
    this.#lostAnswers = 0
    this.#of(index).worker.wake()
    await this.calm()
  }

  get isSync(): boolean {
    return this.#database.isSync
  }

  transact: ModelDatabase['transact'] = async (calls, commits) => {
    const answers = await this.#database.transact(calls, commits)
    this.#notifyStores()
    // On PostgreSQL the notification of this commit would say it.
    this.#dueIn(0)
    return answers
  }

  /** None of its code runs again; other processes see no heartbeat, or have the proof that its process is gone. */
  async kill(index: number, isProven: boolean): Promise<void> {
    await this.#lastBeat(index)
    const { process } = this.#of(index)
    process.isAlive = false
    process.isProven = isProven
    this.#rescueLater(index)
    await this.calm()
  }

  /** It stops in order, and waits for no handler. */
  async stop(index: number): Promise<void> {
    void this.#of(index).worker.stop(0)
    await this.calm()
  }

  /** It does nothing until another process has taken it for dead. */
  async freeze(index: number): Promise<void> {
    await this.#lastBeat(index)
    this.#of(index).process.freeze()
    this.#rescueLater(index)
    await this.calm()
  }

  /** Its silence counts from here on, for every observer. */
  async #lastBeat(index: number): Promise<void> {
    const { worker, store } = this.#of(index)
    if (await store.leases.beat(worker.workerId as string)) return
    // It was declared dead, and its next claim finds that out.
    await this.begin(index, 'empty', false)
    await store.leases.beat(worker.workerId as string)
  }

  #rescueLater(index: number): void {
    const { process, worker } = this.#of(index)
    const observer = this.#of(0)
    const dead = worker.workerId
    if (this.#observed === 0) this.#beatLater()
    this.#observed += 1
    const rescuer = new Rescuer({
      world: withProof(observer.process.world, this.#mills),
      store: observer.store,
      self: () => observer.worker.workerId,
      leaseMs: () => LEASE_MS,
      crashBudget: () => CRASH_BUDGET,
      rescued: (rescued) => {
        if (rescued !== dead) return
        this.#observed -= 1
        void rescuer.stop()
        process.thaw()
      },
      settled: nothing,
      storeFailed: (_, error) => void this.#failures.push(error),
    })
    rescuer.start()
  }

  #beatLater(): void {
    this.#time.at(this.#time.now + LEASE_MS / 3, () => {
      if (this.#observed === 0) return
      this.#beatLater()
      for (const { process, worker, store } of this.#mills)
        if (process.isUp && worker.workerId !== undefined) void store.leases.beat(worker.workerId)
    })
  }

  #dueIn(ms: number): void {
    if (ms <= 0) this.#isDue = true
    this.#promoteAt = Math.min(this.#promoteAt, this.#now() + ms)
    this.#fireAt = Math.min(this.#fireAt, this.#now() + ms)
  }

  /** As the stores' clock reads: heartbeats are not at whole milliseconds. */
  #now(): number {
    return Math.floor(this.#time.now)
  }

  /** Every process that is up gets it; when something is due, only its own process knows. */
  #hinted(from: FleetProcess, hint: Hint): void {
    if (this.#isNotifying) return
    if (hint.ready) this.#notifyStores()
    if (hint.dueInMs !== null) this.#dueIn(hint.dueInMs)
    const elsewhere = { ...hint, dueInMs: hint.dueInMs === null ? null : 0 }
    for (const { process, callback } of this.#listeners) if (process.isUp) callback(process === from ? hint : elsewhere)
  }

  /** A store on PostgreSQL claims from where it was until it learns of a ready job: another process may have written one before that. */
  #notifyStores(): void {
    this.#isNotifying = true
    this.#database.notifyReady()
    this.#isNotifying = false
  }

  #of(index: number): FleetMill {
    return this.#mills[index] as FleetMill
  }
}

/** A process in virtual time: it can die, and it can freeze, and then its timers fire later. */
class FleetProcess {
  readonly world: World
  readonly identity: string
  isAlive = true
  isProven = false
  #isFrozen = false
  readonly #held: (() => void)[] = []
  /** What is to follow in a later turn of the event loop. */
  soonCount = 0

  constructor(time: VirtualTime, number: number) {
    const random = seeded(number)
    this.identity = `here.${number}`
    this.world = {
      clock: { now: () => Math.floor(time.now), monotonic: () => time.now },
      timers: {
        after: (ms, run, options) => time.at(time.now + Math.max(0, ms), () => this.#deliver(run), options),
        soon: (run) => this.#soon(run),
      },
      ids: makeIds(() => random.word()),
      random: () => random.next(),
      processes: {
        own: { host: 'here', pid: number, identity: this.identity },
        isLocal: () => false,
        isGone: () => false,
        isDebugged: () => false,
      },
    }
  }

  get isUp(): boolean {
    return this.isAlive && !this.#isFrozen
  }

  freeze(): void {
    this.#isFrozen = true
  }

  thaw(): void {
    this.#isFrozen = false
    for (const run of this.#held.splice(0)) this.#deliver(run)
  }

  #soon(run: () => void): void {
    this.soonCount += 1
    systemTimers.soon(() => {
      this.soonCount -= 1
      this.#deliver(run)
    })
  }

  #deliver(run: () => void): void {
    if (!this.isAlive) return
    if (this.#isFrozen) this.#held.push(run)
    else run()
  }
}

/** The observer's machine knows which of these processes have ended. */
function withProof(world: World, mills: readonly FleetMill[]): World {
  const gone = new Set(mills.flatMap(({ process }) => (process.isProven ? [process.identity] : [])))
  const isGone: World['processes']['isGone'] = ({ identity }) => identity !== null && gone.has(identity)
  return { ...world, processes: { ...world.processes, isLocal: isGone, isGone } }
}

function takePlan(self: FleetMill): ClaimPlan {
  const { plan } = self
  self.plan = NO_CLAIM
  return plan
}

/** The jobs of every program, whose handlers run until a step ends them. */
function jobsOf(names: readonly string[], self: FleetMill) {
  const run = (_: unknown, ctx: Context): Promise<void> =>
    new Promise((resolve, reject) => (self.begun = { ctx, returns: resolve, throws: reject }))
  const retry = { limit: RETRY_LIMIT, backoff: { start: BACKOFF_MS, factor: 1 }, jitter: 0 }
  const keep: { readonly [name: string]: 'none' | number } = { unkept: 'none', short: KEEP_MS.short }
  return names.map((name) => {
    if (name === WORKFLOW) return workflowOf(self.held, (id) => (self.driven = id))
    const [max, rate] = [LIMITS.inFlight[name], LIMITS.starts[name]]
    return job(name, {
      run,
      retry,
      timeout: Infinity,
      ...(keep[name] === undefined ? {} : { keep: keep[name] }),
      ...(max === undefined ? {} : { limit: { max } }),
      ...(rate === undefined ? {} : { rate: { max: rate.max, per: rate.perMs } }),
    })
  })
}

/** Hints alone wake it, and its lease has no end: the fleet beats when a beat matters. */
function stepped(options: WorkerOptions): WorkerOptions {
  return { ...options, concurrency: 1_000, pollMs: Infinity, leaseMs: Infinity, slowAfterMs: Infinity }
}

/** An answer that a step loses, and a job after a group that would wait for itself: it is tried again. */
function isPlanned(what: string, error: unknown): boolean {
  return (
    error === LOST ||
    (what.startsWith('enqueue what follows group') && (error as { code?: unknown }).code === 'E_CYCLE')
  )
}

/** A job that cannot be written yet is due all the time. */
const ROUNDS_MAX = 100

const LOST = new Error('the answer is lost')
const NO_CLAIM: ClaimPlan = { claim: false }
const nothing = (): void => undefined
const resolved = (): Promise<void> => Promise.resolve()
