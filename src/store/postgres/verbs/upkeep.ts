import type { Promoted } from '../../store.js'
import type { State } from '../../../job/rules/states.js'
import { workOffLinks } from './link-todos.js'
import type { Session } from '../connection/session.js'

export type Run = <T>(work: (s: Session) => Promise<T>) => Promise<T>

/** Promotes; and where ends left to-dos works them off, all or nothing, and promotes what that frees, which is mostly due. */
export async function promoteAll(
  limit: number,
  plain: Run,
  whole: Run,
): Promise<Promoted & { readonly moved: boolean }> {
  const { todo, ...first } = await plain((s) => promoteJobs(s, limit))
  if (!todo) return first
  const { cancelledByParents: calledOff, moved: isWorked, left } = await whole((s) => workOffLinks(s, limit))
  const { promoted, expired, nextInMs, moved } = await plain((s) => promoteJobs(s, limit - first.promoted))
  return {
    promoted: first.promoted + promoted,
    cancelledByParents: calledOff,
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
  return { promoted, cancelledByParents: [], again: false, expired, troubled: [], nextInMs, todo, moved }
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
