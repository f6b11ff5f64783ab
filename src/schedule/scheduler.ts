import type { ScheduleRow } from '../store/schedules.js'
import { ClockWatch } from '../world/clock-step.js'
import type { ClockStep } from '../world/clock-step.js'
import { Poller } from '../world/poller.js'
import type { Cancel } from '../world/timers.js'
import { fireDue } from './fire.js'
import type { FireParts, Looked } from './fire.js'
import { readSpec, writeSpec } from './spec.js'
import { Stalled } from './stalled.js'
import { continued, nextAfter, timingOf } from './ticks.js'

/** The wait when what is due could not be fired: another process is at it, or it cannot be fired for now. */
const BESIDE_MS = 20
const STUCK_MS = 1_000
/** The wait after a failure of the store. */
const TROUBLE_MS = 500
/** Hints are mostly about jobs: so long after a look no other is taken for a hint alone. */
const HINT_MS = 1_000
/** A clock that goes back by more than this was set; by less, it was only corrected, and the ledger sees to that. */
const BACK_MS = 1_000
/** Schedules that a review reads at a time. */
const PAGE = 200
/** The pause between two looks for schedules that stand still: so many times as long as a look takes, within these bounds. */
const STALLED_SHARE = 100
const STALLED_MIN_MS = 1_000
const STALLED_MAX_MS = 5_000
/** How often a schedule is read again in a review when others keep writing it. */
const REVIEW_TRIES = 10

export interface SchedulerParts extends FireParts {
  readonly pollMs: () => number
  /** The clock of the database or of this machine was set. */
  readonly stepped: (step: ClockStep) => void
  /** A process whose clock was ahead by so much had moved this schedule away; it goes on. */
  readonly broughtBack: (schedule: string, aheadMs: number) => void
}

/**
 * Fires what recurs. There is one in every process and no leader among them: each tick is a row that only one of them can
 * write (see `store/schedules.ts`), so who comes second finds it written. It sleeps until the next tick, or for one poll.
 *
 * Which tick is next was worked out when the last one was fired. Two things can make that wrong, a clock that was set back and
 * rules of a zone that changed with an update of the machine; so it is worked out anew at the start, and when time goes back.
 * A third is a clock of another process that was ahead: see `stalled.ts`.
 */
export class Scheduler {
  readonly #parts: SchedulerParts
  readonly #looks: Poller
  #unhint: Cancel | undefined
  #lookedAt = -Infinity
  #lastNow = Infinity
  readonly #clocks: ClockWatch
  readonly #stalled = new Stalled()
  #nextStalledAt = -Infinity

  constructor(parts: SchedulerParts) {
    this.#parts = parts
    this.#clocks = new ClockWatch(parts.world.clock)
    this.#looks = new Poller(parts.world, () => this.#look())
  }

  start(): void {
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.dueInMs === null) return
      const sinceMs = this.#parts.world.clock.monotonic() - this.#lookedAt
      this.#looks.pollIn(Math.max(hint.dueInMs, HINT_MS - sinceMs))
    })
    this.#looks.start()
  }

  async stop(): Promise<void> {
    this.#unhint?.()
    await this.#looks.stop()
  }

  /** Gives how long it may be until the next one. */
  async #look(): Promise<number> {
    try {
      this.#lookedAt = this.#parts.world.clock.monotonic()
      const looked = await fireDue(this.#parts)
      const step = this.#clocks.read(looked.now, this.#lookedAt)
      if (step !== undefined) this.#parts.stepped(step)
      const wentBack = looked.now < this.#lastNow - BACK_MS
      if (wentBack) await review(this.#parts)
      this.#lastNow = looked.now
      const isMoved = wentBack || (looked.nextInMs !== null && (await this.#bringBack()))
      return isMoved ? 0 : Math.min(this.#parts.pollMs(), waitAfter(looked))
    } catch (error) {
      this.#parts.troubled('fire what recurs', error)
      return TROUBLE_MS
    }
  }

  /** Moves schedules that stand still; false when there is none, or when it is not yet time to look for them again. */
  async #bringBack(): Promise<boolean> {
    const { clock } = this.#parts.world
    const beganAt = clock.monotonic()
    if (beganAt < this.#nextStalledAt) return false
    const { now, rows } = await readAll(this.#parts)
    const stalled = this.#stalled.of(rows, now, beganAt)
    const endedAt = clock.monotonic()
    const pauseMs = Math.max(STALLED_MIN_MS, (endedAt - beganAt) * STALLED_SHARE)
    this.#nextStalledAt = endedAt + Math.min(STALLED_MAX_MS, pauseMs)
    let isMoved = false
    for (const row of stalled) {
      if (!(await reviewOne(this.#parts, row, now))) continue
      isMoved = true
      this.#parts.broughtBack(row.id, Math.max(row.lastAt ?? row.createdAt, row.createdAt) - now)
    }
    return isMoved
  }
}

/** Every schedule, a page at a time, with the store's time of the last page. */
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

function waitAfter({ due, fired, nextInMs }: Looked): number {
  if (due === 0) return nextInMs ?? Infinity
  if (fired === due) return 0
  return fired > 0 ? BESIDE_MS : Math.min(STUCK_MS, nextInMs ?? Infinity)
}

/** Works out anew when each schedule is next. What is due already is left to be fired. */
async function review(parts: SchedulerParts): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const { now, schedules } = await parts.store.schedules.listSchedules(after, PAGE)
    for (const row of schedules) await reviewOne(parts, row, now)
    after = schedules.length < PAGE ? undefined : schedules.at(-1)?.id
  }
}

/**
 * Who overtakes the write may have worked out the next tick by the time before the step, so the row is read again. An error of
 * the store is not caught here: the review must be repeated. True when the next tick was moved.
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

/** The row as it must be; undefined when it is right, or cannot be read here. */
function reviewedRow(parts: SchedulerParts, row: ScheduleRow, now: number): ScheduleRow | undefined {
  if (row.pausedAt !== null || (row.nextAt !== null && row.nextAt <= now)) return undefined
  try {
    const spec = continued(readSpec(row.spec), row, now)
    const nextAt = nextAfter(timingOf(spec, row.createdAt), now)
    return nextAt === row.nextAt ? undefined : { ...row, spec: writeSpec(spec), nextAt }
  } catch (error) {
    parts.troubled(`read schedule ${JSON.stringify(row.id)}`, error)
    return undefined
  }
}
