import type { Promoted } from '../../store.js'
import type { State } from '../../../job/rules/states.js'
import { wakeDue } from './inbox.js'
import type { Probe } from '../../../job/limits/outage.js'
import { holdAndProbe } from '../../verbs/outages.js'
import { awaitVerb } from '../../verbs/verb.js'
import { workOffLinks } from './links.js'
import type { JobSession } from './job-session.js'
import type { Session } from '../connection/session.js'

export type Run = <T>(work: (session: JobSession) => Promise<T>) => Promise<T>

/**
 * Promotes due jobs; works off the to-dos of ended parents, in one transaction; and promotes the children that this
 * frees, which are mostly due.
 */
export async function promoteAll(
  limit: number,
  probe: Probe,
  plain: Run,
  whole: Run,
): Promise<Promoted & { readonly moved: boolean }> {
  const before = await plain((session) => promoteJobs(session, limit))
  const {
    todo,
    wakes,
    now,
    closed: _closed,
    ...first
  } = before.closed ? await promoteProbes(before, limit, probe, plain, whole) : before
  const woken = wakes ? await whole((session) => wakeDue(session, now, limit)) : 0
  if (!todo) return woken === 0 ? first : { ...first, promoted: first.promoted + woken, again: true }
  const {
    cancelledByParents: cancelled,
    moved: isWorked,
    left,
  } = await whole((session) => workOffLinks(session, limit))
  const { promoted, expired, nextInMs, moved } = await plain((session) => promoteJobs(session, limit - first.promoted))
  return {
    promoted: first.promoted + woken + promoted,
    followUps: [],
    cancelledByParents: cancelled,
    again: isWorked && left,
    expired,
    failedGroups: [],
    // Another process has locked their rows: retry soon.
    nextInMs: left ? 0 : nextInMs,
    moved,
  }
}

/** An outage has closed a lane: its due retries are held, and those that are released are promoted. */
async function promoteProbes(
  before: PromotedPart,
  limit: number,
  probe: Probe,
  plain: Run,
  whole: Run,
): Promise<PromotedPart> {
  await whole((session) => awaitVerb(holdAndProbe(session, probe, limit)))
  const after = await plain((session) => promoteJobs(session, limit))
  return { ...after, promoted: before.promoted + after.promoted }
}

interface PromotedPart extends Promoted {
  readonly todo: boolean
  readonly wakes: boolean
  readonly now: number
  readonly moved: boolean
  /** An outage has closed a lane. */
  readonly closed: boolean
}

/**
 * Makes due jobs ready and lists the expired ones; also returns whether there are to-dos, and whether members of groups
 * have moved.
 */
async function promoteJobs(session: Session, limit: number): Promise<PromotedPart> {
  const row = await session.one<{ promoted: number; now: unknown }>(
    session.queries.promoteJobs,
    session.nowText,
    String(limit),
  )
  const now = Number(row.now)
  const { promoted } = row
  if (promoted > 0) session.note({ ready: true })
  const next = await session.one<NextTimes>(session.queries.nextTimes, String(now))
  const expired = next.over === true ? await expiredJobs(session, limit, now) : []
  // The caller cancels the expired ones; others may be left.
  const times = [next.due, next.wake, next.expiry, expired.length > 0 ? now : null]
    .filter((time) => time != null)
    .map(Number)
  const nextInMs = times.length === 0 ? null : Math.max(0, Math.min(...times) - now)
  const [todo, moved] = [next.todo === true, next.moved === true]
  const wakes = next.wake != null && Number(next.wake) <= now
  const left = { todo, wakes, now, moved, closed: next.closed === true }
  return { promoted, followUps: [], cancelledByParents: [], again: false, expired, failedGroups: [], nextInMs, ...left }
}

interface NextTimes {
  readonly due: unknown
  /** Whether the time of any entry has come. */
  readonly over: boolean
  readonly expiry: unknown
  /** When the next blocked workflow is to be woken. */
  readonly wake: unknown
  readonly todo: boolean
  readonly moved: boolean
  readonly closed: boolean
}

async function expiredJobs(session: Session, limit: number, now: number): Promise<Promoted['expired']> {
  return session.query<{ id: string; name: string; queue: string; state: State }>(
    session.queries.expiredJobs,
    String(now),
    String(limit),
  )
}
