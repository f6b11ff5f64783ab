import { LeaseLostError } from '../errors.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { Registered } from '../job/definition/registry.js'
import { KEEP_ALL } from '../job/definition/keep.js'
import { readOptions } from '../job/definition/stored-options.js'
import { settleJob } from '../store/settled-job.js'
import type { Claimed, ClaimedJob } from '../store/store.js'
import type { Cancel } from '../world/timers.js'
import { Announcer } from './announce.js'
import type { HandParts, Master } from './in-flight-parts.js'
import { Meter } from './meter.js'
import { Outbox } from './outbox.js'
import type { SettledRun } from './outbox.js'
import { overdue, tellCancelled } from './overdue.js'
import { Reports } from './reports.js'
import { Running } from './running.js'
import type { JobVerbs, Surroundings } from './running.js'
import { SelfSettler } from './settle-in.js'
import { Slots } from './slots.js'
import { StoreClock } from './store-clock.js'
import { runBegun } from './attempt-host.js'
import { Watchdog } from './watchdog.js'

/** Held jobs begin within 50 ms, if the next are like the last. When no slot has come free for this long, they are not. */
const HELD_MAX_MS = 250
/** More jobs held than this begin in a turn of the event loop of their own. */
const BREATHER_JOBS = 50
/** The wait after a question that failed. */
const TROUBLE_MS = 500

/** Jobs held and attempts running, from their claim to their written settlement. The worker decides when to claim and to stop. */
export class Hand implements Surroundings {
  readonly slots = new Slots()
  readonly meter = new Meter()
  readonly outbox: Outbox
  readonly reports: Reports
  readonly verbs: JobVerbs
  readonly settling: SelfSettler
  readonly #parts: HandParts
  readonly #master: Master
  readonly watchdog: Watchdog
  readonly #announcer: Announcer
  #closed = false
  #confirmedAt = -Infinity
  /** How long what was confirmed may begin. */
  readonly #worthMs: number
  #pumping = false
  #patience: Cancel | undefined
  readonly #clock: StoreClock

  constructor(parts: HandParts, master: Master) {
    this.#parts = parts
    this.#master = master
    this.#worthMs = parts.store.info.heldUnconfirmedMs
    this.verbs = parts
    this.#clock = new StoreClock(parts.world)
    this.settling = new SelfSettler(parts, (each, outcome) =>
      this.#settlement(each.claimed, outcome, each.registered, each),
    )
    this.reports = new Reports(parts, this.slots.running)
    this.outbox = new Outbox(parts.store.leases, parts.world, {
      written: (settled, refused) => this.#written(settled, refused),
      failed: (error, job) =>
        parts.events.troubled(job === undefined ? 'settle' : `record the end of job ${job.name} ${job.id}`, error),
    })
    this.#announcer = new Announcer(parts.store.leases)
    this.watchdog = new Watchdog(parts, this.slots.running, (running, now) => this.#overdue(running, now))
  }

  /** For how long every slot has been taken and none came free. */
  fullForMs(): number {
    return this.slots.fullForMs(this.#master.options().concurrency, this.#parts.world.clock.monotonic())
  }

  /** Handlers that were settled without having come back. */
  countAbandoned(): number {
    return [...this.slots.running].filter((running) => running.settled).length
  }

  /** Takes what was claimed: the first `starting` begin, the rest is held for the next free slots. */
  take(claimed: Claimed, fence: number, starting: number): void {
    const { world } = this.#parts
    const now = world.clock.monotonic()
    this.#clock.tell(claimed.now, now)
    // A claim says nothing about what was held before it: those are still trusted for as long as they were, and no longer.
    if (this.slots.heldCount === 0) this.#confirmedAt = now
    // A job that is claimed anew was taken from us and has come back: what is held of it by the old claim is void.
    for (const old of this.slots.letGoOf(claimed.jobs)) this.outbox.leave(old.fence)
    this.outbox.opened(fence, claimed.jobs.length)
    for (const [i, job] of claimed.jobs.entries()) {
      this.meter.addPayload(job.payload)
      if (this.#closed) this.#put(job, { kind: 'released' })
      else if (i < starting) this.#beginClaimed(job, now)
      else this.slots.hold(job)
    }
    if (this.slots.heldCount > BREATHER_JOBS) this.#pumpNextTurn()
    else this.#pump()
  }

  /** The claim's commit has had this turn of the event loop: many handlers that return at once get one of their own. */
  #pumpNextTurn(): void {
    if (this.#pumping) return
    this.#pumping = true
    this.#parts.world.timers.soon(() => {
      this.#pumping = false
      this.#pump()
    })
  }

  /** Those before it may have blocked the event loop: what was asked of this one meanwhile is honoured where it goes back to. */
  #beginClaimed(job: ClaimedJob, claimedAt: number): void {
    const now = this.#parts.world.clock.monotonic()
    if (now - claimedAt > this.#worthMs) this.#put(job, { kind: 'released' })
    else this.#begin(job, true, now)
  }

  /** Gives back what was claimed and must not begin: nobody knows for how long the answer was on its way. */
  refuse(jobs: readonly ClaimedJob[], fence: number): void {
    this.outbox.opened(fence, jobs.length)
    for (const job of jobs) this.#put(job, { kind: 'released' })
  }

  /** Begins nothing more; what is held goes back. */
  close(): void {
    this.#closed = true
    this.#patience?.()
    for (const job of this.slots.takeHeld()) this.#put(job, { kind: 'released' })
  }

  /** Gives back what still runs: its handlers are on their own, and what they return is not recorded. */
  giveUp(): void {
    for (const running of this.slots.running) this.#settle(running, { kind: 'released' })
    this.watchdog.stop()
    this.reports.stop()
  }

  abortAll(reason: Error): void {
    for (const running of this.slots.running) running.abort(reason)
  }

  /** Every claim is void: what runs is told so, what is held is let go, what waits to be written is not. */
  lose(reason: LeaseLostError): void {
    this.abortAll(reason)
    this.slots.takeHeld()
    this.outbox.abandon()
  }

  /** Something was asked that may be about held jobs: they are confirmed now, and those of paused queues go back. */
  doubt(): void {
    this.#confirmedAt = -Infinity
    if (this.slots.heldCount > 0 && !this.#pumping && !this.#closed) void this.#confirm()
  }

  /** A running job was cancelled: its handler is told, and is given a while to come back. */
  cancelled(running: Running, reason: string): void {
    tellCancelled(running, reason, this.#parts.world.clock.monotonic())
    this.watchdog.watch(running)
  }

  logLine(...logged: Parameters<Surroundings['logLine']>): void {
    this.#parts.events.logLine(...logged)
  }

  noteProgress(running: Running): void {
    this.reports.noteProgress(running)
  }

  /** Lets held jobs begin where slots are free, if they are still ours. */
  #pump(): void {
    if (this.#pumping || this.#closed) return
    while (this.slots.heldCount > 0 && this.slots.running.size < this.#master.options().concurrency) {
      const now = this.#parts.world.clock.monotonic()
      const isAnnounced = !this.#announcer.isDue(this.slots.firstHeld())
      if (now - this.#confirmedAt > this.#worthMs || !isAnnounced) return void this.#confirm()
      const job = this.slots.nextHeld()
      if (job !== undefined) this.#begin(job, this.#announcer.isAnnounced(job), now)
    }
    if (this.slots.heldCount > 0) this.#patience ??= this.#parts.world.timers.after(HELD_MAX_MS, () => this.#letWait())
  }

  /** What is held for a slot that does not come free goes back: somebody else may have one. */
  #letWait(): void {
    this.#patience = undefined
    if (this.fullForMs() < HELD_MAX_MS) return this.#pump()
    for (const job of this.slots.takeHeld()) this.#put(job, { kind: 'released' })
  }

  async #confirm(): Promise<void> {
    this.#pumping = true
    try {
      if (this.#announcer.isDue(this.slots.firstHeld())) await this.#announceNext()
      // Jobs claimed while the answer is on its way were not asked about, and are not judged by it.
      const asked = this.slots.held()
      const askedAt = this.#parts.world.clock.monotonic()
      const { mine, paused } = await this.#parts.store.leases.confirmJobs(asked)
      for (const job of this.slots.letGo(asked.filter((each) => !mine.has(each.ref))))
        if (paused.has(job.ref)) this.#put(job, { kind: 'released' })
        else this.outbox.leave(job.fence)
      // Of an answer that took longer than it is worth, at least those begin that can at once.
      this.#confirmedAt = Math.max(askedAt, this.#parts.world.clock.monotonic() + 1 - this.#worthMs)
      this.#pumping = false
      this.#pump()
    } catch (error) {
      this.#parts.events.troubled('confirm', error)
      // To the store, announced jobs have begun: a cancel only asks for their end, so they go back and end there.
      const announced = this.slots.held().filter((job) => this.#announcer.isAnnounced(job))
      for (const job of this.slots.letGo(announced)) this.#put(job, { kind: 'released' })
      this.#parts.world.timers.after(TROUBLE_MS, () => {
        this.#pumping = false
        this.#pump()
      })
    }
  }

  #announceNext(): Promise<void> {
    const free = this.#master.options().concurrency - this.slots.running.size
    return this.#announcer.announce(this.slots.held().slice(0, Math.max(1, free)), this.#clock.at())
  }

  #begin(job: ClaimedJob, reported: boolean, begunAt: number): void {
    const { registry, events } = this.#parts
    const registered = registry.runnable(job.name)
    if (registered === undefined) return this.#put(job, { kind: 'released' })
    const startedAt = this.#clock.at(begunAt)
    if (job.expiresAt !== null && job.expiresAt <= startedAt) return this.#put(job, { kind: 'expired' }, registered)
    const options = readOptions(job.options)
    const timeoutMs = options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity)
    const slowAfterMs = this.#master.options().slowAfterMs
    const begin = { claimed: job, registered, options, startedAt, begunAt, timeoutMs, slowAfterMs, reported }
    const running = new Running(begin, this)
    this.slots.begin(running)
    this.watchdog.watch(running)
    events.began(job)
    // A handler that returned at once is settled a moment later too: it must not begin the next one from within itself.
    void Promise.resolve(runBegun(running, this.#parts)).then((outcome) => {
      if (running.promised === undefined) return this.#ended(running, outcome)
      return this.settling.complete(running, outcome).then((whole) => this.#ended(running, whole))
    })
  }

  #ended(running: Running, outcome: Outcome): void {
    const now = this.#parts.world.clock.monotonic()
    running.tookMs = now - running.begunAt
    this.meter.add(running.tookMs)
    this.slots.end(running, now)
    this.#settle(running, outcome, now)
    this.#pump()
    this.#master.wake()
  }

  /** Hands an attempt's outcome to the outbox, once: whoever comes second finds it settled. */
  #settle(running: Running, outcome: Outcome, now = this.#parts.world.clock.monotonic()): void {
    if (running.settled) return
    running.settled = true
    const rest = this.settling.outcomeOf(running, outcome)
    // It has written its own story, or its claim is lost and whoever has it now tells it.
    if (running.committed || running.abortReason instanceof LeaseLostError) {
      void this.settling.tellGone(running.claimed, running)
      this.#master.left(running.claimed)
      return this.outbox.leave(running.claimed.fence)
    }
    this.#put(running.claimed, rest, running.registered, running, now)
  }

  #put(job: ClaimedJob, outcome: Outcome, registered?: Registered, running?: Running, endedAt?: number): void {
    this.outbox.put(this.#settlement(job, outcome, registered, running, endedAt))
    this.#master.wake()
  }

  #settlement(job: ClaimedJob, outcome: Outcome, registered?: Registered, running?: Running, at?: number): SettledRun {
    const now = this.#clock.at(at)
    const { crashBudget } = this.#master.options()
    return settleJob(
      job,
      outcome,
      // A job that is only given back does not end, so no policy keeps it.
      { crashBudget, keepMs: registered?.keepMs ?? KEEP_ALL },
      {
        startedAt: running?.startedAt ?? now,
        endedAt: now,
        worker: this.#master.workerId(),
        lines: running?.lines,
        running,
      },
    )
  }

  #written(settled: readonly SettledRun[], refused: ReadonlySet<number>): void {
    const { events } = this.#parts
    for (const job of settled) {
      const { running } = job
      this.#master.left(job)
      if (refused.has(job.ref)) void this.settling.tellGone(job, running)
      else events.settled(job, running?.tookMs, running)
    }
    this.#master.written()
  }

  #overdue(running: Running, now: number): void {
    if (running.slowAt <= now) {
      this.#parts.events.slow(running, now - running.begunAt)
      running.slowAt = now + this.#master.options().slowAfterMs
    }
    if (running.alarmAt > now) return
    const outcome = overdue(running, now, this.#parts)
    if (outcome === undefined) return
    running.tookMs = now - running.begunAt
    this.#settle(running, outcome)
  }
}
