import type { DueTicks } from '../job/rules/missed.js'
import type { ScheduleRow } from '../store/schedules.js'
import { digest } from '../world/digest.js'
import { nextTick, parseRule } from './calendar.js'
import type { Rule } from './calendar.js'
import type { ScheduleSpec } from './spec.js'

/** When a schedule fires: its rule and its bounds. */
export interface Timing {
  readonly rule: Rule
  /** The instant from which `every` counts. */
  readonly anchorAt: number
  readonly fromAt: number | null
  readonly untilAt: number | null
}

/** How many ticks one walk may visit; if there are more, the walk starts nearer to its end. */
const WALK_MAX = 5_000

/** Throws when the rule cannot be read here, for example because this machine does not know its zone. */
export function timingOf(spec: ScheduleSpec, createdAt: number): Timing {
  const { untilAt, anchorAt } = spec
  // A schedule that counts again from now has already started, so `from` does not delay it.
  const fromAt = anchorAt === undefined ? spec.fromAt : null
  const parsed = parseRule(spec.rule, spec.timezone)
  if (!parsed.ok) throw new Error(parsed.problems.map(({ path, message }) => `${path} ${message}`).join('; '))
  return { rule: parsed.rule, anchorAt: anchorAt ?? fromAt ?? createdAt, fromAt, untilAt }
}

/**
 * A schedule after the clock was set back before its last tick or its start. `every` counts again from now: by the old count its
 * next tick would be as far away as the clock was set back, since the ledger has all ticks up to there. The new ticks lie between
 * the old ones. A cron names times of the calendar, and each fires once, so it is unchanged.
 */
export function continued(
  spec: ScheduleSpec,
  row: Pick<ScheduleRow, 'createdAt' | 'lastAt'>,
  now: number,
): ScheduleSpec {
  if (typeof spec.rule === 'string') return spec
  const anchorAt = spec.anchorAt ?? spec.fromAt ?? row.createdAt
  // A schedule that had ticks and then got a later `from` has not started again.
  const hasNotBegun = spec.anchorAt === undefined && spec.fromAt !== null && (row.lastAt ?? -Infinity) < spec.fromAt
  if (hasNotBegun || Math.max(row.lastAt ?? -Infinity, anchorAt) <= now) return spec
  return { ...spec, anchorAt: (now - anchorAt) % spec.rule.every === 0 ? now - 1 : now }
}

/** The first tick strictly after an instant; null when there is none. */
export function nextAfter({ rule, anchorAt, fromAt, untilAt }: Timing, afterMs: number): number | null {
  const at = nextTick(rule, fromAt === null ? afterMs : Math.max(afterMs, fromAt - 1), anchorAt)
  return at === undefined || (untilAt !== null && at > untilAt) ? null : at
}

/** The ticks from `first`, which is a tick, up to now: the newest `wanted` of them, and a summary of the rest. */
export function dueTicks(timing: Timing, first: number, now: number, wanted: number): DueTicks {
  const whole = walk(timing, first, now, wanted)
  return summary(first, whole.isWhole ? whole : newestOf(timing, first, now, wanted), !whole.isWhole)
}

/** Finds a start from which there are more ticks than wanted, and few enough to walk through. */
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
  /** The newest tick that is not among them. */
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

/** Hexadecimal digits of a digest, of four bits each: a number that fits into a double. */
const JITTER_DIGITS = 12

/** The delay of a job after its tick: derived from the schedule and the tick, so that it is the same after a crash. */
export function jitterOf(schedule: string, at: number, jitterMs: number): number {
  if (jitterMs === 0) return 0
  return Math.floor(
    (Number.parseInt(digest(`${schedule}\n${at}`).slice(0, JITTER_DIGITS), 16) / 16 ** JITTER_DIGITS) * (jitterMs + 1),
  )
}
