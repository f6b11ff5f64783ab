import { decideLink, parentFateOf, policiesMovedBy, parentReason } from '../../../job/rules/links.js'
import type { LinkPolicy, LinkTodoKind } from '../../../job/rules/links.js'
import type { State } from '../../../job/rules/states.js'
import { isFinal } from '../../../job/rules/states.js'
import {
  askedParents,
  hasParents,
  isOpen,
  linksOf,
  lookedAt,
  metIn,
  movedLinksOf,
  nameOf,
  policyFor,
  refuseCycle,
  refuseMissing,
  refuseOwnKey,
} from '../../links.js'
import type { AddedParents, CancelledByParent, Edge, FoundParent, Met, Parent } from '../../links.js'
import type { JobRow, NewJob } from '../../store.js'
import { endWaiting } from './history.js'
import { isAnyTodo, noteAll } from './link-ends.js'
import { readForChange, readKeyed } from './read.js'
import type { Session } from '../connection/session.js'

/*
 * Jobs that come after others. Who ends a parent writes a to-do in the same transaction; `promoteJobs` works it off, a bounded
 * number of links at a time, so that an end with ten thousand children costs no more than another.
 */

export type Found = Map<string, FoundParent>

/** The parents of a bulk as they stand before it is written; undefined when it has none. Those missing are refused. */
export function findParents(session: Session, jobs: readonly NewJob[]): Found | undefined {
  if (!jobs.some(hasParents)) return undefined
  const { ids, keys } = askedParents(jobs)
  return lookFor(session, [...ids.map((id) => ({ id })), ...keys], jobs)
}

function lookFor(session: Session, parents: readonly Parent[], jobs: readonly NewJob[] = []): Found {
  const found: Found = new Map()
  const ids = parents.flatMap((parent) => ('id' in parent ? [parent.id] : []))
  for (const row of readParents(session, ids)) found.set(row.id, row)
  for (const parent of parents) {
    const row = 'id' in parent ? undefined : readKeyed(session, parent.name, parent.key)
    if (row !== undefined) found.set(nameOf(parent), { id: row.id, name: row.name, key: row.key, state: row.state })
  }
  refuseMissing(parents, found, jobs)
  return found
}

function readParents(session: Session, ids: readonly string[]): FoundParent[] {
  if (ids.length === 0) return []
  return session.statement(session.queries.parentsById).all(JSON.stringify(ids)) as FoundParent[]
}

/** Blocks the jobs of a bulk that must wait for others: the new ones, and then those that were moved. */
export function linkJobs(
  session: Session,
  jobs: readonly NewJob[],
  inserted: readonly Met[],
  found: Found,
  now: number,
): void {
  const met = metIn(jobs, inserted, found)
  const links = linksOf(jobs, inserted, found, lookedAt(met, readParents(session, met), inserted, found))
  addLinks(
    session,
    links.flatMap(({ job, open }) => {
      const [onFailure, keepMs] = [job.onParentFailure ?? 'wait', job.keepCancelledMs ?? Infinity]
      return open.map((parent): Link => [parent, job.id, onFailure, keepMs === Infinity ? null : keepMs])
    }),
  )
  putAfter(
    session,
    links.map(({ job, after }) => [job.id, JSON.stringify(after)]),
  )
  const ended = endedOf(found)
  for (const { open } of ended.size === 0 ? [] : links) noteEnded(session, open, ended)
  for (const { job, reason } of links)
    if (reason !== null) endWaiting(session, job.id, reason, job.keepCancelledMs ?? Infinity, now)
  for (const { id, added } of movedLinksOf(jobs, inserted, found)) {
    const job = readForChange(session, id)
    // Not one that a later one of the bulk has replaced.
    if (job !== undefined && !isFinal(job.state)) addParents(session, job, added)
  }
}

/** Blocks successors until the job before them ends. Last of all, when the bulk has no more to say about either. */
export function linkSuccessors(session: Session, inserted: readonly Met[]): void {
  for (const { id, follows } of inserted) {
    const job = follows === undefined ? undefined : readForChange(session, id)
    // Not one that a later one of the bulk has replaced.
    if (follows === undefined || job === undefined || isFinal(job.state)) continue
    addParents(session, job, { parents: [{ id: follows.id }], onFailure: 'run', keepMs: Infinity })
  }
}

/** Rows that one statement writes: crossing into the library costs more than a row. */
const AT_ONCE = 1_000

type Link = readonly [parent: string, child: string, onFailure: LinkPolicy, keepMs: number | null]

function addLinks(session: Session, links: readonly Link[]): void {
  eachFew(links, (few) => session.statement(session.queries.addLinks).run(few))
  const children = [...new Set(links.map(([, child]) => child))]
  eachFew(children, (few) => {
    for (const { grp, queue, state } of session.statement(session.queries.blockedMembers).all(few) as MemberRow[]) {
      session.tally.leave({ group: grp, queue }, state)
      session.tally.enter({ group: grp, queue }, 'blocked')
    }
    session.statement(session.queries.blockJobs).run(few)
  })
}

/** A member of a group, and a state: where it stands, or where it will. */
interface MemberRow {
  readonly grp: string
  readonly queue: string
  readonly state: State
}

function putAfter(session: Session, rows: readonly (readonly [id: string, after: string])[]): void {
  eachFew(rows, (few) => session.statement(session.queries.putAfter).run(few))
}

function eachFew(list: readonly unknown[], write: (few: string) => unknown): void {
  for (let from = 0; from < list.length; from += AT_ONCE) write(JSON.stringify(list.slice(from, from + AT_ONCE)))
}

/** A parent that failed before its child came is looked at as if it had just failed. */
function noteEnded(session: Session, open: readonly string[], ended: ReadonlyMap<string, State>): void {
  const ends = ended.size === 0 ? [] : open.filter((id) => ended.has(id)).map((id) => [id, ended.get(id)])
  if (ends.length > 0) noteAll(session, ends as [string, State][])
}

function endedOf(found: Found): Map<string, State> {
  return new Map([...found.values()].filter(({ state }) => isFinal(state)).map(({ id, state }) => [id, state]))
}

/** Adds parents to a job that waits; it is blocked if it must wait for one of them. */
export function addParents(session: Session, job: JobRow, added: AddedParents): void {
  const found = lookFor(session, added.parents)
  const parents = [...new Map([...found.values()].map((parent) => [parent.id, parent])).values()]
  refuseOwnKey(job, parents, added.onFailure)
  const ids = parents.map((parent) => parent.id)
  const edges = session.statement(session.queries.linksAbove).all(JSON.stringify(ids)) as unknown as Edge[]
  refuseCycle(job.id, ids, edges, labels(session, [job.id, ...ids, ...edges.map((edge) => edge.parent)]))
  putAfter(session, [[job.id, JSON.stringify([...new Set([...job.after, ...ids])])]])
  const open = parents.filter(({ state }) => isOpen(state, added.onFailure))
  const keepMs = added.keepMs === Infinity ? null : added.keepMs
  addLinks(
    session,
    open.map((parent): Link => [parent.id, job.id, policyFor(job, parent, added.onFailure), keepMs]),
  )
  const openIds = open.map(({ id }) => id)
  noteEnded(session, openIds, endedOf(found))
}

function labels(session: Session, ids: readonly string[]): (id: string) => string {
  const names = new Map(readParents(session, [...new Set(ids)]).map((row) => [row.id, row.name]))
  return (id) => `${names.get(id) ?? 'a job'} ${id}`
}

export function isBlocked(session: Session, seq: number): boolean {
  return session.statement(session.queries.hasLinks).get(seq) !== undefined
}

export interface WorkedOff {
  readonly cancelledByParents: readonly CancelledByParent[]
  readonly again: boolean
}

/** Looks at what the ends of parents change, at most `limit` links of it. */
export function workOffLinks(session: Session, limit: number, now: number): WorkedOff {
  const calledOff: CancelledByParent[] = []
  let left = limit
  const todos = session.statement(session.queries.nextTodos).all(limit) as unknown as Todo[]
  for (const todo of todos) {
    if (left <= 0) break
    const [parent] = readParents(session, [todo.parent])
    const fate = parentFateOf(parent?.state, todo.what)
    const policies = JSON.stringify(policiesMovedBy(fate))
    const links = session.statement(session.queries.movedLinks).all(todo.parent, policies, left) as unknown as LinkRow[]
    if (links.length < left) session.statement(session.queries.dropTodo).run(todo.number)
    left -= links.length
    resolve(
      session,
      todo.parent,
      links.filter((link) => decideLink(fate, link.on_failure) === 'resolves'),
    )
    const reason = parentReason(fate, { id: todo.parent, name: parent?.name ?? null })
    for (const link of links)
      if (decideLink(fate, link.on_failure) === 'cancels') calledOff.push(...callOff(session, link, reason, now))
  }
  return { cancelledByParents: calledOff, again: isAnyTodo(session) }
}

interface Todo {
  readonly number: number
  readonly parent: string
  readonly what: LinkTodoKind
}

interface LinkRow {
  readonly child: number
  readonly on_failure: LinkPolicy
  readonly keep_ms: number | null
  readonly id: string
  readonly name: string
  readonly queue: string
  /** Null when it has ended by now. */
  readonly state: State | null
}

function resolve(session: Session, parent: string, links: readonly LinkRow[]): void {
  if (links.length === 0) return
  const children = JSON.stringify(links.map((link) => link.child))
  session.statement(session.queries.resolveLinks).run(parent, children)
  for (const { grp, queue, state } of session.statement(session.queries.freedMembers).all(children) as MemberRow[]) {
    session.tally.leave({ group: grp, queue }, 'blocked')
    session.tally.enter({ group: grp, queue }, state)
  }
  session.statement(session.queries.freeJobs).run(children)
}

function callOff(session: Session, link: LinkRow, reason: string, now: number): CancelledByParent[] {
  // Called off a moment ago because of another parent.
  if (!isBlocked(session, link.child)) return []
  const { id, name, queue } = link
  endWaiting(session, id, reason, link.keep_ms ?? Infinity, now)
  return [{ id, name, queue, reason }]
}
