import type { ScheduleRow } from '../store/schedules.js'
import { readSpec, timesOf, writeSpec } from './spec.js'
import type { ScheduleSpec } from './spec.js'
import { continued, nextAfter, timingOf } from './ticks.js'

/**
 * Applies a new specification to a schedule. If its times are the same, the schedule continues; otherwise it starts again from
 * now. If the clock was set back before its last tick or its start, `every` counts from now in both cases.
 */
export function applySpec(
  old: ScheduleRow | undefined,
  spec: ScheduleSpec,
  now: number,
): Pick<ScheduleRow, 'spec' | 'createdAt' | 'pausedAt' | 'nextAt'> {
  if (old === undefined)
    return { spec: writeSpec(spec), createdAt: now, pausedAt: null, nextAt: nextAfter(timingOf(spec, now), now) }
  const { createdAt, pausedAt } = old
  const previous = readSpec(old.spec)
  const isSameTimes = timesOf(previous) === timesOf(spec)
  const requested = isSameTimes && previous.anchorAt !== undefined ? { ...spec, anchorAt: previous.anchorAt } : spec
  const counted = continued(requested, old, now)
  const next = (): number | null => (pausedAt === null ? nextAfter(timingOf(counted, createdAt), now) : null)
  return {
    spec: writeSpec(counted),
    createdAt,
    pausedAt,
    nextAt: isSameTimes && counted === requested ? old.nextAt : next(),
  }
}
