import { GroupSealedError } from '../../../errors.js'
import type { State } from '../../../job/rules/states.js'
import type { MemberCount } from '../../../job/rules/group-progress.js'
import { GROUP_KEEP_MS, withRunning } from '../../groups.js'
import type { GroupRow } from '../../groups.js'
import type { InsertOptions, NewJob } from '../../store.js'
import { unfinishedOf } from '../../group-moves.js'
import type { Session } from '../connection/session.js'

/*
 * Groups on SQLite. One writer at a time, so counts are simply kept true, in the transaction that moves the member; and a group
 * that is complete is one whose row says so: `promoteJobs` looks there, and whoever ended the last member only wakes it.
 */

/** Lets jobs into their groups, or refuses all of them: a sealed group takes what its own running members add, and no more. */
export function admitMembers(session: Session, jobs: readonly NewJob[], under: InsertOptions['under']): void {
  for (const group of groupsOf(jobs)) {
    const row = groupRow(session, group)
    if (row !== undefined) refuseSealed(session, group, row, under)
    if (row === undefined) session.statement(session.queries.addGroup).run(group)
    else if (row.empty_since !== null) session.statement(session.queries.keepGroup).run(group)
  }
}

function refuseSealed(session: Session, group: string, row: StoredGroup, under: InsertOptions['under']): void {
  if (row.sealed_at === null) return
  const isMember =
    under !== undefined && session.statement(session.queries.isMember).get(under.ref, group) !== undefined
  if (!isMember || row.completed_at !== null) throw new GroupSealedError(group, row.completed_at !== null)
}

/** The groups that jobs name, each once; nearly always none. */
function groupsOf(jobs: readonly NewJob[]): Iterable<string> {
  let groups: Set<string> | undefined
  for (const { group } of jobs) if (typeof group === 'string') (groups ??= new Set()).add(group)
  return groups ?? []
}

interface StoredGroup {
  readonly sealed_at: number | null
  readonly completed_at: number | null
  readonly empty_since: number | null
}

export function groupRow(session: Session, group: string): StoredGroup | undefined {
  return session.statement(session.queries.readGroup).get(group) as StoredGroup | undefined
}

/** Writes down which members have moved in this transaction. Called at the end of every verb that moves jobs. */
export function countMoves(session: Session): void {
  if (session.tally.isEmpty) return
  const moves = session.tally.take()
  const count = session.statement(session.queries.countMembers)
  for (const { group, queue, state, members } of moves) count.run(group, queue, state, members)
  const unfinished = session.statement(session.queries.countUnfinished)
  for (const [group, change] of unfinishedOf(moves)) if (change !== 0) unfinished.run(change, group)
  if (isAnyComplete(session)) session.noteDue(0)
}

export function readGroup(session: Session, group: string): GroupRow {
  const row = groupRow(session, group)
  if (row === undefined) return { sealedAt: null, completedAt: null, counts: [] }
  const counts = session.statement(session.queries.readCounts).all(group) as MemberCount[]
  const isAnyReady = counts.some((count) => count.state === 'ready')
  const running = isAnyReady ? session.statement(session.queries.runningMembers).all(group) : []
  return {
    sealedAt: row.sealed_at,
    completedAt: row.completed_at,
    counts: withRunning(counts, running as { queue: string; members: number }[]),
  }
}

/** One look at an index that is nearly always empty. */
export function isAnyComplete(session: Session): boolean {
  return session.statement(session.queries.completeGroups).all(1).length > 0
}

/** Makes due jobs ready where members may be among them, and gives how many. */
export function promoteMembers(session: Session, limit: number, now: number): number {
  const due = session.statement(session.queries.dueMembers).all(now, limit) as DueRow[]
  if (due.length === 0) return 0
  for (const { grp, queue, state } of due) {
    session.tally.leave({ group: grp, queue }, state)
    session.tally.enter({ group: grp, queue }, 'ready')
  }
  session.statement(session.queries.promoteThese).run(JSON.stringify(due.map((row) => row.seq)))
  return due.length
}

interface DueRow {
  readonly seq: number
  readonly state: State
  readonly grp: string | null
  readonly queue: string
}

export function isAnyGroup(session: Session): boolean {
  return session.statement(session.queries.anyGroup).all().length > 0
}

/** Forgets groups whose members were all forgotten long ago: the next few of a walk round the table. Gives how many. */
export function sweepGroups(session: Session, limit: number, now: number): number {
  const rows = session.statement(session.queries.nextGroups).all(session.groupsSweptTo, limit) as SweepRow[]
  let forgotten = 0
  for (const { grp, empty_since, lives } of rows) {
    const isEmpty = lives === 0
    if (isEmpty && empty_since !== null && empty_since <= now - GROUP_KEEP_MS) forgotten += forget(session, grp)
    else if (isEmpty !== (empty_since !== null))
      session.statement(session.queries.markEmpty).run(isEmpty ? now : null, grp)
  }
  session.groupsSweptTo = rows.length === limit ? (rows.at(-1)?.grp ?? '') : ''
  return forgotten
}

function forget(session: Session, group: string): number {
  const { changes } = session.statement(session.queries.forgetGroup).run(group)
  session.statement(session.queries.forgetCounts).run(group)
  return Number(changes)
}

interface SweepRow {
  readonly grp: string
  readonly empty_since: number | null
  readonly lives: number
}
