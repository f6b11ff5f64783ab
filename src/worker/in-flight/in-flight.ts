import { LeaseLostError } from '../../errors.js'
import type { AttemptHealth } from '../../job/limits/outage.js'
import type { Outcome } from '../../job/rules/outcome.js'
import { hasCrashed } from '../../job/rules/quarantine.js'
import type { Registered } from '../../job/definition/registry.js'
import { KEEP_ALL } from '../../job/definition/keep.js'
import { readOptions } from '../../job/definition/stored-options.js'
import type { StoredOptions } from '../../job/definition/stored-options.js'
import type { ClaimedSequence, NewStep } from '../../store/sequences.js'
import { settleJob } from '../../store/settled-job.js'
import type { Claimed, ClaimedJob } from '../../store/store.js'
import type { Cancel } from '../../world/timers.js'
import { ReportBeforeStart } from './report-before-start.js'
import type { InFlightParts, InFlightOwner } from './in-flight-parts.js'
import { Meter } from '../meter.js'
import { Outbox } from './outbox.js'
import type { SettledRun } from './outbox.js'
import { ABORT_GRACE_MS, overdue, abortCancelled } from './overdue.js'
import { goesOn, ItemLog, isLastItem, itemOf, nextItem, outcomeWithoutItem, settleItem } from './sequence-items.js'
import type { FreshlyAppended } from './sequence-items.js'
import { AttemptReporter } from './reports.js'
import { Running } from '../attempt/running.js'
import type { Begin, JobVerbs, AttemptHost } from '../attempt/running.js'
import { SelfSettler } from '../attempt/settle-in.js'
import { Slots } from './slots.js'
import { StoreClock } from '../store-clock.js'
import { attemptInput } from '../attempt/attempt-input.js'
import { runInCapturedContext } from '../attempt/attempt-host.js'
import { classify } from '../attempt/run.js'
import { Watchdog } from './watchdog.js'
import { WorkflowRuns } from '../workflows/workflow-runs.js'

/** Held jobs begin within 50 ms, if handlers take as long as before. When no slot became free for this long, they take longer. */
const HELD_MAX_MS = 250
/** More held jobs than this begin in an event-loop turn of their own. */
const HELD_PER_TURN_MAX = 50
/** A sequence that has held its slot for so long returns it between two items, if other jobs could use it. */
const YIELD_AFTER_MS = 1_000
/** The wait after a read of the store that failed. */
const STORE_RETRY_MS = 500
/** Where a settlement is a commit of its own, the ends of workflows wait so long for others of the same slots. */
const ENDS_WAIT_MS = 10

/** The jobs in flight: held or running, from their claim to their written settlement. The worker decides when to claim and to stop. */
export class InFlight implements AttemptHost {
  readonly slots = new Slots()
  readonly meter = new Meter()
  readonly outbox: Outbox
  readonly reports: AttemptReporter
  readonly verbs: JobVerbs
  readonly settling: SelfSettler
  readonly workflows: WorkflowRuns
  readonly #parts: InFlightParts
  readonly #owner: InFlightOwner
  readonly watchdog: Watchdog
  readonly #reportBeforeStart: ReportBeforeStart
  #closed = false
  #confirmedAt = -Infinity
  /** For how long after a confirmation held jobs may begin without another one. */
  readonly #confirmedForMs: number
  /** Held jobs wait: for a confirmation, or for the next event-loop turn. */
  #isHolding = false
  #heldTimer: Cancel | undefined
  readonly #clock: StoreClock
  readonly #items: ItemLog
  /** The lanes whose attempts have failed lately, as the last claim saw them. */
  #failing: ReadonlySet<string> = new Set()
  /** Items that have ended and whose rows are being written. */
  readonly #recording = new Set<Running>()
  /** A workflow has ended since the last round. */
  #hasWorkflowEnded = false
  /** Settlements of workflows that wait to be written. */
  #endsWaiting = 0
  #endsTimer: Cancel | undefined
  /** Sequences that were claimed again while an item of an earlier claim still runs here: they wait for it to return. */
  readonly #behind = new Map<Running, ClaimedJob>()

  constructor(parts: InFlightParts, owner: InFlightOwner) {
    this.#parts = parts
    this.#owner = owner
    this.#confirmedForMs = parts.store.info.heldUnconfirmedMs
    this.verbs = parts
    this.#clock = new StoreClock(parts.world)
    this.#items = new ItemLog(parts)
    this.settling = new SelfSettler(parts, (each, outcome) =>
      this.#settlement(each.claimed, outcome, each.registered, each),
    )
    this.workflows = new WorkflowRuns(parts, {
      now: () => this.#clock.at(),
      isClosed: () => this.#closed,
      yields: (running) => this.#yields(running, 0),
      settlement: (running, outcome) => this.#settlement(running.claimed, outcome, running.registered, running),
      logLine: (running, logged) => this.logLine(running, logged),
      options: () => owner.options(),
    })
    this.reports = new AttemptReporter(parts, this.slots.running)
    this.outbox = new Outbox(parts.store.leases, parts.world, {
      written: (settled, refused) => this.#onWritten(settled, refused),
      failed: (error, job) =>
        parts.events.storeFailed(job === undefined ? 'settle' : `record the end of job ${job.name} ${job.id}`, error),
    })
    this.#reportBeforeStart = new ReportBeforeStart(parts.store.leases)
    this.watchdog = new Watchdog(parts, this.slots.running, (running, now) => this.#overdue(running, now))
  }

  /** For how long every slot has been taken and none became free. */
  fullForMs(): number {
    return this.slots.fullForMs(this.#owner.options().concurrency, this.#parts.world.clock.monotonic())
  }

  /** Attempts that were settled although their handlers have not returned. */
  countAbandoned(): number {
    return [...this.slots.running].filter((running) => running.settled && !this.#recording.has(running)).length
  }

  /** Takes claimed jobs: the first `starting` begin, the rest is held for the next free slots. */
  take(claimed: Claimed, fence: number, starting: number, isLimited = false): void {
    const { world } = this.#parts
    const now = world.clock.monotonic()
    this.#clock.set(claimed.now, now)
    this.#failing = new Set(claimed.failing?.map(({ queue, name }) => laneKey(queue, name)))
    // A claim does not confirm the jobs that were held before it: they keep the time of their own confirmation.
    if (this.slots.heldCount === 0) this.#confirmedAt = now
    // A job that is held and claimed again was taken from this worker and has come back: the old claim of it is void.
    for (const old of this.slots.removeByRef(claimed.jobs)) this.outbox.drop(old.fence)
    this.outbox.opened(fence, claimed.jobs.length)
    if (!this.#closed) this.workflows.claimed(claimed.jobs)
    for (const [i, job] of claimed.jobs.entries()) {
      this.meter.addPayload(job.payload)
      if (this.#closed) this.#put(job, { kind: 'released' })
      else if (i < starting) this.#beginClaimed(job, now, isLimited)
      else this.slots.hold(job)
    }
    if (this.slots.heldCount > HELD_PER_TURN_MAX) this.#beginHeldNextTurn()
    else this.#beginHeld()
  }

  /** The commit of the claim used this event-loop turn: many handlers that return at once get one of their own. */
  #beginHeldNextTurn(): void {
    if (this.#isHolding) return
    this.#isHolding = true
    this.#parts.world.timers.soon(() => {
      this.#isHolding = false
      this.#beginHeld()
    })
  }

  /** The handlers before it may have blocked the event loop: a change requested meanwhile is applied when the job is released. */
  #beginClaimed(job: ClaimedJob, claimedAt: number, isLimited: boolean): void {
    const now = this.#parts.world.clock.monotonic()
    if (now - claimedAt > this.#confirmedForMs) this.#put(job, { kind: 'released' })
    // A rate counts a start at the time of its claim, and so does its record.
    else this.#begin(job, true, isLimited ? claimedAt : now)
  }

  /** Releases claimed jobs that must not begin, because the claim's answer came too late or not at all. */
  releaseClaimed(jobs: readonly ClaimedJob[], fence: number): void {
    this.outbox.opened(fence, jobs.length)
    for (const job of jobs) this.#put(job, { kind: 'released' })
  }

  /** The ends of workflows wait a moment for the next steps of others, whose commit they share; undefined: nothing to wait for. */
  gathered(): Promise<void> | undefined {
    if (!this.#hasWorkflowEnded || this.#closed) return undefined
    this.#hasWorkflowEnded = false
    return this.workflows.logs.nextAppend()
  }

  /**
   * Writes what has ended. Over a network a settlement delays the next steps of the workflows in hand, which are seldom in step:
   * their ends wait for each other while every slot is taken, so that they are one commit and not one for each.
   */
  flush(): Promise<void> {
    if (this.#mayEndsWait()) {
      this.#endsTimer ??= this.#parts.world.timers.after(ENDS_WAIT_MS, () => this.#endWait())
      return Promise.resolve()
    }
    this.#endsTimer?.()
    this.#endsTimer = undefined
    this.#endsWaiting = 0
    return this.outbox.flush()
  }

  #endWait(): void {
    this.#endsWaiting = 0
    this.#owner.wake()
  }

  #mayEndsWait(): boolean {
    const { concurrency } = this.#owner.options()
    if (this.#closed || this.#parts.store.info.batchesAhead === 1 || this.#owner.isDraining()) return false
    const areEndsOnly = this.#endsWaiting > 0 && this.#endsWaiting === this.outbox.waiting
    return areEndsOnly && this.#endsWaiting < concurrency && this.slots.running.size >= concurrency
  }

  /** Begins nothing more, and releases held jobs. */
  close(): void {
    this.#closed = true
    this.#heldTimer?.()
    this.#endsTimer?.()
    for (const job of this.slots.takeHeld()) this.#put(job, { kind: 'released' })
    for (const job of this.#behind.values()) this.#put(job, { kind: 'released' })
    this.#behind.clear()
    for (const { workflow } of this.slots.running) workflow?.wake()
  }

  /** Releases the jobs that still run. Their handlers go on, and what they return is not recorded. */
  releaseRunning(): void {
    for (const running of this.slots.running) {
      this.#parts.executor.end?.(running)
      this.#settle(running, { kind: 'released' })
      running.workflow?.freeze()
    }
    this.workflows.stop()
    for (const running of this.#recording) this.#put(running.claimed, { kind: 'released' }, running.registered, running)
    this.#recording.clear()
    this.watchdog.stop()
    this.reports.stop()
  }

  abortAll(reason: Error): void {
    for (const running of this.slots.running) running.abort(reason)
  }

  /** Every claim is void: aborts running handlers, and drops held jobs and unwritten settlements. */
  dropClaims(reason: LeaseLostError): void {
    this.abortAll(reason)
    this.#recording.clear()
    this.#behind.clear()
    this.slots.takeHeld()
    this.outbox.abandon()
  }

  /** A request may concern held jobs: confirms them now, and releases those of paused queues. */
  recheckHeld(): void {
    this.workflows.unbegun.forget()
    this.#confirmedAt = -Infinity
    if (this.slots.heldCount > 0 && !this.#isHolding && !this.#closed) void this.#confirm()
  }

  /** Aborts the handler of a cancelled job, and gives it a grace period to return. */
  cancel(running: Running, reason: string): void {
    abortCancelled(running, reason, this.#parts.world.clock.monotonic())
    this.watchdog.watch(running)
  }

  /** Code of an attempt threw where its handler cannot catch it: fails the attempt. */
  fail(running: Running, error: unknown): void {
    // What the body of a workflow does not await cannot end it.
    if (running.settled || running.workflow !== undefined) return this.#parts.events.errorAfterEnd(running, error)
    const now = this.#parts.world.clock.monotonic()
    const outcome = classify(attemptInput(running, this.#parts), error)
    running.abort(error)
    running.isFailedOutside = true
    running.alarmAt = now + ABORT_GRACE_MS
    running.tookMs = now - running.begunAt
    this.#settle(running, outcome, now)
    this.watchdog.watch(running)
  }

  logLine(...logged: Parameters<AttemptHost['logLine']>): void {
    this.#parts.events.logLine(...logged)
  }

  noteProgress(running: Running): void {
    this.reports.noteProgress(running)
  }

  /** Begins held jobs where slots are free, if this worker's claim still holds them. */
  #beginHeld(): void {
    if (this.#isHolding || this.#closed) return
    while (this.slots.heldCount > 0 && this.slots.running.size < this.#owner.options().concurrency) {
      const now = this.#parts.world.clock.monotonic()
      const isReported = !this.#reportBeforeStart.isDue(this.slots.firstHeld())
      if (now - this.#confirmedAt > this.#confirmedForMs || !isReported) return void this.#confirm()
      const job = this.slots.nextHeld()
      if (job !== undefined) this.#begin(job, this.#reportBeforeStart.isReported(job), now)
    }
    if (this.slots.heldCount > 0)
      this.#heldTimer ??= this.#parts.world.timers.after(HELD_MAX_MS, () => this.#releaseHeld())
  }

  /** Releases jobs that are held for a slot that does not become free: another worker may have one. */
  #releaseHeld(): void {
    this.#heldTimer = undefined
    if (this.fullForMs() < HELD_MAX_MS) return this.#beginHeld()
    for (const job of this.slots.takeHeld()) this.#put(job, { kind: 'released' })
  }

  async #confirm(): Promise<void> {
    this.#isHolding = true
    try {
      if (this.#reportBeforeStart.isDue(this.slots.firstHeld())) await this.#reportNext()
      // Jobs that are claimed while this read is under way are not part of it.
      const held = this.slots.held()
      const sentAt = this.#parts.world.clock.monotonic()
      const { mine, paused } = await this.#parts.store.leases.confirmJobs(held)
      const requested = await this.#requestedAmong(held)
      for (const job of this.slots.remove(held.filter(({ ref }) => !mine.has(ref) || requested.has(ref))))
        if (paused.has(job.ref) || mine.has(job.ref)) this.#put(job, { kind: 'released' })
        else this.outbox.drop(job.fence)
      // If the answer took longer than it is valid, at least the jobs begin that have a slot now.
      this.#confirmedAt = Math.max(sentAt, this.#parts.world.clock.monotonic() + 1 - this.#confirmedForMs)
      this.#isHolding = false
      this.#beginHeld()
    } catch (error) {
      this.#parts.events.storeFailed('confirm', error)
      // To the store, reported jobs have begun, so a cancel of one is only a request: they are released, which applies it.
      const reported = this.slots.held().filter((job) => this.#reportBeforeStart.isReported(job))
      for (const job of this.slots.remove(reported)) this.#put(job, { kind: 'released' })
      this.#parts.world.timers.after(STORE_RETRY_MS, () => {
        this.#isHolding = false
        this.#beginHeld()
      })
    }
  }

  /** To the store a reported job runs, so that a cancel or a pause of it is only requested: releasing the job applies it. */
  async #requestedAmong(held: readonly ClaimedJob[]): Promise<ReadonlySet<number>> {
    const reported = held.filter((job) => this.#reportBeforeStart.isReported(job))
    if (reported.length === 0) return new Set()
    const fences = new Map((await this.#parts.store.leases.readRequests()).map(({ ref, fence }) => [ref, fence]))
    return new Set(reported.filter(({ ref, fence }) => fences.get(ref) === fence).map(({ ref }) => ref))
  }

  #reportNext(): Promise<void> {
    const free = this.#owner.options().concurrency - this.slots.running.size
    return this.#reportBeforeStart.report(this.slots.held().slice(0, Math.max(1, free)), this.#clock.at())
  }

  #begin(job: ClaimedJob, reported: boolean, begunAt: number): void {
    const { registry, events } = this.#parts
    const registered = registry.runnable(job.name)
    if (registered === undefined) return this.#put(job, { kind: 'released' })
    const startedAt = this.#clock.at(begunAt)
    if (job.expiresAt !== null && job.expiresAt <= startedAt) return this.#put(job, { kind: 'expired' }, registered)
    const options = readOptions(job.options)
    const claimed = options.sequence === undefined ? job : itemOf(job)
    if (claimed === undefined) return this.#put(job, outcomeWithoutItem(job, registered.codec), registered)
    const before = claimed.sequence === undefined ? undefined : this.#stillRunning(claimed)
    if (before !== undefined) return void this.#behind.set(before, job)
    events.began(claimed)
    this.#start(claimed, registered, options, { reported, begunAt, heldSince: begunAt })
  }

  /** An item of this sequence whose claim was lost, and whose handler has not returned. */
  #stillRunning({ ref }: ClaimedJob): Running | undefined {
    return [...this.slots.running].find(
      (running) => running.claimed.ref === ref && running.abortReason instanceof LeaseLostError,
    )
  }

  #start(
    claimed: ClaimedJob,
    registered: Registered,
    options: StoredOptions,
    { reported, begunAt, heldSince }: Pick<Begin, 'reported' | 'begunAt' | 'heldSince'>,
  ): void {
    const startedAt = this.#clock.at(begunAt)
    const isWorkflow = registered.workflow !== undefined
    const ownTimeoutMs = options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity)
    // The steps of a workflow are watched, each alone.
    const timeoutMs = isWorkflow ? Infinity : ownTimeoutMs
    const slowAfterMs = isWorkflow ? Infinity : (registered.slowAfterMs ?? this.#owner.options().slowAfterMs)
    const begin = { claimed, registered, options, startedAt, begunAt, timeoutMs, slowAfterMs, reported, heldSince }
    const running = new Running(begin, this)
    if (isWorkflow) this.workflows.begin(running)
    this.slots.begin(running)
    this.watchdog.watch(running)
    // A handler that returned synchronously is settled in a later microtask: the next one must not begin inside its call.
    void Promise.resolve(runInCapturedContext(running, this.#parts)).then((outcome) => {
      if (running.pendingWrites === undefined) return this.#ended(running, outcome)
      return this.settling.complete(running, outcome).then((whole) => this.#ended(running, whole))
    })
  }

  #ended(running: Running, outcome: Outcome): void {
    const now = this.#parts.world.clock.monotonic()
    running.tookMs = now - running.begunAt
    this.meter.add(running.tookMs)
    if (goesOn(running, outcome)) return void this.#recordItem(running, outcome)
    if (running.workflow !== undefined) {
      this.#hasWorkflowEnded = true
      this.#endsWaiting += 1
    }
    this.slots.end(running, now)
    this.#settle(running, outcome, now)
    this.#slotFree(running)
  }

  #slotFree(running: Running): void {
    const behind = this.#behind.get(running)
    // Released and not begun: a change that was requested of it meanwhile is applied so.
    if (behind !== undefined) this.#put(behind, { kind: 'released' })
    this.#behind.delete(running)
    this.#beginHeld()
    this.#owner.wake()
  }

  /** Appends the row of an item that ended well, and begins the next one. The sequence keeps its slot meanwhile. */
  async #recordItem(running: Running, outcome: Outcome): Promise<void> {
    const { claimed, registered } = running
    const { ref, fence, id, name, queue, sequence } = claimed
    if (sequence === undefined) return
    running.settled = true
    this.#recording.add(running)
    const ended = this.#knownEnd(running, outcome)
    const { step } = this.#settlement(claimed, ended, registered, running)
    if (step === undefined) return
    const itemsFrom =
      sequence.items.length > 1 || isLastItem(sequence) ? undefined : { list: sequence.list, index: sequence.index + 1 }
    const appended = await this.#items.append(
      { ref, fence, id, name, queue, step, endsStreak: hasCrashed(claimed), itemsFrom },
      () => !this.#recording.has(running),
    )
    const isOver = !this.#recording.delete(running) || appended === undefined
    this.slots.end(running, this.#parts.world.clock.monotonic())
    if (!isOver) this.#afterItem(running, ended, step, appended)
    this.#slotFree(running)
  }

  /**
   * The end of an item as far as the worker knows it. If its handler settled it in a transaction, that may be rolled back:
   * an open row does not replace the answer, if the transaction has committed.
   */
  #knownEnd(running: Running, outcome: Outcome): Outcome {
    if (running.settledIn === undefined) return outcome
    const known = this.settling.outcomeOf(running, outcome)
    return outcome.kind === 'succeeded' ? known : this.settling.outcomeOf(running, RETURNED)
  }

  #afterItem(running: Running, outcome: Outcome, step: NewStep, appended: FreshlyAppended): void {
    const { claimed, registered } = running
    if (!appended.held) {
      this.#parts.events.lost(claimed)
      this.#owner.left(claimed)
      return this.outbox.drop(claimed.fence)
    }
    if (!appended.isAnswered) return this.#put(claimed, outcome, registered, running)
    if (running.errorAfterSettling !== undefined)
      this.#parts.events.threwAfterwards(running, running.errorAfterSettling)
    const value = running.settledIn?.step?.value ?? step.value
    const next = nextItem(claimed, claimed.sequence as ClaimedSequence, { ...step, value }, appended)
    if (this.#mayGoOn(running, appended)) return this.#beginNext(next, running)
    this.#put(next, { kind: 'yielded' }, registered, running)
  }

  #mayGoOn(running: Running, appended: FreshlyAppended): boolean {
    const isAllowed = appended.requested === null && !appended.isQueuePaused && !appended.isLate
    return isAllowed && !this.#closed && !this.#yields(running)
  }

  /** Suspects wait for this process to be empty; or its second is over, and every slot that others could have is taken. */
  #yields({ claimed: { queue }, heldSince }: Running, free = 1): boolean {
    if (this.#owner.isDraining()) return true
    if (this.#parts.world.clock.monotonic() - heldSince < YIELD_AFTER_MS) return false
    const { concurrency, queues } = this.#owner.options()
    // The slot of a sequence is free between two items; a workflow keeps its own.
    const isFull = this.slots.running.size + free >= concurrency
    return isFull || this.slots.inQueue(queue) + free >= (queues.get(queue) ?? Infinity)
  }

  #beginNext(job: ClaimedJob, { registered, options, heldSince }: Running): void {
    const claimed = itemOf(job)
    if (claimed === undefined) return this.#put(job, outcomeWithoutItem(job, registered.codec), registered)
    const begunAt = this.#parts.world.clock.monotonic()
    this.#start(claimed, registered, options, { reported: true, begunAt, heldSince })
  }

  /** Puts an attempt's outcome into the outbox, once: a timeout and the handler's own end may both come here. */
  #settle(running: Running, outcome: Outcome, now = this.#parts.world.clock.monotonic()): void {
    if (running.settled) return
    running.settled = true
    const rest = this.settling.outcomeOf(running, outcome)
    // The handler's transaction has settled it, or its claim is lost and the present holder records its end.
    if (running.isCommitted || running.abortReason instanceof LeaseLostError) {
      void this.settling.reportGone(running.claimed, running)
      this.#owner.left(running.claimed)
      return this.outbox.drop(running.claimed.fence)
    }
    this.#put(running.claimed, rest, running.registered, running, now)
  }

  #put(job: ClaimedJob, outcome: Outcome, registered?: Registered, running?: Running, endedAt?: number): void {
    this.outbox.put(this.#settlement(job, outcome, registered, running, endedAt))
    this.#owner.wake()
  }

  #settlement(job: ClaimedJob, outcome: Outcome, registered?: Registered, running?: Running, at?: number): SettledRun {
    const now = this.#clock.at(at)
    const { crashBudget } = this.#owner.options()
    const { sequence } = job
    const isItemDone = sequence !== undefined && outcome.kind === 'succeeded'
    const settled = settleJob(
      running?.workflow?.hasProgressed === true ? { ...job, crashes: 0, streak: 0 } : job,
      outcome,
      // A job that is only released does not end, so no policy keeps it.
      { crashBudget, keepMs: registered?.keepMs ?? KEEP_ALL },
      {
        startedAt: running?.startedAt ?? now,
        endedAt: now,
        worker: this.#owner.workerId(),
        // The lines of an item that ended well are in its row.
        lines: isItemDone || outcome.kind === 'yielded' ? undefined : running?.lines,
        exit: running?.exit,
        isWorkflow: running?.workflow !== undefined,
        health: this.#healthOf(job, outcome),
        running,
      },
    )
    const written = running?.workflow?.ended?.written
    if (written !== undefined && running?.workflow?.ended?.outcome === outcome) return { ...settled, workflow: written }
    if (sequence === undefined || running === undefined) return settled
    return settleItem(settled, sequence, outcome, {
      codec: running.registered.codec,
      endedAt: now,
      lines: running.lines,
      endsStreak: hasCrashed(job),
    })
  }

  /** Successes are reported only in lanes that fail: elsewhere they say nothing, and a settlement costs nothing more. */
  #healthOf({ queue, name }: ClaimedJob, outcome: Outcome): AttemptHealth | undefined {
    const after = this.#owner.options().outageAfter
    if (outcome.kind === 'failed' && outcome.retryable && after !== Infinity) return { kind: 'failed', after }
    const isNoted = outcome.kind === 'succeeded' && this.#failing.has(laneKey(queue, name))
    return isNoted ? { kind: 'succeeded' } : undefined
  }

  #onWritten(settled: readonly SettledRun[], refused: ReadonlySet<number>): void {
    const { events } = this.#parts
    for (const job of settled) {
      const { running } = job
      this.#owner.left(job)
      if (refused.has(job.ref)) void this.settling.reportGone(job, running, job)
      else events.settled(job, running?.tookMs, running)
    }
    this.#owner.written()
  }

  /** The handler of a failed attempt has not returned within the grace, and probably never will. */
  #freeSlot(running: Running, now: number): void {
    running.alarmAt = Infinity
    this.slots.end(running, now)
    this.#beginHeld()
    this.#owner.wake()
  }

  #overdue(running: Running, now: number): void {
    if (running.slowAt <= now) {
      this.#parts.events.slow(running, now - running.begunAt)
      running.slowAt = now + (running.registered.slowAfterMs ?? this.#owner.options().slowAfterMs)
    }
    if (running.alarmAt > now) return
    if (running.isFailedOutside) return this.#freeSlot(running, now)
    const outcome = overdue(running, now, this.#parts)
    if (outcome === undefined) return
    running.tookMs = now - running.begunAt
    this.#parts.executor.end?.(running)
    this.#settle(running, outcome)
  }
}

/** Names have no control characters. */
function laneKey(queue: string, name: string): string {
  return `${queue}\n${name}`
}

/** Of a handler that settled its item: what it returned is in that settlement. */
const RETURNED: Outcome = { kind: 'succeeded', result: null }
