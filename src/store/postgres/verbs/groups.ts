import { GroupSealedError } from '../../../errors.js'
import type { MemberCount } from '../../../job/rules/group-progress.js'
import { GROUP_KEEP_MS, withRunning } from '../../groups.js'
import type { GroupRow } from '../../groups.js'
import type { InsertOptions, NewJob } from '../../store.js'
import { numberOrNull } from '../connection/executor.js'
import type { Session } from '../connection/session.js'

/*
 * Groups on PostgreSQL. Two ends that commit at the same time do not see each other, so nobody decides in his own transaction
 * that he was the last. Each leaves its move behind, and whoever promotes jobs looks at groups that have moves: the one that
 * commits last leaves a move that is seen after all others. `docs/decisions/groups.md` has the races.
 */

/** So many moves are added up at a time. */
const FOLD_MAX = 5_000
/** Who reads a group with more moves than this adds them up for the next one. */
const MOVES_MAX = 1_000

/** Lets jobs into their groups, or refuses all of them: a sealed group takes what its own running members add, and no more. */
export async function admitMembers(s: Session, jobs: readonly NewJob[], under: InsertOptions['under']): Promise<void> {
  const groups = groupsOf(jobs)
  if (groups.length === 0) return
  const named = JSON.stringify(groups)
  let rows = await s.query<SharedRow>(s.queries.shareGroups, named)
  if (rows.length < groups.length) {
    await s.query(s.queries.addGroups, named)
    rows = await s.query<SharedRow>(s.queries.shareGroups, named)
  }
  for (const { grp, sealed_at, completed_at } of rows) {
    if (sealed_at === null) continue
    const isMember = under !== undefined && (await s.query(s.queries.isMember, String(under.ref), grp)).length > 0
    if (!isMember || completed_at !== null) throw new GroupSealedError(grp, completed_at !== null)
  }
  if (rows.some((row) => row.empty_since !== null)) await s.query(s.queries.keepGroups, named)
}

/** Whether any of them is a member; nearly always none is. */
export function haveMembers(jobs: readonly NewJob[]): boolean {
  return jobs.some((job) => typeof job.group === 'string')
}

function groupsOf(jobs: readonly NewJob[]): string[] {
  const groups = new Set<string>()
  for (const { group } of jobs) if (typeof group === 'string') groups.add(group)
  return [...groups]
}

interface SharedRow {
  readonly grp: string
  readonly sealed_at: unknown
  readonly completed_at: unknown
  readonly empty_since: unknown
}

/** Writes down which members this verb has moved. Called at its end, within its transaction. */
export async function countMoves(s: Session): Promise<void> {
  if (s.tally.isEmpty) return
  const moves = s.tally.take()
  if (moves.length === 0) return
  const near = await s.query(s.queries.countMoves, JSON.stringify(moves))
  if (near.length > 0) s.note({ dueInMs: 0 })
}

/** How a group stands, and whether so much has moved that it should be added up. */
export async function readGroup(s: Session, group: string): Promise<GroupRow & { readonly isLong: boolean }> {
  const [row] = await s.query<ReadRow>(s.queries.readGroup, group)
  const counts = JSON.parse(row?.counts ?? '[]') as MemberCount[]
  const running = JSON.parse(row?.running ?? '[]') as { queue: string; members: number }[]
  return {
    sealedAt: numberOrNull(row?.sealed),
    completedAt: numberOrNull(row?.completed),
    counts: withRunning(counts, running),
    isLong: Number(row?.moves ?? 0) > MOVES_MAX,
  }
}

interface ReadRow {
  readonly sealed: unknown
  readonly completed: unknown
  readonly moves: unknown
  readonly counts: string | null
  readonly running: string | null
}

/** Adds up what has moved. Gives the groups that are complete, and whether there may be more to add up. */
export async function foldMoves(s: Session): Promise<{ readonly complete: string[]; readonly isMore: boolean }> {
  const [row] = await s.query<{ looked: number; complete: string | null }>(s.queries.foldMoves, String(FOLD_MAX))
  return { complete: JSON.parse(row?.complete ?? '[]') as string[], isMore: row?.looked === FOLD_MAX }
}

/** Forgets groups whose members were all forgotten long ago: the next few of a walk round them. Gives how many. */
export async function sweepGroups(s: Session, limit: number, walk: { groupsSweptTo: string }): Promise<number> {
  const [row] = await s.query<{ forgotten: number; looked: number; last: string | null }>(
    s.queries.sweepGroups,
    s.nowText,
    walk.groupsSweptTo,
    String(limit),
    String(GROUP_KEEP_MS),
  )
  walk.groupsSweptTo = row !== undefined && row.looked === limit ? (row.last ?? '') : ''
  return row?.forgotten ?? 0
}
