import { LeaseLostError, TimeoutError } from '../errors.js'
import { formatDuration } from '../job/duration.js'
import type { Outcome } from '../job/outcome.js'
import type { Registered } from '../job/registry.js'
import { readOptions } from '../job/stored-options.js'
import type { Claimed, ClaimedJob, SettledJob } from '../store/store.js'
import type { Cancel } from '../world/timers.js'
import type { HandParts, Master } from './hand-parts.js'
import { Meter } from './meter.js'
import { Outbox } from './outbox.js'
import { Running } from './running.js'
import type { Surroundings } from './running.js'
import { policyOf, settlementOf } from './settle.js'
import { SelfSettler } from './settle-in.js'
import { Slots } from './slots.js'
import { StoreClock } from './store-clock.js'
import { failureOf, runBegun } from './surround.js'
import { Watchdog } from './watchdog.js'

/** How long after its timeout an attempt is given to come back before it is settled without it. */
const TIMEOUT_GRACE_MS = 30_000
/** A held job that was confirmed this recently begins without asking again. */
const CONFIRMED_FOR_MS = 5
/** The wait after a question that failed. */
const TROUBLE_MS = 500
const PROGRESS_EVERY_MS = 250

/**
 * What a worker has in its hand: jobs held and attempts running, from the moment they are claimed to the moment their
 * settlement is written. The worker decides when to claim and when to stop; the hand does the rest.
 */
export class Hand implements Surroundings {
  readonly slots = new Slots()
  readonly meter = new Meter()
  readonly outbox: Outbox
  readonly enqueue: Surroundings['enqueue']
  readonly settling: SelfSettler
  readonly #parts: HandParts
  readonly #master: Master
  readonly #watchdog: Watchdog
  /** The attempt behind each claimed job, until its settlement is written. */
  readonly #attempts = new Map<number, Running>()
  #alone: Running | undefined
  #closed = false
  #confirmedAt = -Infinity
  #pumping = false
  #reporting: Cancel | undefined
  readonly #clock: StoreClock

  constructor(parts: HandParts, master: Master) {
    this.#parts = parts
    this.#master = master
    this.enqueue = parts.enqueue
    this.#clock = new StoreClock(parts.world)
    this.settling = new SelfSettler(parts, (each, outcome) =>
      this.#settlement(each.claimed, outcome, each.registered, each),
    )
    this.outbox = new Outbox(parts.store.leases, parts.world, {
      written: (settled, refused) => this.#written(settled, refused),
      failed: (error) => parts.events.troubled('settle', error),
    })
    this.#watchdog = new Watchdog(parts.world, this.slots.running, (running, now) => this.#overdue(running, now))
  }

  /** A suspect runs here alone. */
  get isAlone(): boolean {
    return this.#alone !== undefined
  }

  /** Takes what was claimed: the first `starting` begin, the rest is held for the next free slots. */
  take(claimed: Claimed, fence: number, starting: number, alone: boolean): void {
    const { world } = this.#parts
    const now = world.clock.monotonic()
    this.#clock.tell(claimed.now, now)
    this.#confirmedAt = now
    this.outbox.opened(fence, claimed.jobs.length)
    for (const [i, job] of claimed.jobs.entries()) {
      this.meter.addPayload(job.payload)
      if (this.#closed) this.#put(job, { kind: 'released' }, undefined)
      else if (i < starting) this.#begin(job, true, alone, now)
      else this.slots.hold(job)
    }
    this.#pump()
  }

  /** Gives back what was claimed and must not begin: nobody knows for how long the answer was on its way. */
  refuse(jobs: readonly ClaimedJob[], fence: number): void {
    this.outbox.opened(fence, jobs.length)
    for (const job of jobs) this.#put(job, { kind: 'released' }, undefined)
  }

  /** Begins nothing more; what is held goes back. */
  close(): void {
    this.#closed = true
    for (const job of this.slots.takeHeld()) this.#put(job, { kind: 'released' }, undefined)
  }

  /** Gives back what still runs: its handlers are on their own, and what they return is not recorded. */
  giveUp(): void {
    for (const running of this.slots.running) this.#settle(running, { kind: 'released' })
    this.#watchdog.stop()
    this.#reporting?.()
  }

  abortAll(reason: Error): void {
    for (const running of this.slots.running) running.abort(reason)
  }

  /** Every claim is void: what runs is told so, what is held is let go, what waits to be written is not. */
  lose(reason: LeaseLostError): void {
    this.abortAll(reason)
    this.slots.takeHeld()
    this.#attempts.clear()
    this.#alone = undefined
    this.outbox.abandon()
  }

  logLine(running: Running, line: string): void {
    this.#parts.events.logLine(running, line)
  }

  /** Progress is told to the store a few times a second at the most, whatever the handler's pace. */
  noteProgress(running: Running): void {
    running.reported = false
    const tell = (): void => {
      this.#reporting = undefined
      void this.report()
    }
    this.#reporting ??= this.#parts.world.timers.after(PROGRESS_EVERY_MS, tell, { idle: true })
  }

  /** Tells the store which held jobs have begun since the last commit, and how far jobs have come. */
  async report(): Promise<void> {
    const unreported = [...this.slots.running].filter((running) => !running.reported && !running.settled)
    if (unreported.length === 0) return
    for (const running of unreported) running.reported = true
    const reports = unreported.map(({ claimed: { ref, fence }, startedAt, progressText }) => ({
      ref,
      fence,
      startedAt,
      progress: progressText,
    }))
    try {
      const lost = new Set(await this.#parts.store.leases.reportJobs(reports))
      for (const running of unreported)
        if (lost.has(running.claimed.ref) && running.settledIn === undefined)
          running.abort(new LeaseLostError(`job ${running.id} was taken away as it began`))
    } catch (error) {
      for (const running of unreported) running.reported = false
      this.#parts.events.troubled('report', error)
    }
  }

  /** Lets held jobs begin where slots are free, if they are still ours. */
  #pump(): void {
    if (this.#pumping || this.#closed) return
    while (this.slots.heldCount > 0 && this.slots.running.size < this.#master.options().concurrency) {
      const now = this.#parts.world.clock.monotonic()
      if (now - this.#confirmedAt > CONFIRMED_FOR_MS) {
        this.#pumping = true
        void this.#confirm()
        return
      }
      const job = this.slots.nextHeld()
      if (job !== undefined) this.#begin(job, false, false, now)
    }
  }

  async #confirm(): Promise<void> {
    try {
      // Jobs claimed while the answer is on its way were not asked about, and are not judged by it.
      const asked = this.slots.held()
      const confirmed = await this.#parts.store.leases.confirmJobs(asked)
      for (const job of this.slots.letGo(asked.filter((each) => !confirmed.has(each.ref)))) this.outbox.leave(job.fence)
      this.#confirmedAt = this.#parts.world.clock.monotonic()
      this.#pumping = false
      this.#pump()
    } catch (error) {
      this.#parts.events.troubled('confirm', error)
      this.#parts.world.timers.after(TROUBLE_MS, () => {
        this.#pumping = false
        this.#pump()
      })
    }
  }

  #begin(job: ClaimedJob, reported: boolean, alone: boolean, begunAt: number): void {
    const { registry, events } = this.#parts
    const registered = registry.runnable(job.name)
    if (registered === undefined) return this.#put(job, { kind: 'released' }, undefined)
    const startedAt = this.#clock.at(begunAt)
    if (job.expiresAt !== null && job.expiresAt <= startedAt) return this.#put(job, { kind: 'expired' }, registered)
    const options = readOptions(job.options)
    const timeoutMs = options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity)
    const slowAfterMs = this.#master.options().slowAfterMs
    const begin = {
      claimed: job,
      registered,
      options,
      startedAt,
      begunAt,
      timeoutMs,
      slowAfterMs,
      reported,
    }
    const running = new Running(begin, this)
    if (alone) this.#alone = running
    this.#attempts.set(job.ref, running)
    this.slots.begin(running)
    this.#watchdog.watch(running)
    events.began(job)
    // A handler that returned at once is settled a moment later too: it must not begin the next one from within itself.
    void Promise.resolve(runBegun(running, this.#parts)).then((outcome) => this.#ended(running, outcome))
  }

  #ended(running: Running, outcome: Outcome): void {
    const now = this.#parts.world.clock.monotonic()
    running.tookMs = now - running.begunAt
    this.meter.add(running.tookMs)
    this.slots.end(running)
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
      this.#forget(running)
      return this.outbox.leave(running.claimed.fence)
    }
    this.#put(running.claimed, rest, running.registered, running, now)
  }

  #put(
    job: ClaimedJob,
    outcome: Outcome,
    registered: Registered | undefined,
    running?: Running,
    endedAt?: number,
  ): void {
    this.outbox.put(this.#settlement(job, outcome, registered, running, endedAt))
    this.#master.wake()
  }

  #settlement(
    job: ClaimedJob,
    outcome: Outcome,
    registered?: Registered,
    running?: Running,
    endedAt?: number,
  ): SettledJob {
    const now = this.#clock.at(endedAt)
    const policy = policyOf(this.#master.options().crashBudget, registered?.keepMs)
    const ended = {
      startedAt: running?.startedAt ?? now,
      endedAt: now,
      worker: this.#master.workerId(),
      lines: running?.lines,
    }
    return settlementOf(job, outcome, policy, ended)
  }

  #written(settled: readonly SettledJob[], refused: ReadonlySet<number>): void {
    const { events } = this.#parts
    for (const job of settled) {
      const running = this.#attempts.get(job.ref)
      const mine = running?.claimed.fence === job.fence ? running : undefined
      if (mine !== undefined) this.#forget(mine)
      if (refused.has(job.ref)) void this.settling.tellGone(job, mine)
      else events.settled(job, mine?.tookMs, mine)
    }
    this.#master.written()
  }

  /** Its story is written, or no longer ours to tell. Only then is a suspect no longer alone: a crash before would be charged to it. */
  #forget(running: Running): void {
    if (this.#alone === running) {
      this.#alone = undefined
      this.#master.wake()
    }
    if (this.#attempts.get(running.claimed.ref) === running) this.#attempts.delete(running.claimed.ref)
  }

  #overdue(running: Running, now: number): void {
    if (running.slowAt <= now) {
      this.#parts.events.slow(running, now - running.begunAt)
      running.slowAt = now + this.#master.options().slowAfterMs
    }
    if (running.alarmAt > now) return
    // Told to stop, or robbed of its claim: it is given back or let go, and no timeout is held against it.
    if (running.abortReason !== undefined && !(running.abortReason instanceof TimeoutError)) {
      running.alarmAt = Infinity
      return
    }
    if (running.abortReason === undefined) {
      const took = formatDuration(now - running.begunAt)
      running.abort(new TimeoutError(`job ${running.job} ${running.id} ran longer than its timeout (${took})`))
      running.alarmAt = now + TIMEOUT_GRACE_MS
      return
    }
    // It did not come back within its grace: the attempt is over, and the handler keeps its slot until it really ends.
    running.alarmAt = Infinity
    running.tookMs = now - running.begunAt
    this.#settle(running, failureOf(running, this.#parts))
  }
}
