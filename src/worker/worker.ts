import { AsyncResource } from 'node:async_hooks'
import { LeaseLostError, StoppedError } from '../errors.js'
import type { Claimed, ClaimedJob, LeasedJob } from '../store/store.js'
import { SingleFlight } from '../world/single-flight.js'
import { settledWithin } from '../world/timers.js'
import type { Cancel } from '../world/timers.js'
import { planClaim } from './claim.js'
import type { ClaimPlan, Hand as Load } from './claim.js'
import { Hand } from './in-flight.js'
import type { HandParts } from './in-flight-parts.js'
import { Lease } from './lease.js'
import { Listener } from './requests.js'
import { Quarantine } from './quarantine.js'

/** What the worker is told from outside; it may change while it runs. */
export interface WorkerOptions {
  readonly concurrency: number
  /** The most of a queue at once; a queue not named has no bound of its own. */
  readonly queues: ReadonlyMap<string, number>
  /** How often it looks for work and for requested changes without a hint; Infinity: never, hints alone wake it. */
  readonly pollMs: number
  /** Infinity: the lease never ends, so it needs no heartbeat. */
  readonly leaseMs: number
  readonly crashBudget: number
  readonly slowAfterMs: number
}

export interface WorkerParts extends HandParts {
  /** The length of the first quarantine; default: a minute. */
  readonly quarantineMs: number | undefined
  /** How much to claim; default: `planClaim`. The test kit claims one job when a test asks for it. */
  readonly planClaim?: ((load: Load) => ClaimPlan) | undefined
}

/** How often requested changes of running jobs are read without a hint; a third of a lease where that is shorter. */
const READ_REQUESTS_MS = 1_000
/** The wait after a claim that failed. */
const TROUBLE_MS = 500
/** What the last writes are given, however short the deadline was. */
const STOP_WRITE_MS = 2_000
/** What an aborted handler is given to come back when the worker's deadline has passed. */
const STOP_GRACE_MS = 250

/**
 * The worker: turns, lease, stop. Its life is a series of turns; a turn writes what ended, claims what there is room for, and
 * both ride in one commit. Only one turn is under way at a time; what happens meanwhile asks for another.
 */
export class Worker {
  readonly #parts: WorkerParts
  readonly #hand: Hand
  readonly #listener: Listener
  readonly #quarantine: Quarantine
  #options: WorkerOptions
  #lease: Lease | undefined
  #poll: Cancel | undefined
  #again: Cancel | undefined
  #resumes: Cancel | undefined
  #unhint: Cancel | undefined
  #stopping = false
  #renewing: Promise<void> | undefined
  /** The time to write anything more is over. */
  #abandoned = false
  /** Claims whose answer never came: they may have taken jobs that nobody knows of. */
  readonly #doubtful = new Set<number>()
  #returning = false
  /**
   * Each turn runs in the async context in which the worker was made: else jobs would run in the context of the request that
   * happened to wake it, with its tenant and its trace.
   */
  readonly #turns = new SingleFlight(AsyncResource.bind(() => this.#turn()))

  constructor(parts: WorkerParts, options: WorkerOptions) {
    this.#parts = parts
    this.#options = options
    this.#hand = new Hand(parts, {
      options: () => this.#options,
      workerId: () => this.workerId ?? '',
      wake: () => this.wake(),
      // Suspects may wait for this worker to be idle.
      written: () => (this.#quarantine.isDraining || this.#returning) && this.wake(),
      left: (claim) => this.#quarantine.left(claim),
    })
    this.#quarantine = new Quarantine(parts, () => this.wake())
    this.#listener = new Listener({
      world: parts.world,
      store: parts.store,
      everyMs: () => this.#readRequestsMs(),
      running: this.#hand.slots.running,
      doubt: () => this.#hand.doubt(),
      cancelled: (running, reason) => this.#hand.cancelled(running, reason),
      troubled: (what, error) => parts.events.troubled(what, error),
    })
  }

  get workerId(): string | undefined {
    return this.#lease?.worker
  }
  get beatsFromThread(): boolean {
    return this.#lease?.beatsFromThread === true
  }

  /** A turn is under way, or requested changes are being read. */
  get isBusy(): boolean {
    return this.#turns.isRunning || this.#listener.isReading
  }

  /** Resolves when no turn is under way and none was asked for. */
  idle(): Promise<void> {
    return this.#turns.idle()
  }

  async start(): Promise<void> {
    this.#lease = await this.#takeLease()
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      // Also when something was asked: a queue that is paused until a time tells so in answer to a claim.
      if (hint.ready || hint.requested) this.wake()
    })
    this.#listener.start()
    this.#pollAgain()
    this.wake()
  }

  configure(options: WorkerOptions): void {
    this.#options = options
    this.wake()
  }

  /** Something may be there to do. Cheap; calls of one turn of the loop are one. */
  wake(): void {
    if (this.#lease !== undefined) void this.#turns.request()
  }

  /** Stops claiming, gives back what has not begun, waits for what has, and gives that back too when the deadline passes. */
  async stop(deadlineMs: number): Promise<void> {
    const { world } = this.#parts
    const end = world.clock.monotonic() + deadlineMs
    this.#claimNoMore()
    await this.#hand.slots.untilIdle(world, deadlineMs)
    this.#hand.abortAll(new StoppedError())
    await this.#hand.slots.untilIdle(world, STOP_GRACE_MS)
    this.#listener.stop()
    this.#hand.giveUp()
    await settledWithin(world.timers, this.#writeLast(), Math.max(STOP_WRITE_MS, end - world.clock.monotonic()))
    this.#abandoned = true
    this.#lease = undefined
  }

  /** The store is gone for good: abort the running handlers, drop all claims, and claim nothing more. */
  async abandon(error: Error): Promise<void> {
    this.#claimNoMore()
    this.#listener.stop()
    await this.#lostLease('its store is gone', this.#lease, error)
  }

  #claimNoMore(): void {
    this.#stopping = true
    for (const cancel of [this.#poll, this.#again, this.#resumes, this.#unhint]) cancel?.()
    this.#quarantine.stop()
    this.#hand.close()
  }

  /** What ended is recorded and what is left goes back. A store that does not answer in time has it all freed by the lease. */
  async #writeLast(): Promise<void> {
    const { timers } = this.#parts.world
    // A claim under way when the stop came gives its jobs back when it returns.
    while (this.#turns.isRunning && !this.#abandoned) await new Promise<void>((next) => timers.after(1, next))
    await this.#renewing
    await this.#hand.outbox.drain(() => this.#abandoned)
    try {
      await this.#lease?.end()
    } catch (error) {
      this.#parts.events.troubled('take the worker off the list', error)
    }
  }

  async #turn(): Promise<void> {
    if (this.#lease === undefined) return
    // Handlers that return at once end one after the other, right now: their settlements share one commit.
    if (this.#hand.slots.heldCount > 0) await new Promise<void>((next) => this.#parts.world.timers.soon(next))
    // The claim first: its freshness counts from when its answer is processed, and the other answers take long to process.
    await Promise.all([this.#claim(), this.#hand.outbox.flush(), this.#hand.reports.report()])
  }

  async #claim(): Promise<void> {
    const lease = this.#lease
    if (this.#stopping || lease === undefined) return
    if (this.#doubtful.size > 0) await this.#clearDoubts(lease)
    if (this.#doubtful.size > 0 || this.#isReturning()) return
    const { slots, meter, outbox } = this.#hand
    const plan = (this.#parts.planClaim ?? planClaim)({
      concurrency: this.#options.concurrency,
      running: slots.running.size,
      held: slots.heldCount,
      unwritten: !outbox.isEmpty,
      averageMs: meter.averageMs,
      averageBytes: meter.averageBytes,
      fullForMs: this.#hand.fullForMs(),
      batchesAhead: this.#parts.store.info.batchesAhead,
      abandoned: this.#quarantine.isAwaited ? this.#hand.countAbandoned() : 0,
      isQuarantine: this.#quarantine.isOn,
      isDraining: this.#quarantine.takeTurn().of === 'drain',
    })
    if (!plan.claim) return
    const { max, starting, suspects, queues } = plan
    const fence = this.#parts.world.ids.fence()
    const [names, rooms] = [this.#parts.registry.claimable(), slots.rooms(this.#options.queues)]
    const request = { worker: lease.worker, fence, names, queues, rooms, max, starting, suspects }
    const askedAt = this.#parts.world.clock.monotonic()
    try {
      const claimed = await this.#parts.store.leases.claimJobs(request)
      if (this.#lease !== lease) return // Lost meanwhile: whoever frees the dead has them.
      const tookMs = this.#parts.world.clock.monotonic() - askedAt
      if (claimed.lost) await this.#lostLease('it was taken for dead', lease)
      // An answer so late may be that of a process that was suspended: somebody else may run these by now.
      else if (tookMs > this.#options.leaseMs / 2) this.#refuse(claimed.jobs, fence)
      else this.#took(claimed, fence, starting, lease)
    } catch (error) {
      this.#doubtful.add(fence)
      this.#parts.events.troubled('claim', error)
      this.#wakeIn(TROUBLE_MS)
    }
  }

  /** Jobs are on their way back: until that is written they are in this hand, and a crash would be charged to the wrong one. */
  #isReturning(): boolean {
    if (this.#hand.outbox.isEmpty) this.#returning = false
    return this.#returning
  }

  #refuse(jobs: readonly ClaimedJob[], fence: number): void {
    if (jobs.length > 0) this.#returning = true
    this.#hand.refuse(jobs, fence)
  }

  /** Gives back what claims without an answer may have taken: a live worker's lease is nobody else's to free. */
  async #clearDoubts(lease: Lease): Promise<void> {
    try {
      const fences = [...this.#doubtful]
      const leased = await this.#parts.store.leases.voidClaims(lease.worker, fences)
      const of = (fence: number): LeasedJob[] => leased.filter((job) => job.fence === fence)
      for (const fence of fences) this.#refuse(of(fence), fence)
      this.#doubtful.clear()
    } catch (error) {
      this.#parts.events.troubled('claim', error)
      this.#wakeIn(TROUBLE_MS)
    }
  }

  #took(claimed: Claimed, fence: number, starting: number, lease: Lease): void {
    this.#quarantine.saw(claimed, fence, lease.worker)
    this.#hand.take(claimed, fence, starting)
    this.#wakeAtResume(claimed.resumesInMs)
    if (claimed.jobs.length > 0) this.wake()
  }

  /** Taken for dead: every claim is void. What runs is told so, and the worker begins anew under another name. */
  async #lostLease(why: string, lease: Lease | undefined, cause?: Error): Promise<void> {
    if (lease === undefined || this.#lease !== lease) return
    this.#lease = undefined
    this.#parts.events.lost({ worker: lease.worker, why })
    this.#hand.lose(new LeaseLostError(`worker ${lease.worker}: ${why}`, { cause }))
    this.#quarantine.lose()
    this.#hand.watchdog.loop.detach()
    this.#doubtful.clear()
    await lease.abandon()
    this.#renewing = this.#beginAnew()
    await this.#renewing
  }

  async #beginAnew(): Promise<void> {
    if (this.#stopping) return
    try {
      const lease = await this.#takeLease()
      // Stopped meanwhile: nobody would end this one.
      if (this.#stopping) return await lease.end()
      this.#lease = lease
      this.wake()
    } catch (error) {
      this.#parts.events.troubled('register', error)
      this.#again = this.#parts.world.timers.after(TROUBLE_MS, () => void this.#beginAnew())
    }
  }

  #takeLease(): Promise<Lease> {
    const { store, world } = this.#parts
    const lost = (why: string): void => void this.#lostLease(why, this.#lease)
    return Lease.take(store.leases, world, this.#options.leaseMs, lost, this.#hand.watchdog.loop)
  }

  #pollAgain(): void {
    this.#poll = this.#parts.world.timers.after(this.#options.pollMs, () => {
      this.wake()
      this.#pollAgain()
    })
  }

  #readRequestsMs(): number {
    const { pollMs, leaseMs } = this.#options
    return pollMs === Infinity ? Infinity : Math.min(READ_REQUESTS_MS, leaseMs / 3)
  }

  #wakeIn(ms: number): void {
    this.#again?.()
    this.#again = this.#parts.world.timers.after(ms, () => this.wake())
  }

  /** A queue is paused until then. The timer is this worker's own, so that it needs nobody to tell it. */
  #wakeAtResume(inMs: number | null): void {
    this.#resumes?.()
    this.#resumes = inMs === null ? undefined : this.#parts.world.timers.after(inMs, () => this.wake())
  }
}
