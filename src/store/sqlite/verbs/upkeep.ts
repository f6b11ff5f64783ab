import type { Probe } from '../../../job/limits/outage.js'
import type { Promoted } from '../../store.js'
import { isAnyTodo, workOffLinks } from './links.js'
import { completeGroups, countMoves, isAnyComplete, isAnyGroup, promoteMembers } from './groups.js'
import { wakeDue } from './inbox.js'
import { JobSession } from './job-session.js'
import { holdAndProbe } from '../../verbs/outages.js'
import { runVerb } from '../../verbs/verb.js'
import { SessionAt } from '../connection/session.js'
import type { Session } from '../connection/session.js'

/**
 * Makes due jobs ready, enqueues the `whenDone` jobs of complete groups, and returns expired jobs; within the current
 * transaction, at most `limit` of each.
 */
export function promoteJobs(session: Session, limit: number, now: number, probe: Probe): Promoted {
  runVerb(holdAndProbe(new SessionAt(session, now), probe, limit))
  const links = isAnyTodo(session) ? workOffLinks(session, limit, now) : NO_LINKS
  const promoted = isAnyGroup(session)
    ? promoteMembers(session, limit, now)
    : Number(session.statement(session.queries.promoteJobs).run(now, limit).changes)
  const woken = wakeDue(session, limit, now)
  if (promoted > 0) session.note({ ready: true })
  countMoves(session)
  const { cancelled, followUps, failedGroups, isFull } = completeGroups(new JobSession(session, now), limit)
  const expired = session.statement(session.queries.expiredJobs).all(now, limit) as Promoted['expired'][number][]
  return {
    promoted: promoted + woken,
    followUps,
    cancelledByParents: [...links.cancelledByParents, ...cancelled],
    again: links.again || isFull,
    expired: expired.map((row) => ({ ...row })),
    failedGroups,
    nextInMs: nextInMs(session, now),
  }
}

const NO_LINKS = { cancelledByParents: [], again: false }

/** The result when nothing is due, by reading alone; undefined when something is. */
export function nothingToPromote(session: Session, now: number): Promoted | undefined {
  if (isAnyTodo(session)) return undefined
  const inMs = nextInMs(session, now)
  if (inMs === 0 || isAnyComplete(session)) return undefined
  return { promoted: 0, followUps: [], ...NO_LINKS, expired: [], failedGroups: [], nextInMs: inMs }
}

function nextInMs(session: Session, now: number): number | null {
  const next = [session.queries.nextDue, session.queries.nextExpiry, session.queries.nextWake].map((sql) =>
    nextTime(session, sql),
  )
  const times = next.filter((time) => time !== null)
  return times.length === 0 ? null : Math.max(0, Math.min(...times) - now)
}

function nextTime(session: Session, sql: string): number | null {
  return (session.statement(sql).get() as { due: number | null }).due
}
