import { LeaseLostError, StoppedError, TimeoutError } from '../errors.js'
import type { DecisionPolicy } from '../job/decide.js'
import { formatDuration } from '../job/duration.js'
import type { Outcome } from '../job/outcome.js'
import type { Registered, Registry } from '../job/registry.js'
import { readOptions } from '../job/stored-options.js'
import type { Claimed, ClaimedJob, SettledJob, Store } from '../store/store.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'
import { planClaim } from './claim.js'
import type { Executor } from './executors/loop.js'
import { Lease } from './lease.js'
import { Meter } from './meter.js'
import { Outbox } from './outbox.js'
import { failure, runAttempt } from './run.js'
import type { Attempt } from './run.js'
import { Running } from './running.js'
import type { Surroundings } from './running.js'
import { settlementOf } from './settle.js'
import { Slots } from './slots.js'
import { Watchdog } from './watchdog.js'

/** What the worker is told from outside; it may change while it runs. */
export interface WorkerOptions {
  readonly concurrency: number
  /** The most of a queue at once; a queue not named has no bound of its own. */
  readonly queues: ReadonlyMap<string, number>
  readonly pollMs: number
  readonly leaseMs: number
  readonly crashBudget: number
  readonly slowAfterMs: number
}

export interface WorkerParts {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  readonly executor: Executor
  readonly process: { readonly host: string; readonly pid: number }
  readonly enqueue: Surroundings['enqueue']
  readonly events: WorkerEvents
}

/** What others may want to know: the log, hooks, tests. */
export interface WorkerEvents {
  began(job: ClaimedJob): void
  settled(job: SettledJob, claimed: ClaimedJob, tookMs: number): void
  lost(what: string): void
  troubled(what: string, error: unknown): void
  slow(running: Running, forMs: number): void
  logLine(running: Running, line: string): void
}

/** How long after its timeout an attempt is given to come back before it is settled without it. */
export const TIMEOUT_GRACE_MS = 30_000
/** A held job that was confirmed this recently begins without asking again. */
const CONFIRMED_FOR_MS = 5
/** The wait after a claim that failed. */
const TROUBLE_MS = 500
/** What an aborted handler is given to come back when the worker's deadline has passed. */
const STOP_GRACE_MS = 250
const PROGRESS_EVERY_MS = 250

/**
 * The worker: slots, wake, stop. Its life is a series of turns; a turn writes what ended, claims what there is room for, and
 * both ride in one commit. Only one turn is under way at a time; what happens meanwhile asks for another.
 */
export class Worker implements Surroundings {
  readonly #parts: WorkerParts
  #options: WorkerOptions
  readonly #slots = new Slots()
  readonly #meter = new Meter()
  readonly #outbox: Outbox
  readonly #watchdog: Watchdog
  readonly #inHand = new Map<number, Running | undefined>()
  #lease: Lease | undefined
  #poll: Cancel | undefined
  #again: Cancel | undefined
  #unhint: Cancel | undefined
  #turning = false
  #wanted = false
  #stopping = false
  #alone: Running | undefined
  #suspectsSince: number | null = null
  #confirmedAt = -Infinity
  #pumping = false
  /** The store's clock at a moment of the monotonic one: dates what is recorded without trusting this machine's date. */
  #storeClock = { now: 0, at: 0 }
  #reporting: Cancel | undefined

  constructor(parts: WorkerParts, options: WorkerOptions) {
    this.#parts = parts
    this.#options = options
    this.#outbox = new Outbox(parts.store.leases, parts.world, {
      written: (settled, refused) => this.#written(settled, refused),
      failed: (error) => parts.events.troubled('settle', error),
    })
    this.#watchdog = new Watchdog(parts.world, this.#slots.running, (running, now) => this.#overdue(running, now))
  }

  get workerId(): string | undefined {
    return this.#lease?.worker
  }
  get beatsFromThread(): boolean {
    return this.#lease?.beatsFromThread === true
  }

  async start(): Promise<void> {
    this.#lease = await this.#takeLease()
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.ready) this.wake()
    })
    this.#pollAgain()
    this.wake()
  }

  configure(options: WorkerOptions): void {
    this.#options = options
    this.wake()
  }

  /** Something may be there to do. Cheap; calls of one turn of the loop are one. */
  wake(): void {
    this.#wanted = true
    if (this.#turning || this.#lease === undefined) return
    this.#turning = true
    void this.#turn()
  }

  /** Stops claiming, gives back what has not begun, waits for what has, and gives that back too when the deadline passes. */
  async stop(deadlineMs: number): Promise<void> {
    const { world } = this.#parts
    this.#stopping = true
    this.#poll?.()
    this.#again?.()
    this.#unhint?.()
    for (const job of this.#slots.takeHeld()) this.#put(job, { kind: 'released' }, undefined)
    void this.#outbox.flush()
    await this.#untilIdle(deadlineMs)
    for (const running of this.#slots.running) running.abort(new StoppedError())
    if (this.#slots.running.size > 0) await this.#untilIdle(STOP_GRACE_MS)
    for (const running of this.#slots.running) this.#settle(running, { kind: 'released' })
    const start = world.clock.monotonic()
    // A claim under way when the stop came gives its jobs back when it returns.
    while (this.#turning) await new Promise<void>((next) => world.timers.after(1, next))
    await this.#outbox.drain(() => world.clock.monotonic() - start > this.#options.leaseMs)
    this.#watchdog.stop()
    this.#reporting?.()
    await this.#lease?.end()
    this.#lease = undefined
  }

  enqueue: Surroundings['enqueue'] = (under, job, payload, options) => this.#parts.enqueue(under, job, payload, options)

  logLine(running: Running, line: string): void {
    this.#parts.events.logLine(running, line)
  }

  /** Progress is told to the store a few times a second at the most, whatever the handler's pace. */
  noteProgress(running: Running): void {
    running.reported = false
    this.#reporting ??= this.#parts.world.timers.after(
      PROGRESS_EVERY_MS,
      () => {
        this.#reporting = undefined
        void this.#report()
      },
      { idle: true },
    )
  }

  async #turn(): Promise<void> {
    try {
      while (this.#wanted && this.#lease !== undefined) {
        this.#wanted = false
        await Promise.all([this.#outbox.flush(), this.#report(), this.#claim()])
      }
    } finally {
      this.#turning = false
    }
  }

  async #claim(): Promise<void> {
    const lease = this.#lease
    if (this.#stopping || lease === undefined) return
    const plan = planClaim({
      concurrency: this.#options.concurrency,
      running: this.#slots.running.size,
      held: this.#slots.heldCount,
      averageMs: this.#meter.averageMs,
      alone: this.#alone !== undefined,
      suspectsSince: this.#suspectsSince,
      now: this.#parts.world.clock.monotonic(),
    })
    if (!plan.claim) {
      if (plan.againInMs !== null) this.#wakeIn(plan.againInMs)
      return
    }
    const fence = this.#parts.world.ids.fence()
    const names = this.#parts.registry.claimable()
    const request = {
      worker: lease.worker,
      fence,
      names,
      rooms: this.#rooms(),
      max: plan.max,
      starting: plan.starting,
      suspects: plan.suspects,
    }
    try {
      const claimed = await this.#parts.store.leases.claimJobs(request)
      this.#took(claimed, fence, plan.starting, plan.suspects, lease)
    } catch (error) {
      this.#parts.events.troubled('claim', error)
      this.#wakeIn(TROUBLE_MS)
    }
  }

  #took(claimed: Claimed, fence: number, starting: number, suspects: 'none' | 'alone' | 'beside', lease: Lease): void {
    const { world } = this.#parts
    if (claimed.lost) return void this.#lostLease('it was taken for dead', lease)
    this.#storeClock = { now: claimed.now, at: world.clock.monotonic() }
    this.#outbox.opened(fence, claimed.jobs.length)
    const tookSuspect = claimed.jobs[0]?.suspect === true
    // While suspects wait, normal claims pause until the worker is idle; one that ran beside others starts that wait anew.
    if (!claimed.suspectsWait) this.#suspectsSince = null
    else if (tookSuspect || this.#suspectsSince === null) this.#suspectsSince = world.clock.monotonic()
    this.#confirmedAt = world.clock.monotonic()
    for (const [i, job] of claimed.jobs.entries()) {
      this.#inHand.set(job.ref, undefined)
      if (this.#stopping) this.#put(job, { kind: 'released' }, undefined)
      else if (i < starting) this.#begin(job, true, tookSuspect && suspects === 'alone')
      else this.#slots.hold(job)
    }
    if (this.#stopping) return void this.#outbox.flush()
    this.#pump()
    if (claimed.jobs.length > 0) this.wake()
  }

  /** Lets held jobs begin where slots are free, if they are still ours. */
  #pump(): void {
    if (this.#pumping || this.#stopping) return
    while (this.#slots.heldCount > 0 && this.#slots.running.size < this.#options.concurrency) {
      if (this.#parts.world.clock.monotonic() - this.#confirmedAt > CONFIRMED_FOR_MS) {
        this.#pumping = true
        void this.#confirm()
        return
      }
      const job = this.#slots.nextHeld()
      if (job !== undefined) this.#begin(job, false, false)
    }
  }

  async #confirm(): Promise<void> {
    try {
      const confirmed = await this.#parts.store.leases.confirmJobs(this.#slots.held())
      for (const job of this.#slots.keepHeld(confirmed)) {
        this.#inHand.delete(job.ref)
        this.#outbox.leave(job.fence)
      }
      this.#confirmedAt = this.#parts.world.clock.monotonic()
      this.#pumping = false
      this.#pump()
    } catch (error) {
      this.#pumping = false
      this.#parts.events.troubled('confirm', error)
      this.#wakeIn(TROUBLE_MS)
    }
  }

  #begin(job: ClaimedJob, reported: boolean, alone: boolean): void {
    const { world, registry, events } = this.#parts
    const registered = registry.runnable(job.name)
    const now = this.#now()
    if (registered === undefined) return this.#put(job, { kind: 'released' }, undefined)
    if (job.expiresAt !== null && job.expiresAt <= now) return this.#put(job, { kind: 'expired' }, registered)
    const options = readOptions(job.options)
    const running = new Running(
      {
        claimed: job,
        registered,
        options,
        startedAt: now,
        begunAt: world.clock.monotonic(),
        timeoutMs: options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity),
        slowAfterMs: this.#options.slowAfterMs,
        reported,
      },
      this,
    )
    if (alone) this.#alone = running
    this.#inHand.set(job.ref, running)
    this.#slots.begin(running)
    this.#watchdog.watch(running)
    events.began(job)
    void this.#run(running)
  }

  async #run(running: Running): Promise<void> {
    const outcome = await runAttempt(this.#attempt(running))
    running.tookMs = this.#parts.world.clock.monotonic() - running.begunAt
    this.#meter.add(running.tookMs)
    this.#slots.end(running)
    if (this.#alone === running) this.#alone = undefined
    this.#settle(running, outcome)
    this.#pump()
    this.wake()
  }

  #attempt(running: Running): Attempt {
    return {
      registered: running.registered,
      payload: running.claimed.payload,
      retry: running.options.retry,
      retries: running.claimed.retries,
      attempt: running.attempt,
      random: this.#parts.world.random,
      call: (handler, payload) => this.#parts.executor.call(handler, payload, running),
      abortReason: () => running.abortReason,
    }
  }

  /** Hands an attempt's outcome to the outbox, once: whoever comes second finds it settled. */
  #settle(running: Running, outcome: Outcome): void {
    if (running.settled) return
    running.settled = true
    // Its claim is lost: whoever has it now tells its story.
    if (running.abortReason instanceof LeaseLostError) {
      this.#inHand.delete(running.claimed.ref)
      return this.#outbox.leave(running.claimed.fence)
    }
    this.#put(running.claimed, outcome, running.registered, running)
  }

  #put(job: ClaimedJob, outcome: Outcome, registered: Registered | undefined, running?: Running): void {
    const now = this.#now()
    const policy: DecisionPolicy = { crashBudget: this.#options.crashBudget, keepMs: registered?.keepMs ?? KEEP_ALL }
    const ended = {
      startedAt: running?.startedAt ?? now,
      endedAt: now,
      worker: this.workerId ?? '',
      lines: running?.lines,
    }
    this.#outbox.put(settlementOf(job, outcome, policy, ended))
    this.#inHand.set(job.ref, running)
    this.wake()
  }

  #written(settled: readonly SettledJob[], refused: ReadonlySet<number>): void {
    const { events } = this.#parts
    for (const job of settled) {
      const running = this.#inHand.get(job.ref)
      this.#inHand.delete(job.ref)
      if (refused.has(job.ref)) events.lost(`job ${running?.id ?? job.ref} (${job.name})`)
      else if (running !== undefined) events.settled(job, running.claimed, running.tookMs)
    }
  }

  /** Tells the store which held jobs have begun since the last commit, and how far jobs have come. */
  async #report(): Promise<void> {
    const unreported = [...this.#slots.running].filter((running) => !running.reported && !running.settled)
    if (unreported.length === 0) return
    for (const running of unreported) running.reported = true
    const reports = unreported.map((r) => ({
      ref: r.claimed.ref,
      fence: r.claimed.fence,
      startedAt: r.startedAt,
      progress: r.progressText,
    }))
    try {
      const lost = new Set(await this.#parts.store.leases.reportJobs(reports))
      for (const running of unreported)
        if (lost.has(running.claimed.ref))
          running.abort(new LeaseLostError(`job ${running.id} was cancelled as it began`))
    } catch (error) {
      for (const running of unreported) running.reported = false
      this.#parts.events.troubled('report', error)
    }
  }

  #overdue(running: Running, now: number): void {
    if (running.slowAt <= now) {
      this.#parts.events.slow(running, now - running.begunAt)
      running.slowAt = now + this.#options.slowAfterMs
    }
    if (running.alarmAt > now) return
    const took = formatDuration(now - running.begunAt)
    if (running.abortReason === undefined) {
      running.abort(new TimeoutError(`job ${running.job} ${running.id} ran longer than its timeout (${took})`))
      running.alarmAt = now + TIMEOUT_GRACE_MS
      return
    }
    // It did not come back within its grace: the attempt is over, and the handler keeps its slot until it really ends.
    running.alarmAt = Infinity
    this.#settle(running, failure(this.#attempt(running), running.abortReason))
    this.wake()
  }

  /** Taken for dead: every claim is void. What runs is told so, and the worker begins anew under another name. */
  async #lostLease(why: string, lease: Lease | undefined): Promise<void> {
    if (lease === undefined || this.#lease !== lease) return
    this.#lease = undefined
    this.#parts.events.lost(`worker ${lease.worker}: ${why}`)
    for (const running of this.#slots.running) running.abort(new LeaseLostError(`worker ${lease.worker} ${why}`))
    for (const job of this.#slots.takeHeld()) this.#inHand.delete(job.ref)
    this.#outbox.abandon()
    await lease.abandon()
    await this.#beginAnew()
  }

  async #beginAnew(): Promise<void> {
    if (this.#stopping) return
    try {
      this.#lease = await this.#takeLease()
      this.wake()
    } catch (error) {
      this.#parts.events.troubled('register', error)
      this.#again = this.#parts.world.timers.after(TROUBLE_MS, () => void this.#beginAnew())
    }
  }

  async #takeLease(): Promise<Lease> {
    const { store, world, process } = this.#parts
    const lease: Lease = await Lease.take(
      store.leases,
      world,
      this.#options.leaseMs,
      process,
      (why) => void this.#lostLease(why, this.#lease),
    )
    return lease
  }

  #rooms(): Map<string, number> {
    const rooms = new Map<string, number>()
    for (const [queue, most] of this.#options.queues) rooms.set(queue, Math.max(0, most - this.#slots.inQueue(queue)))
    return rooms
  }

  /** The store's clock, as far as the last claim told it. */
  #now(): number {
    return Math.round(this.#storeClock.now + (this.#parts.world.clock.monotonic() - this.#storeClock.at))
  }

  #pollAgain(): void {
    this.#poll = this.#parts.world.timers.after(this.#options.pollMs, () => {
      this.wake()
      this.#pollAgain()
    })
  }

  #wakeIn(ms: number): void {
    this.#again?.()
    this.#again = this.#parts.world.timers.after(ms, () => this.wake())
  }

  async #untilIdle(ms: number): Promise<void> {
    const { world } = this.#parts
    const end = world.clock.monotonic() + ms
    while (this.#slots.running.size > 0 && world.clock.monotonic() < end)
      await new Promise<void>((next) =>
        world.timers.after(Math.min(10, Math.max(1, end - world.clock.monotonic())), next),
      )
  }
}

/** A job given back is not kept by any policy: it goes on. */
const KEEP_ALL = { done: Infinity, failed: Infinity, cancelled: Infinity }
