import { decideMissed, ticksWanted } from '../job/rules/missed.js'
import type { DecidedTick } from '../job/rules/missed.js'
import type { Firing, PlannedTick, ScheduleRow, TickRow } from '../store/schedules.js'
import type { NewJob, Store } from '../store/store.js'
import type { World } from '../world/world.js'
import { jobOf, readSpec } from './spec.js'
import type { ScheduleSpec } from './spec.js'
import { dueTicks, jitterOf, nextAfter, timingOf } from './ticks.js'

/** How many schedules are fired in one batch. */
const BATCH = 100

export interface FireParts {
  readonly world: World
  readonly store: Store
  /** How long cancelled jobs of this name are kept. */
  readonly keepCancelledMs: (name: string) => number
  /** Called after ticks were written, with their jobs. */
  readonly fired: (schedule: string, ticks: readonly TickRow[], jobs: readonly NewJob[]) => void
  readonly storeFailed: (what: string, error: unknown) => void
}

export interface FireResult {
  readonly now: number
  /** Schedules that this process fired. Another process fired the others, or they cannot be fired now. */
  readonly fired: number
  readonly due: number
  readonly nextInMs: number | null
}

/** Fires all due schedules. An error of one schedule does not affect the others. */
export async function fireDue(parts: FireParts): Promise<FireResult> {
  const { now, due, nextInMs } = await parts.store.schedules.dueSchedules(BATCH)
  const fired = await Promise.all(due.map((row) => fireOne(parts, row, now)))
  return { now, due: due.length, fired: fired.filter(Boolean).length, nextInMs }
}

async function fireOne(parts: FireParts, row: ScheduleRow, now: number): Promise<boolean> {
  try {
    const firing = planFiring(parts, row, now)
    const ticks = await parts.store.schedules.fireTicks(firing)
    if (ticks !== 'stale') reportFired(parts, firing, ticks)
    return ticks !== 'stale'
  } catch (error) {
    parts.storeFailed(`fire schedule ${JSON.stringify(row.id)}`, error)
    return false
  }
}

export function reportFired(parts: Pick<FireParts, 'fired'>, firing: Firing, ticks: readonly TickRow[]): void {
  const written = new Set(ticks.map((tick) => tick.job))
  parts.fired(
    firing.id,
    ticks,
    firing.ticks.flatMap(({ job }) => (job !== null && written.has(job.id) ? [job] : [])),
  )
}

/** What to write for a schedule whose next tick is due. */
function planFiring(parts: FireParts, row: ScheduleRow, now: number): Firing {
  const spec = readSpec(row.spec)
  const timing = timingOf(spec, row.createdAt)
  const due = dueTicks(timing, row.nextAt ?? now, now, ticksWanted(spec.missed))
  const ticks = decideMissed(spec.missed, due, now).map((tick) => plannedTick(parts, row.id, spec, tick))
  return firingOf(parts, row, spec, { ticks, nextAt: nextAfter(timing, now), pausedAt: null })
}

function plannedTick({ world }: FireParts, schedule: string, spec: ScheduleSpec, decided: DecidedTick): PlannedTick {
  if (decided.outcome === 'skipped') return { ...decided, byHand: false, job: null }
  const { at } = decided
  const id = world.ids.jobId(world.clock.now())
  // A caught-up job is due now: by the time of its tick it would be ahead of all waiting jobs.
  const due =
    decided.outcome === 'ran'
      ? { at: at + jitterOf(schedule, at, spec.jitterMs) }
      : { inMs: jitterOf(schedule, at, spec.jitterMs) }
  return { ...decided, byHand: false, job: jobOf(spec.job, id, { schedule, at }, due) }
}

export function firingOf(
  { keepCancelledMs }: Pick<FireParts, 'keepCancelledMs'>,
  { id, revision }: ScheduleRow,
  spec: ScheduleSpec,
  change: Pick<Firing, 'ticks' | 'nextAt' | 'pausedAt'> & Partial<Pick<Firing, 'overlap'>>,
): Firing {
  const { name, onDuplicate } = spec.job
  const keepMs = keepCancelledMs(name)
  // A parent may cancel the job of a tick long after it was written.
  const ticks = change.ticks.map(({ job, ...tick }) => ({
    ...tick,
    job: job === null ? null : { ...job, keepCancelledMs: keepMs },
  }))
  const keep = { keepCancelledMs: keepMs, keepCancelledMsOf: keepCancelledMs }
  return { id, revision, overlap: spec.overlap, onDuplicate, ...keep, ...change, ticks }
}
