import type { Promoted } from '../store.js'
import type { State } from '../../job/states.js'
import { keepDays } from './days.js'
import type { DaysWalk } from './days.js'
import { workOffLinks } from './link-todos.js'
import { sweepGroups } from './groups.js'
import type { Opened } from './open.js'
import type { Session } from './session.js'

/** Places looked at for each that may be forgotten: a table of places that all count is walked in peace. */
const LOOKS = 4
/** Entries of `expiring` that one statement looks at. */
const SWEEP_MAX = 5_000

export type Run = <T>(work: (s: Session) => Promise<T>) => Promise<T>

/** Promotes; and where ends left to-dos works them off, all or nothing, and promotes what that frees, which is mostly due. */
export async function promoteAll(
  limit: number,
  plain: Run,
  whole: Run,
): Promise<Promoted & { readonly moved: boolean }> {
  const { todo, ...first } = await plain((s) => promoteJobs(s, limit))
  if (!todo) return first
  const { calledOff, moved: isWorked, left } = await whole((s) => workOffLinks(s, limit))
  const { promoted, expired, nextInMs, moved } = await plain((s) => promoteJobs(s, limit - first.promoted))
  return {
    promoted: first.promoted + promoted,
    calledOff,
    again: isWorked && left,
    expired,
    troubled: [],
    // Somebody has what they are about: it is asked again soon.
    nextInMs: left ? 0 : nextInMs,
    moved,
  }
}

/** Makes due jobs ready and names the expired; says whether ends left to-dos, and whether members of groups have moved. */
async function promoteJobs(
  s: Session,
  limit: number,
): Promise<Promoted & { readonly todo: boolean; readonly moved: boolean }> {
  const [row] = await s.query<{ promoted: number; now: unknown }>(s.queries.promoteJobs, s.nowText, String(limit))
  const now = Number(row?.now)
  const promoted = row?.promoted ?? 0
  if (promoted > 0) s.note({ ready: true })
  const [next] = await s.query<NextTimes>(s.queries.nextTimes, String(now))
  const expired = next?.over === true ? await expiredJobs(s, limit, now) : []
  // The caller cancels the expired ones; others may be left.
  const times = [next?.due, next?.expiry, expired.length > 0 ? now : null].filter((time) => time != null).map(Number)
  const nextInMs = times.length === 0 ? null : Math.max(0, Math.min(...times) - now)
  const [todo, moved] = [next?.todo === true, next?.moved === true]
  return { promoted, calledOff: [], again: false, expired, troubled: [], nextInMs, todo, moved }
}

interface NextTimes {
  readonly due: unknown
  /** Whether the time of any entry has come. */
  readonly over: boolean
  readonly expiry: unknown
  readonly todo: boolean
  readonly moved: boolean
}

async function expiredJobs(s: Session, limit: number, now: number): Promise<Promoted['expired']> {
  return s.query<{ id: string; name: string; queue: string; state: State }>(
    s.queries.expiredJobs,
    String(now),
    String(limit),
  )
}

/** Days are looked after so often. */
const DAYS_EVERY_MS = 3_600_000

/** How far the walks through the places and the groups have come, and when days are to be looked after again. */
export interface Walk {
  sweptTo: readonly [name: string, key: string]
  groupsSweptTo: string
  daysAt: number
  readonly days: DaysWalk
}

/** Forgets old jobs and, a step at a time, places that no longer count and groups that have nobody left. */
export async function pruneJobs(s: Session, limit: number, walk: Walk): Promise<number> {
  const [row] = await s.query<{ pruned: number; told: number }>(s.queries.pruneJobs, s.nowText, String(limit))
  if (row !== undefined && row.told > 0) s.note({ dueInMs: 0 })
  await sweepExpiring(s, await s.now())
  return (row?.pruned ?? 0) + (await sweepPlaces(s, limit, walk)) + (await sweepGroups(s, limit, walk))
}

/** Drops the days that are over and makes those to come, now and then; gives how many jobs were forgotten. */
export async function pruneDays(opened: Pick<Opened, 'connection' | 'days'>, walk: Walk, now: number): Promise<number> {
  if (now < walk.daysAt) return 0
  // First: what fails now fails again, and is told often enough once an hour.
  walk.daysAt = now + DAYS_EVERY_MS
  const { forgotten, again } = await keepDays(opened.connection('work'), opened.days, now, walk.days)
  if (again) walk.daysAt = now
  return forgotten
}

/** In bounded statements, so that no backlog makes one of them long. */
async function sweepExpiring(s: Session, now: number): Promise<void> {
  let after: readonly number[] = [-1, -1]
  for (let looked = SWEEP_MAX; looked === SWEEP_MAX;) {
    const [row] = await s.query<{ looked: number; last: string | null }>(
      s.queries.sweepExpiring,
      String(now),
      ...after.map(String),
      String(SWEEP_MAX),
    )
    looked = row?.looked ?? 0
    after = JSON.parse(row?.last ?? '[]') as number[]
  }
}

async function sweepPlaces(s: Session, limit: number, walk: Walk): Promise<number> {
  const looks = limit * LOOKS
  const [row] = await s.query<SweepRow>(s.queries.sweepPlaces, s.nowText, ...walk.sweptTo, String(looks), String(limit))
  if (row === undefined) return 0
  walk.sweptTo = (row.swept === limit ? row.chosen : row.looked === looks ? row.last : null) ?? ['', '']
  return row.swept
}

interface SweepRow {
  readonly swept: number
  readonly looked: number
  readonly last: readonly [string, string] | null
  readonly chosen: readonly [string, string] | null
}
