import type { ScheduleRow } from '../store/schedules.js'
import { readSpec, timesOf, writeSpec } from './spec.js'
import type { ScheduleSpec } from './spec.js'
import { continued, nextAfter, timingOf } from './ticks.js'

/**
 * The schedule with what is now asked of it. With the same times it goes on as it was; with others it begins again from now. If
 * the clock was set back past its last tick or its beginning, `every` counts from now in both cases.
 */
export function laidOver(
  old: ScheduleRow | undefined,
  spec: ScheduleSpec,
  now: number,
): Pick<ScheduleRow, 'spec' | 'createdAt' | 'pausedAt' | 'nextAt'> {
  if (old === undefined)
    return { spec: writeSpec(spec), createdAt: now, pausedAt: null, nextAt: nextAfter(timingOf(spec, now), now) }
  const { createdAt, pausedAt } = old
  const was = readSpec(old.spec)
  const keeps = timesOf(was) === timesOf(spec)
  const asked = keeps && was.anchorAt !== undefined ? { ...spec, anchorAt: was.anchorAt } : spec
  const counted = continued(asked, old, now)
  const next = (): number | null => (pausedAt === null ? nextAfter(timingOf(counted, createdAt), now) : null)
  return { spec: writeSpec(counted), createdAt, pausedAt, nextAt: keeps && counted === asked ? old.nextAt : next() }
}
