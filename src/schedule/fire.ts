import { decideMissed, ticksWanted } from '../job/rules/missed.js'
import type { DecidedTick } from '../job/rules/missed.js'
import type { Firing, PlannedTick, ScheduleRow, TickRow } from '../store/schedules.js'
import type { NewJob, Store } from '../store/store.js'
import type { World } from '../world/world.js'
import { jobOf, readSpec } from './spec.js'
import type { ScheduleSpec } from './spec.js'
import { dueTicks, jitterOf, nextAfter, timingOf } from './ticks.js'

/** Schedules that are fired in one go. */
const BATCH = 100

export interface FireParts {
  readonly world: World
  readonly store: Store
  /** How long cancelled jobs of this name are kept. */
  readonly keepCancelledMs: (name: string) => number
  /** Ticks were written, with these jobs. */
  readonly fired: (schedule: string, ticks: readonly TickRow[], jobs: readonly NewJob[]) => void
  readonly troubled: (what: string, error: unknown) => void
}

export interface Looked {
  readonly now: number
  /** Schedules that were moved on here; somebody else was faster with the rest, or they cannot be fired for now. */
  readonly fired: number
  readonly due: number
  readonly nextInMs: number | null
}

/** Fires what has come due. One schedule that cannot be fired, whatever is wrong with it, keeps no other from it. */
export async function fireDue(parts: FireParts): Promise<Looked> {
  const { now, due, nextInMs } = await parts.store.schedules.dueSchedules(BATCH)
  const fired = await Promise.all(due.map((row) => fireOne(parts, row, now)))
  return { now, due: due.length, fired: fired.filter(Boolean).length, nextInMs }
}

async function fireOne(parts: FireParts, row: ScheduleRow, now: number): Promise<boolean> {
  try {
    const firing = planFiring(parts, row, now)
    const ticks = await parts.store.schedules.fireTicks(firing)
    if (ticks !== 'stale') tellFired(parts, firing, ticks)
    return ticks !== 'stale'
  } catch (error) {
    parts.troubled(`fire schedule ${JSON.stringify(row.id)}`, error)
    return false
  }
}

export function tellFired(parts: Pick<FireParts, 'fired'>, firing: Firing, ticks: readonly TickRow[]): void {
  const written = new Set(ticks.map((tick) => tick.job))
  parts.fired(
    firing.id,
    ticks,
    firing.ticks.flatMap(({ job }) => (job !== null && written.has(job.id) ? [job] : [])),
  )
}

/** What is to be written now that the next tick has come. */
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
  // What is caught up with is due now: by its own time it would stand before all who wait.
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
  return { id, revision, overlap: spec.overlap, onDuplicate, keepCancelledMs: keepCancelledMs(name), ...change }
}
