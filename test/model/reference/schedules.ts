import { cancel } from './ends.js'
import { insert } from './enqueue.js'
import type { Item } from './enqueue.js'
import { isUnfinished, jobOf, Refused } from './state.js'
import type { Model, Recurring, Schedule, Tick } from './state.js'

/** A tick that is fired within a minute of its time is on time. */
const ON_TIME_MS = 60_000

const sameTimes = (one: Recurring, other: Recurring): boolean =>
  one.everyMs === other.everyMs &&
  one.isCron === other.isCron &&
  one.fromAt === other.fromAt &&
  one.untilAt === other.untilAt

/** The first tick after an instant. */
function nextAfter({ spec, createdAt }: Schedule, after: number): number | null {
  const { everyMs, isCron, fromAt, untilAt } = spec
  const anchor = isCron ? 0 : (fromAt ?? createdAt)
  const from = fromAt === null ? after : Math.max(after, fromAt - 1)
  const at = anchor + Math.max(0, Math.floor((from - anchor) / everyMs) + 1) * everyMs
  return untilAt !== null && at > untilAt ? null : at
}

/** The same id updates in place; the next tick is computed again only when the times change. */
export function putSchedule(model: Model, id: string, spec: Recurring): void {
  const old = model.schedules.get(id)
  const schedule: Schedule = old ?? {
    spec,
    createdAt: model.now,
    pausedAt: null,
    nextAt: null,
    open: [],
    ledger: [],
  }
  const isSame = old !== undefined && sameTimes(old.spec, spec)
  schedule.spec = spec
  if (!isSame) schedule.nextAt = schedule.pausedAt === null ? nextAfter(schedule, model.now) : null
  model.schedules.set(id, schedule)
}

export function deleteSchedule(model: Model, id: string): boolean {
  return model.schedules.delete(id)
}

export function pauseSchedule(model: Model, id: string): boolean {
  const schedule = model.schedules.get(id)
  if (schedule === undefined) return false
  if (schedule.pausedAt === null) Object.assign(schedule, { pausedAt: model.now, nextAt: null })
  return true
}

/** It goes on with the next tick; those that came meanwhile are one line of the ledger. */
export function resumeSchedule(model: Model, id: string): boolean {
  const schedule = model.schedules.get(id)
  if (schedule === undefined) return false
  if (schedule.pausedAt === null) return true
  const last = ticksBetween(schedule, schedule.pausedAt + 1, model.now + 1).at(-1)
  const isNew = last !== undefined && !hasJob(schedule, last, false)
  if (isNew) note(schedule, { at: last, byHand: false, outcome: 'skipped', job: null })
  Object.assign(schedule, { pausedAt: null, nextAt: nextAfter(schedule, model.now) })
  return true
}

/** Ticks from an instant up to, and not including, another. */
function ticksBetween(schedule: Schedule, from: number, to: number): number[] {
  const ticks: number[] = []
  for (let at = nextAfter(schedule, from - 1); at !== null && at < to; at = nextAfter(schedule, at)) ticks.push(at)
  return ticks
}

/** Undefined when the job was refused. */
export function runNow(model: Model, id: string): number | undefined {
  const schedule = known(model, id)
  const [tick] = fireTicks(
    model,
    id,
    schedule,
    [{ at: model.now, byHand: true, outcome: 'run now', job: null }],
    'allow',
  )
  return tick?.job ?? undefined
}

/** How many past ticks got a job. */
export function backfill(model: Model, id: string, from: number, to: number): number {
  const schedule = known(model, id)
  const ticks = ticksBetween(schedule, from, to).map((at): Tick => ({
    at,
    byHand: false,
    outcome: 'backfilled',
    job: null,
  }))
  const overlap = schedule.spec.overlap === 'wait' ? 'wait' : 'allow'
  return fireTicks(model, id, schedule, ticks, overlap).filter(({ job }) => job !== null).length
}

function known(model: Model, id: string): Schedule {
  const schedule = model.schedules.get(id)
  if (schedule === undefined) throw new Refused('E_UNKNOWN_SCHEDULE')
  return schedule
}

/** Fires what is due, the longest overdue first: a tick that a later one follows, or that is late, is missed. */
export function fireDue(model: Model): boolean {
  const isDue = ({ nextAt }: Schedule): boolean => nextAt !== null && nextAt <= model.now
  const all = [...model.schedules].filter(([, schedule]) => isDue(schedule))
  const order = all.toSorted(
    ([id, { nextAt: at }], [otherId, { nextAt: otherAt }]) =>
      (at as number) - (otherAt as number) || (id < otherId ? -1 : 1),
  )
  for (const [id, schedule] of order) {
    if (schedule.nextAt === null) continue
    const due = ticksBetween(schedule, schedule.nextAt, model.now + 1)
    fireTicks(model, id, schedule, missed(model, schedule.spec, due), schedule.spec.overlap)
    schedule.nextAt = nextAfter(schedule, model.now)
  }
  return all.length > 0
}

/** The ticks to write: all skipped ones share one line. */
function missed(model: Model, spec: Recurring, due: readonly number[]): Tick[] {
  const wanted = spec.missed === 'all' ? due : due.slice(-1)
  const older = due[due.length - wanted.length - 1]
  const skipped: Tick[] = older === undefined ? [] : [{ at: older, byHand: false, outcome: 'skipped', job: null }]
  const ticks = wanted.map((at): Tick => {
    const isLate = model.now - at > ON_TIME_MS
    const outcome = !isLate ? 'ran' : spec.missed === 'skip' ? 'skipped' : 'caught up'
    return { at, byHand: false, outcome, job: null }
  })
  return [...skipped, ...ticks]
}

/** Writes ticks with their jobs. A tick that has its job never gets another. */
function fireTicks(
  model: Model,
  id: string,
  schedule: Schedule,
  planned: readonly Tick[],
  overlap: Recurring['overlap'],
): Tick[] {
  const ticks = planned.filter(({ at, byHand }) => !hasJob(schedule, at, byHand))
  // Also when every tick is skipped: a job that is retried after its end does not count as one of an earlier tick again.
  if (overlap !== 'allow') schedule.open = unfinishedOf(model, schedule)
  const last = ticks.findLast(({ outcome }) => outcome !== 'skipped')
  const fired = ticks.map((tick): Tick => {
    if (tick.outcome === 'skipped') return tick
    // Of several ticks of which each would cancel the one before, the last alone runs.
    if (overlap === 'cancel' && tick !== last) return { ...tick, outcome: 'skipped' }
    const job = fireTick(model, id, schedule, tick, overlap)
    return job === null ? { ...tick, outcome: 'skipped' } : { ...tick, job }
  })
  for (const tick of fired) note(schedule, tick)
  return fired
}

function unfinishedOf(model: Model, { open }: Schedule): number[] {
  return open.filter((number) => {
    const job = jobOf(model, number)
    return isUnfinished(job) && job.state !== 'parked'
  })
}

/** The number of its job; null when it gets none. */
function fireTick(
  model: Model,
  id: string,
  schedule: Schedule,
  { at, outcome }: Tick,
  overlap: Recurring['overlap'],
): number | null {
  const { name, given } = schedule.spec
  const unfinished = unfinishedOf(model, schedule)
  const meets = overlap === 'allow' || unfinished.length === 0 ? 'none' : overlap
  if (overlap !== 'allow') schedule.open = unfinished
  if (meets === 'skip') return null
  if (meets === 'cancel') for (const number of unfinished) cancel(model, jobOf(model, number))
  // A job that is late, or asked for by hand, is due now: by its tick it would be ahead of all that wait.
  const item: Item = { name, given, tick: { schedule: id, at }, dueAt: outcome === 'ran' ? at : model.now }
  const waiting = { ...item, given: { ...given, after: unfinished }, policy: 'run-if-parked' as const }
  const job = written(model, meets === 'wait' ? waiting : item)
  if (job !== null) schedule.open = meets === 'none' ? [...schedule.open, job] : [job]
  return job
}

/** A tick whose job is refused, or is there already, is skipped. */
function written(model: Model, item: Item): number | null {
  try {
    const [one] = insert(model, [item], item.given.onDuplicate ?? 'return')
    return one?.isNew === true ? one.number : null
  } catch (error) {
    if (error instanceof Refused) return null
    throw error
  }
}

function hasJob({ ledger }: Schedule, at: number, byHand: boolean): boolean {
  return ledger.some((tick) => tick.at === at && tick.byHand === byHand && tick.job !== null)
}

/** One line a tick. */
function note(schedule: Schedule, tick: Tick): void {
  const others = schedule.ledger.filter(({ at, byHand }) => at !== tick.at || byHand !== tick.byHand)
  schedule.ledger = [...others, tick]
}
