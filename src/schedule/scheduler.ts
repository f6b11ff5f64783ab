import type { ScheduleRow } from '../store/schedules.js'
import { ClockWatch } from '../world/clock-step.js'
import type { ClockStep } from '../world/clock-step.js'
import { Poller } from '../world/poller.js'
import type { Cancel } from '../world/timers.js'
import { fireDue } from './fire.js'
import type { FireParts, FireResult } from './fire.js'
import { readSpec, writeSpec } from './spec.js'
import { StalledSchedules } from './stalled-schedules.js'
import { continued, nextAfter, timingOf } from './ticks.js'

/** The wait when due schedules were not fired: another process is firing them, or they cannot be fired now. */
const NOT_FIRED_MS = 20
const STUCK_MS = 1_000
/** The wait after a failure of the store. */
const STORE_RETRY_MS = 500
/** Most hints are about jobs: after a poll, hints alone trigger no other poll for this long. */
const HINT_MS = 1_000
/** A clock that moves back by more than this was set. A smaller correction is covered by the ledger. */
const BACK_MS = 1_000
/** How many schedules are read at a time. */
const PAGE = 200
/** The pause between two searches for stalled schedules: this many times the duration of a search, within these bounds. */
const STALLED_SHARE = 100
const STALLED_MIN_MS = 1_000
const STALLED_MAX_MS = 5_000
/** How often a review reads a schedule again when other processes keep writing it. */
const REVIEW_TRIES = 10

export interface SchedulerParts extends FireParts {
  readonly pollMs: () => number
  /** Called when the clock of the database or of this machine was set. */
  readonly stepped: (step: ClockStep) => void
  /** Called when a schedule was recovered that a process, whose clock was ahead by `aheadMs`, had moved into the future. */
  readonly scheduleRecovered: (schedule: string, aheadMs: number) => void
}

/**
 * Fires recurring jobs. Every process has one, and there is no leader: each tick is a row that only one process can write (see
 * `store/schedules.ts`), so a second process finds it written. It sleeps until the next tick, or for one poll interval.
 *
 * The next tick was computed when the last one was fired. It becomes wrong when the clock is set back, and when an update of the
 * machine changes the rules of a time zone. Therefore it is computed again at the start, and when time moves back. It is also
 * wrong after a process whose clock was ahead: see `stalled-schedules.ts`.
 */
export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #poller: Poller
  #unhint: Cancel | undefined
  #polledAt = -Infinity
  #lastNow = Infinity
  readonly #clocks: ClockWatch
  readonly #stalled = new StalledSchedules()
  #nextStalledAt = -Infinity

  constructor(parts: SchedulerParts) {
    this.#parts = parts
    this.#clocks = new ClockWatch(parts.world.clock)
    this.#poller = new Poller(parts.world, () => this.#poll())
  }

  start(): void {
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.dueInMs === null) return
      const sinceMs = this.#parts.world.clock.monotonic() - this.#polledAt
      this.#poller.pollIn(Math.max(hint.dueInMs, HINT_MS - sinceMs))
    })
    this.#poller.start()
  }

  /** The poll interval was changed: a shorter one must not wait for the end of a longer one. */
  configured(): void {
    this.#poller.pollIn(this.#parts.pollMs())
  }

  async stop(): Promise<void> {
    this.#unhint?.()
    await this.#poller.stop()
  }

  /** Returns the wait until the next poll. */
  async #poll(): Promise<number> {
    try {
      this.#polledAt = this.#parts.world.clock.monotonic()
      const result = await fireDue(this.#parts)
      const step = this.#clocks.read(result.now, this.#polledAt)
      if (step !== undefined) this.#parts.stepped(step)
      const wentBack = result.now < this.#lastNow - BACK_MS
      if (wentBack) await review(this.#parts)
      this.#lastNow = result.now
      const isMoved = wentBack || (result.nextInMs !== null && (await this.#recoverStalled()))
      return isMoved ? 0 : Math.min(this.#parts.pollMs(), waitAfter(result))
    } catch (error) {
      this.#parts.storeFailed('fire recurring jobs', error)
      return STORE_RETRY_MS
    }
  }

  /** Recovers stalled schedules; returns false when there is none, or when it is too early for another search. */
  async #recoverStalled(): Promise<boolean> {
    const { clock } = this.#parts.world
    const beganAt = clock.monotonic()
    if (beganAt < this.#nextStalledAt) return false
    const { now, rows } = await readAll(this.#parts)
    const stalled = this.#stalled.find(rows, now, beganAt)
    const endedAt = clock.monotonic()
    const pauseMs = Math.max(STALLED_MIN_MS, (endedAt - beganAt) * STALLED_SHARE)
    this.#nextStalledAt = endedAt + Math.min(STALLED_MAX_MS, pauseMs)
    let isMoved = false
    for (const row of stalled) {
      if (!(await reviewOne(this.#parts, row, now))) continue
      isMoved = true
      this.#parts.scheduleRecovered(row.id, Math.max(row.lastAt ?? row.createdAt, row.createdAt) - now)
    }
    return isMoved
  }
}

/** Reads every schedule, page by page, with the store's time of the last page. */
async function readAll(
  parts: SchedulerParts,
): Promise<{ readonly now: number; readonly rows: readonly ScheduleRow[] }> {
  const rows: ScheduleRow[] = []
  for (;;) {
    const { now, schedules } = await parts.store.schedules.listSchedules(rows.at(-1)?.id ?? '', PAGE)
    rows.push(...schedules)
    if (schedules.length < PAGE) return { now, rows }
  }
}

function waitAfter({ due, fired, nextInMs }: FireResult): number {
  if (due === 0) return nextInMs ?? Infinity
  if (fired === due) return 0
  return fired > 0 ? NOT_FIRED_MS : Math.min(STUCK_MS, nextInMs ?? Infinity)
}

/** Computes the next tick of each schedule again. Schedules that are already due are left to `fireDue`. */
async function review(parts: SchedulerParts): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const { now, schedules } = await parts.store.schedules.listSchedules(after, PAGE)
    for (const row of schedules) await reviewOne(parts, row, now)
    after = schedules.length < PAGE ? undefined : schedules.at(-1)?.id
  }
}

/**
 * Another process may win the write with a next tick that it computed from the time before the step, so the row is read again.
 * An error of the store is not caught here, because the review must be repeated. Returns true when the next tick was moved.
 */
async function reviewOne(parts: SchedulerParts, row: ScheduleRow, now: number): Promise<boolean> {
  const { schedules } = parts.store
  let [at, seen]: [number, ScheduleRow | undefined] = [now, row]
  for (let tries = 0; seen !== undefined && tries < REVIEW_TRIES; tries += 1) {
    const reviewed = reviewedRow(parts, seen, at)
    if (reviewed === undefined) return false
    if (await schedules.putSchedule(reviewed, seen.revision)) return true
    const again = await schedules.readSchedule(row.id)
    ;[at, seen] = [again.now, again.schedule]
  }
  return false
}

/** The corrected row; undefined when the row is right, or cannot be read here. */
function reviewedRow(parts: SchedulerParts, row: ScheduleRow, now: number): ScheduleRow | undefined {
  if (row.pausedAt !== null || (row.nextAt !== null && row.nextAt <= now)) return undefined
  try {
    const spec = continued(readSpec(row.spec), row, now)
    const nextAt = nextAfter(timingOf(spec, row.createdAt), now)
    return nextAt === row.nextAt ? undefined : { ...row, spec: writeSpec(spec), nextAt }
  } catch (error) {
    parts.storeFailed(`read schedule ${JSON.stringify(row.id)}`, error)
    return undefined
  }
}
