import type { DueTicks } from '../job/rules/missed.js'
import type { ScheduleRow } from '../store/schedules.js'
import { digest } from '../world/digest.js'
import { nextTick, parseRule } from './calendar.js'
import type { Rule } from './calendar.js'
import type { ScheduleSpec } from './spec.js'

/** When a schedule fires: its rule, and the bounds of it. */
export interface Timing {
  readonly rule: Rule
  /** Where `every` counts from. */
  readonly anchorAt: number
  readonly fromAt: number | null
  readonly untilAt: number | null
}

/** So many ticks are walked through at a time; where there are more, the walk begins nearer to its end. */
const WALK_MAX = 5_000

/** Throws when the rule cannot be read here: its zone may be unknown to this machine. */
export function timingOf(spec: ScheduleSpec, createdAt: number): Timing {
  const { untilAt, anchorAt } = spec
  // One that counts again from now has begun already, so `from` no longer holds it back.
  const fromAt = anchorAt === undefined ? spec.fromAt : null
  const parsed = parseRule(spec.rule, spec.timezone)
  if (!parsed.ok) throw new Error(parsed.problems.map(({ path, message }) => `${path} ${message}`).join('; '))
  return { rule: parsed.rule, anchorAt: anchorAt ?? fromAt ?? createdAt, fromAt, untilAt }
}

/**
 * A schedule as it goes on after the clock was set back past its last tick, or past its beginning. `every` measures time that
 * passes, so it counts again from now: by the old count its next tick would be as far away as the clock went back, since the
 * ledger has all ticks up to there. The new ticks lie between the old ones, so that none is taken for one that has fired. A cron
 * names times of the calendar, each of which fires once: it stays as it is.
 */
export function continued(
  spec: ScheduleSpec,
  row: Pick<ScheduleRow, 'createdAt' | 'lastAt'>,
  now: number,
): ScheduleSpec {
  if (typeof spec.rule === 'string') return spec
  const anchorAt = spec.anchorAt ?? spec.fromAt ?? row.createdAt
  // One that had ticks and was then given a later `from` has not begun again.
  const hasNotBegun = spec.anchorAt === undefined && spec.fromAt !== null && (row.lastAt ?? -Infinity) < spec.fromAt
  if (hasNotBegun || Math.max(row.lastAt ?? -Infinity, anchorAt) <= now) return spec
  return { ...spec, anchorAt: (now - anchorAt) % spec.rule.every === 0 ? now - 1 : now }
}

/** The first tick strictly after an instant; null when there is none any more. */
export function nextAfter({ rule, anchorAt, fromAt, untilAt }: Timing, afterMs: number): number | null {
  const at = nextTick(rule, fromAt === null ? afterMs : Math.max(afterMs, fromAt - 1), anchorAt)
  return at === undefined || (untilAt !== null && at > untilAt) ? null : at
}

/** The ticks from `first`, which is one, up to now: the newest `wanted` of them, and a word about the rest. */
export function dueTicks(timing: Timing, first: number, now: number, wanted: number): DueTicks {
  const whole = walk(timing, first, now, wanted)
  return summary(first, whole.isWhole ? whole : newestOf(timing, first, now, wanted), !whole.isWhole)
}

/** Looks for where to begin so that there are more than are wanted and not too many to walk through. */
function newestOf(timing: Timing, first: number, now: number, wanted: number): Walked {
  let best: Walked = { newest: [], count: 0, olderLast: null, isWhole: true }
  let [tooMany, tooFew] = [first, now]
  while (tooFew - tooMany > 1) {
    const middle = Math.floor((tooMany + tooFew) / 2)
    const walked = walk(timing, nextAfter(timing, middle), now, wanted)
    if (!walked.isWhole) tooMany = middle
    else if (walked.count > wanted) return walked
    else [tooFew, best] = [middle, walked]
  }
  return best
}

interface Walked {
  readonly newest: readonly number[]
  readonly count: number
  /** The newest of those that are not among them. */
  readonly olderLast: number | null
  readonly isWhole: boolean
}

function walk(timing: Timing, first: number | null, now: number, wanted: number): Walked {
  const newest: number[] = []
  let olderLast: number | null = null
  let count = 0
  for (let at = first; at !== null && at <= now; at = nextAfter(timing, at)) {
    if (count === WALK_MAX) return { newest, count, olderLast, isWhole: false }
    newest.push(at)
    if (newest.length > wanted) olderLast = newest.shift() ?? null
    count += 1
  }
  return { newest, count, olderLast, isWhole: true }
}

function summary(first: number, { newest, count, olderLast }: Walked, isMore: boolean): DueTicks {
  if (olderLast === null && !isMore) return { newest, older: null }
  const older = Math.max(1, count - newest.length)
  return { newest, older: { count: isMore ? WALK_MAX : older, isMore, first, last: olderLast ?? first } }
}

/** How much later than its tick a job is due: drawn from both their names, so that a crash in between changes nothing. */
export function jitterOf(schedule: string, at: number, jitterMs: number): number {
  if (jitterMs === 0) return 0
  return Math.floor((Number.parseInt(digest(`${schedule}\n${at}`).slice(0, 12), 16) / 2 ** 48) * (jitterMs + 1))
}
