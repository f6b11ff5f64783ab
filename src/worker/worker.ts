import { AsyncResource } from 'node:async_hooks'
import { LeaseLostError, StoppedError } from '../errors.js'
import type { JobLimits } from '../job/limits/limits.js'
import type { RetriedJob } from '../store/limits.js'
import type { WorkerAbout } from '../store/observing/lists.js'
import type { Claimed, ClaimedJob, LeasedJob } from '../store/store.js'
import { SingleFlight } from '../world/single-flight.js'
import { settledWithin } from '../world/timers.js'
import type { Cancel } from '../world/timers.js'
import { planClaim } from './claim.js'
import type { ClaimPlan, WorkerLoad } from './claim.js'
import { InFlight } from './in-flight/in-flight.js'
import type { InFlightParts } from './in-flight/in-flight-parts.js'
import { Lease } from './lease.js'
import { RequestReader } from './requests.js'
import { Quarantine } from './quarantine/quarantine.js'

/** The worker's options; they may change while it runs. */
export interface WorkerOptions {
  readonly concurrency: number
  /** How many jobs of a queue may run at once; a queue that is not named has no bound of its own. */
  readonly queues: ReadonlyMap<string, number>
  /** How often it looks for work and for requested changes without a hint; Infinity: never, hints alone wake it. */
  readonly pollMs: number
  /** Infinity: the lease never ends, so it needs no heartbeat. */
  readonly leaseMs: number
  readonly crashBudget: number
  /** The failures in a row that close a lane for retries; Infinity: never. */
  readonly outageAfter: number
  readonly slowAfterMs: number
  readonly workflows: {
    /** How many suspended runs are kept in memory. */
    readonly sticky: number
    /** Whether a foreign await rejects, where the workflow does not say it. */
    readonly strict: boolean
  }
}

export interface WorkerParts extends InFlightParts {
  /** The length of the first quarantine; default: a minute. */
  readonly quarantineMs: number | undefined
  /** What this worker says about itself. */
  readonly about?: (() => WorkerAbout) | undefined
  /** How much to claim; default: `planClaim`. The test kit claims one job when a test asks for it. */
  readonly planClaim?: ((load: WorkerLoad) => ClaimPlan) | undefined
  /** The one job that this worker claims; default: all that it can run. */
  readonly only?: RetriedJob | undefined
}

/** Jobs without limits, or under some: each kind is claimed by a call of its own. */
export type ClaimKind = 'plain' | 'limited'
type PlannedClaim = Extract<ClaimPlan, { readonly claim: true }>

/** How often requested changes of running jobs are read without a hint; a third of a lease where that is shorter. */
const READ_REQUESTS_MS = 1_000
/** The wait after a claim that failed. */
const STORE_RETRY_MS = 500
/** The time for the last writes, however short the deadline was. */
const STOP_WRITE_MS = 2_000
/** The time for an aborted handler to return when the worker's deadline has passed. */
const STOP_GRACE_MS = 250

/**
 * The worker: rounds, lease, stop. A round writes the settlements of ended jobs and claims as many as there is room for; on
 * SQLite both share one commit. One round is under way at a time, and a wake-up meanwhile makes another one follow.
 */
export class Worker {
  readonly #parts: WorkerParts
  readonly #inFlight: InFlight
  readonly #requests: RequestReader
  readonly #quarantine: Quarantine
  #options: WorkerOptions
  #lease: Lease | undefined
  #pollTimer: Cancel | undefined
  #retryTimer: Cancel | undefined
  readonly #resumeTimers = new Map<ClaimKind, Cancel>()
  /** The last claim without limits found that queues have limits, or that jobs with keys are ready. */
  #hasLimited = false
  #isLimitedFirst = false
  /** The last claim without limits found no job, so that only jobs under limits are claimed until the next wake-up. */
  #isPlainDry = false
  /** Counts the wake-ups that may stand for a new job. */
  #wakeUps = 0
  /** A job waits for a slot of its limit, which a settlement of any process may free. */
  #waitsForSlot = false
  #stopHints: Cancel | undefined
  #stopping = false
  #renewing: Promise<void> | undefined
  /** The time for the last writes is over. */
  #abandoned = false
  /** Fences of claims whose answer never came: they may have claimed jobs that no process runs. */
  readonly #unanswered = new Set<number>()
  #returning = false
  /**
   * Each round runs in the async context in which the worker was made: else jobs would run in the context of the caller that
   * happened to wake it, with its tenant and its trace.
   */
  readonly #rounds = new SingleFlight(AsyncResource.bind(() => this.#round()))

  constructor(parts: WorkerParts, options: WorkerOptions) {
    this.#parts = parts
    this.#options = options
    this.#inFlight = new InFlight(parts, {
      options: () => this.#options,
      workerId: () => this.workerId ?? '',
      isDraining: () => this.#quarantine.isDraining,
      wake: () => this.#again(),
      // A drain or the return of jobs waits for this write.
      written: () => (this.#quarantine.isDraining || this.#returning) && this.#again(),
      left: (claim) => this.#quarantine.remove(claim),
    })
    this.#quarantine = new Quarantine(parts, () => this.wake())
    this.#requests = new RequestReader({
      world: parts.world,
      store: parts.store,
      everyMs: () => this.#readRequestsMs(),
      running: this.#inFlight.slots.running,
      recheckHeld: () => this.#inFlight.recheckHeld(),
      cancel: (running, reason) => this.#inFlight.cancel(running, reason),
      readInboxes: () => this.#inFlight.workflows.readInboxes(this.#inFlight.slots.running),
      storeFailed: (what, error) => parts.events.storeFailed(what, error),
    })
  }

  get workerId(): string | undefined {
    return this.#lease?.worker
  }
  get beatsFromThread(): boolean {
    return this.#lease?.beatsFromThread === true
  }

  /** A round is under way, or requested changes are being read. */
  get isBusy(): boolean {
    return this.#rounds.isRunning || this.#requests.isReading
  }

  /** Resolves when no round is under way and none was requested. */
  idle(): Promise<void> {
    return this.#rounds.idle()
  }

  async start(): Promise<void> {
    this.#lease = await this.#takeLease()
    this.#stopHints = this.#parts.store.changes.onHint((hint) => {
      // Also when a change was requested: the claim's answer says until when a queue is paused.
      if (hint.ready || hint.requested) this.wake()
      else if (hint.settled && this.#waitsForSlot) this.#again()
    })
    this.#requests.start()
    this.#pollAgain()
    this.wake()
  }

  configure(options: WorkerOptions): void {
    this.#options = options
    // A shorter poll must not wait for the end of a longer one.
    this.#pollAgain()
    this.wake()
  }

  /** There may be work. Cheap: calls during a round make one further round. */
  wake(): void {
    this.#wakeUps += 1
    this.#isPlainDry = false
    this.#again()
  }

  /** There may be room for work that was known before. */
  #again(): void {
    if (this.#lease !== undefined) void this.#rounds.request()
  }

  /** Returns how to fail the attempt whose code threw an uncaught error; undefined when the code belongs to none. */
  claimUncaught(error: unknown): (() => void) | undefined {
    const running = this.#parts.executor.current?.()
    return running === undefined ? undefined : () => this.#inFlight.fail(running, error)
  }

  /** Stops claiming, releases held jobs, waits for running ones, and releases those too when the deadline passes. */
  async stop(deadlineMs: number): Promise<void> {
    const { world } = this.#parts
    const end = world.clock.monotonic() + deadlineMs
    this.#stopClaiming()
    await this.#inFlight.slots.untilIdle(world, deadlineMs)
    this.#inFlight.abortAll(new StoppedError())
    await this.#inFlight.slots.untilIdle(world, STOP_GRACE_MS)
    this.#requests.stop()
    this.#inFlight.releaseRunning()
    await settledWithin(world.timers, this.#writeLast(), Math.max(STOP_WRITE_MS, end - world.clock.monotonic()))
    this.#abandoned = true
    this.#lease = undefined
  }

  /** The store is gone for good: abort the running handlers, drop all claims, and claim nothing more. */
  async abandon(error: Error): Promise<void> {
    this.#stopClaiming()
    this.#requests.stop()
    await this.#lostLease('its store is gone', this.#lease, error)
  }

  #stopClaiming(): void {
    this.#stopping = true
    for (const cancel of [this.#pollTimer, this.#retryTimer, this.#stopHints, ...this.#resumeTimers.values()])
      cancel?.()
    this.#quarantine.stop()
    this.#inFlight.close()
  }

  /** Writes the last settlements and gives the rest back. If the store does not answer in time, a rescuer frees it all after the lease. */
  async #writeLast(): Promise<void> {
    const { timers } = this.#parts.world
    // A claim that was under way at the stop releases its jobs when it returns.
    while (this.#rounds.isRunning && !this.#abandoned) await new Promise<void>((next) => timers.after(1, next))
    await this.#renewing
    await this.#inFlight.outbox.drain(() => this.#abandoned)
    try {
      await this.#lease?.end()
    } catch (error) {
      this.#parts.events.storeFailed('remove the worker', error)
    }
  }

  async #round(): Promise<void> {
    if (this.#lease === undefined) return
    // Handlers that return at once end one after the other, right now: their settlements share one commit.
    if (this.#inFlight.slots.heldCount > 0) await new Promise<void>((next) => this.#parts.world.timers.soon(next))
    const gathered = this.#inFlight.gathered()
    if (gathered !== undefined) await gathered
    // The claim first: its freshness counts from when its answer is processed, and the other answers take long to process.
    await Promise.all([this.#claim(), this.#inFlight.flush(), this.#inFlight.reports.report()])
  }

  async #claim(): Promise<void> {
    const lease = this.#lease
    if (this.#stopping || lease === undefined) return
    if (this.#unanswered.size > 0) await this.#voidUnanswered(lease)
    if (this.#unanswered.size > 0 || this.#isReturning()) return
    const { slots, meter, outbox } = this.#inFlight
    const plan = (this.#parts.planClaim ?? planClaim)({
      concurrency: this.#options.concurrency,
      running: slots.running.size,
      held: slots.heldCount,
      unwritten: !outbox.isEmpty,
      averageMs: meter.averageMs,
      averageBytes: meter.averageBytes,
      fullForMs: this.#inFlight.fullForMs(),
      batchesAhead: this.#parts.store.info.batchesAhead,
      abandoned: this.#quarantine.isAwaited ? this.#inFlight.countAbandoned() : 0,
      isQuarantine: this.#quarantine.isOn,
      isDraining: this.#quarantine.takeTurn().of === 'drain',
    })
    if (plan.claim) await this.#claimKinds(plan, lease)
  }

  /** Jobs under limits are claimed by themselves. Both kinds come first in turn, so that neither takes every slot. */
  async #claimKinds(plan: PlannedClaim, lease: Lease): Promise<void> {
    if (this.#parts.only !== undefined) {
      await this.#claimOf('limited', plan, lease)
      return
    }
    if (this.#isPlainDry && this.#isAnyLimited()) return void (await this.#claimOf('limited', plan, lease))
    this.#isLimitedFirst = this.#isAnyLimited() && !this.#isLimitedFirst
    const [first, second]: readonly ClaimKind[] = this.#isLimitedFirst ? ['limited', 'plain'] : ['plain', 'limited']
    const taken = await this.#claimOf(first as ClaimKind, plan, lease)
    // The answer of the plain claim may be the first that names a queue with limits.
    if (second === 'limited' && !this.#isAnyLimited()) return
    if (taken === undefined || this.#quarantine.isOn || this.#stopping || this.#lease !== lease) return
    const [max, starting] = [plan.max - taken, Math.max(0, plan.starting - taken)]
    const rest = { ...plan, max, starting, suspects: taken > 0 ? 'none' : plan.suspects } as const
    if (max > 0) await this.#claimOf(second as ClaimKind, rest, lease)
  }

  #isAnyLimited(): boolean {
    return this.#hasLimited || this.#parts.registry.limits().size > 0
  }

  /** Returns how many jobs it took; undefined when the claim failed or its jobs must not begin. */
  async #claimOf(kind: ClaimKind, plan: PlannedClaim, lease: Lease): Promise<number | undefined> {
    const fence = this.#parts.world.ids.fence()
    const sentAt = this.#parts.world.clock.monotonic()
    try {
      const claimed = await this.#sendClaim(kind, plan, lease.worker, fence)
      if (this.#lease !== lease) return undefined // The lease was lost meanwhile: a rescuer frees these jobs.
      const tookMs = this.#parts.world.clock.monotonic() - sentAt
      if (claimed.lost) await this.#lostLease('it was declared dead', lease)
      // After so late an answer this process may have been suspended, and another worker may run these jobs.
      else if (tookMs > this.#options.leaseMs / 2) this.#releaseClaimed(claimed.jobs, fence)
      else {
        this.#begin(kind, claimed, fence, claimed.starting, lease)
        return claimed.jobs.length
      }
    } catch (error) {
      this.#unanswered.add(fence)
      this.#parts.events.storeFailed('claim', error)
      this.#wakeIn(STORE_RETRY_MS)
    }
    return undefined
  }

  async #sendClaim(
    kind: ClaimKind,
    { max, starting, suspects, queues }: PlannedClaim,
    worker: string,
    fence: number,
  ): Promise<Claimed & { readonly starting: number }> {
    const { registry, store } = this.#parts
    const rooms = this.#inFlight.slots.rooms(this.#options.queues)
    const request = { worker, fence, queues, rooms, max, starting, suspects }
    if (kind === 'plain') {
      const wakeUps = this.#wakeUps
      const claimed = await store.leases.claimJobs({ ...request, ...registry.unlimited() })
      this.#hasLimited = claimed.limited === true
      // A full queue of this worker may have jobs that its own settlements make room for.
      const sawAll = queues === undefined && ![...rooms.values()].includes(0) && claimed.suspectStreak === null
      this.#isPlainDry = sawAll && claimed.jobs.length === 0 && wakeUps === this.#wakeUps
      return { ...claimed, starting }
    }
    const { only } = this.#parts
    const claimed = await store.leases.claimLimited({
      ...request,
      ...(only === undefined
        ? { names: registry.claimable(), limits: registry.limits() }
        : { names: [only.name], queues: [only.queue], limits: new Map([[only.name, limitsOf(registry, only)]]), only }),
    })
    this.#waitsForSlot = claimed.waitsForSlot
    return claimed
  }

  /** Jobs are being released: until that is written, a crash would be charged to them as well. */
  #isReturning(): boolean {
    if (this.#inFlight.outbox.isEmpty) this.#returning = false
    return this.#returning
  }

  #releaseClaimed(jobs: readonly ClaimedJob[], fence: number): void {
    if (jobs.length > 0) this.#returning = true
    this.#inFlight.releaseClaimed(jobs, fence)
  }

  /** Releases the jobs of claims without an answer: no rescuer frees them while this worker's lease lasts. */
  async #voidUnanswered(lease: Lease): Promise<void> {
    try {
      const fences = [...this.#unanswered]
      const leased = await this.#parts.store.leases.voidClaims(lease.worker, fences)
      const of = (fence: number): LeasedJob[] => leased.filter((job) => job.fence === fence)
      for (const fence of fences) this.#releaseClaimed(of(fence), fence)
      this.#unanswered.clear()
    } catch (error) {
      this.#parts.events.storeFailed('claim', error)
      this.#wakeIn(STORE_RETRY_MS)
    }
  }

  #begin(kind: ClaimKind, claimed: Claimed, fence: number, starting: number, lease: Lease): void {
    this.#quarantine.observeClaim(kind, claimed, fence, lease.worker)
    this.#inFlight.take(claimed, fence, starting, kind === 'limited')
    this.#wakeAtResume(kind, claimed.resumesInMs)
    if (claimed.jobs.length > 0) this.#again()
  }

  /** The lease was lost: aborts running handlers, drops all claims, and registers the worker under a new id. */
  async #lostLease(why: string, lease: Lease | undefined, cause?: Error): Promise<void> {
    if (lease === undefined || this.#lease !== lease) return
    this.#lease = undefined
    this.#parts.events.lost({ worker: lease.worker, why })
    this.#inFlight.dropClaims(new LeaseLostError(`worker ${lease.worker}: ${why}`, { cause }))
    this.#quarantine.dropClaims()
    this.#inFlight.watchdog.loop.detach()
    this.#unanswered.clear()
    await lease.abandon()
    this.#renewing = this.#renewLease()
    await this.#renewing
  }

  async #renewLease(): Promise<void> {
    if (this.#stopping) return
    try {
      const lease = await this.#takeLease()
      // Stopped meanwhile: the stop did not know of this lease.
      if (this.#stopping) return await lease.end()
      this.#lease = lease
      this.wake()
    } catch (error) {
      this.#parts.events.storeFailed('register', error)
      this.#retryTimer = this.#parts.world.timers.after(STORE_RETRY_MS, () => void this.#renewLease())
    }
  }

  #takeLease(): Promise<Lease> {
    const { store, world } = this.#parts
    const lost = (why: string): void => void this.#lostLease(why, this.#lease)
    return Lease.take(
      store.leases,
      world,
      this.#options.leaseMs,
      lost,
      this.#inFlight.watchdog.loop,
      this.#parts.about?.(),
    )
  }

  #pollAgain(): void {
    this.#pollTimer?.()
    this.#pollTimer = this.#parts.world.timers.after(this.#options.pollMs, () => {
      this.wake()
      this.#pollAgain()
    })
  }

  #readRequestsMs(): number {
    const { pollMs, leaseMs } = this.#options
    return pollMs === Infinity ? Infinity : Math.min(READ_REQUESTS_MS, leaseMs / 3)
  }

  #wakeIn(ms: number): void {
    this.#retryTimer?.()
    this.#retryTimer = this.#parts.world.timers.after(ms, () => this.wake())
  }

  /** A queue is paused until then, or a rate has no room. Each worker has timers of its own, so that it depends on no hint. */
  #wakeAtResume(kind: ClaimKind, inMs: number | null): void {
    this.#resumeTimers.get(kind)?.()
    if (inMs === null) this.#resumeTimers.delete(kind)
    else
      this.#resumeTimers.set(
        kind,
        this.#parts.world.timers.after(inMs, () => (kind === 'plain' ? this.wake() : this.#again())),
      )
  }
}

function limitsOf(registry: WorkerParts['registry'], { name }: RetriedJob): JobLimits {
  return registry.limits().get(name) ?? {}
}
