import { decideLink, parentFateOf, policiesMovedBy, parentReason } from '../../../job/rules/links.js'
import type { LinkPolicy, LinkTodoKind } from '../../../job/rules/links.js'
import type { Encoded } from '../../../job/rules/outcome.js'
import type { State } from '../../../job/rules/states.js'
import { callEndOf, goneEnd, isEndOf } from '../../verbs/call-ends.js'
import { isFinal } from '../../../job/rules/states.js'
import { refuseCycle } from '../../links.js'
import type { CancelledByParent, Edge, FoundParent, InsertResult, MovedLinks, NewLinks, Parent } from '../../links.js'
import type { JobRow, NewJob } from '../../store.js'
import { addParents } from '../../verbs/links.js'
import type { FoundParents, LinkSteps, NewLink } from '../../verbs/links.js'
import type { NewCall } from '../../verbs/workflows.js'
import { runVerb } from '../../verbs/verb.js'
import { toEncoded } from '../connection/driver.js'
import type { Session } from '../connection/session.js'
import { endWaiting, noteAll } from './moves.js'
import { deliverCallEnd } from './inbox.js'
import { readForChange, readJobs, readKeyed } from './read.js'

/*
 * Links on SQLite. The transaction that ends a parent writes a to-do; `promoteJobs` handles it, a bounded number of
 * links at a time, so that the end of a job with ten thousand children costs no more than another.
 */

/** The steps of `store/verbs/links.ts`. SQLite has one writer at a time, so nothing is locked. */
export class SqliteLinks implements LinkSteps<FoundParent, JobRow> {
  readonly #session: Session
  readonly #now: number

  constructor(session: Session, now: number) {
    this.#session = session
    this.#now = now
  }

  parentsById(ids: readonly string[]): FoundParent[] {
    return readParents(this.#session, ids)
  }

  parentsByKey(keys: readonly { readonly name: string; readonly key: string }[]): (readonly [Parent, FoundParent])[] {
    return keys.flatMap((parent) => {
      const row = readKeyed(this.#session, parent.name, parent.key)
      return row === undefined
        ? []
        : [[parent, { id: row.id, name: row.name, key: row.key, state: row.state }] as const]
    })
  }

  holdParents(): void {}

  lockLinking(): void {}

  refuseCycle(job: JobRow, parents: readonly FoundParent[]): void {
    const ids = parents.map((parent) => parent.id)
    const edges = this.#session.statement(this.#session.queries.linksAbove).all(JSON.stringify(ids)) as Edge[]
    refuseCycle(job.id, ids, edges, labels(this.#session, [job.id, ...ids, ...edges.map((edge) => edge.parent)]))
  }

  addLinks(links: readonly NewLink<FoundParent, JobRow>[]): void {
    addLinks(
      this.#session,
      links.map(({ parent, child, onFailure, keepMs }) => [parent.id, child.id, onFailure, finite(keepMs)]),
    )
  }

  /** A parent that failed before its child was linked is handled as if it had just failed. */
  watchParents(parents: readonly FoundParent[]): void {
    const ended = parents.filter(({ state }) => isFinal(state)).map(({ id, state }) => [id, state] as const)
    if (ended.length > 0) noteAll(this.#session, ended)
  }

  putAfter(job: JobRow, after: readonly string[]): void {
    putAfter(this.#session, [[job.id, JSON.stringify(after)]])
  }

  writeLinks(links: readonly NewLinks[], found: FoundParents<FoundParent>): void {
    const rows = links.flatMap(({ job, open }) =>
      open.map((parent): Link => [
        parent,
        job.id,
        job.onParentFailure ?? 'wait',
        finite(job.keepCancelledMs ?? Infinity),
      ]),
    )
    addLinks(this.#session, rows)
    blockJobs(this.#session, [...new Set(rows.map(([, child]) => child))])
    putAfter(
      this.#session,
      links.map(({ job, after }) => [job.id, JSON.stringify(after)]),
    )
    const open = new Set(links.flatMap((each) => each.open))
    this.watchParents(
      [...new Map([...found.values()].map((one) => [one.id, one])).values()].filter(({ id }) => open.has(id)),
    )
  }

  cancelNew({ id, keepCancelledMs }: NewJob, reason: string): void {
    endWaiting(this.#session, id, reason, keepCancelledMs ?? Infinity, this.#now)
  }

  linkMoved({ id, added }: MovedLinks): void {
    const job = readForChange(this.#session, id)
    if (job === undefined || isFinal(job.state)) return
    const open = runVerb(addParents(this, job, added))
    if (open.length > 0) blockJobs(this.#session, [id])
  }
}

function readParents(session: Session, ids: readonly string[]): FoundParent[] {
  if (ids.length === 0) return []
  return session.statement(session.queries.parentsById).all(JSON.stringify(ids)) as FoundParent[]
}

function labels(session: Session, ids: readonly string[]): (id: string) => string {
  const names = new Map(readParents(session, [...new Set(ids)]).map((row) => [row.id, row.name]))
  return (id) => `${names.get(id) ?? 'a job'} ${id}`
}

function finite(keepMs: number): number | null {
  return keepMs === Infinity ? null : keepMs
}

/** Blocks successors until the job before them ends. Called last, when the bulk changes neither of the two any more. */
export function linkSuccessors(session: Session, inserted: readonly InsertResult[], now: number): void {
  for (const { id, follows } of inserted)
    if (follows !== undefined) {
      const added = { parents: [{ id: follows.id }], onFailure: 'run' as const, keepMs: Infinity }
      new SqliteLinks(session, now).linkMoved({ id, added })
    }
}

/** Rows per statement: a call into the library costs more than a row. */
const AT_ONCE = 1_000

type Link = readonly [parent: string, child: string, onFailure: LinkPolicy, keepMs: number | null]

function addLinks(session: Session, links: readonly Link[]): void {
  eachFew(links, (few) => session.statement(session.queries.addLinks).run(few))
}

function blockJobs(session: Session, ids: readonly string[]): void {
  eachFew(ids, (few) => {
    for (const { grp, queue, state } of session.statement(session.queries.blockedMembers).all(few) as MemberRow[]) {
      session.groupMoves.leave({ group: grp, queue }, state)
      session.groupMoves.enter({ group: grp, queue }, 'blocked')
    }
    session.statement(session.queries.blockJobs).run(few)
  })
}

/** A group member, and the state it is in or will be in. */
interface MemberRow {
  readonly grp: string
  readonly queue: string
  readonly state: State
}

function putAfter(session: Session, rows: readonly (readonly [id: string, after: string])[]): void {
  eachFew(rows, (few) => {
    session.statement(session.queries.putAfter).run(few)
    session.statement(session.queries.labelParents).run(few)
  })
}

function eachFew(list: readonly unknown[], write: (few: string) => unknown): void {
  for (let from = 0; from < list.length; from += AT_ONCE) write(JSON.stringify(list.slice(from, from + AT_ONCE)))
}

export function isBlocked(session: Session, seq: number): boolean {
  return session.statement(session.queries.hasLinks).get(seq) !== undefined
}

/** One lookup in a table that is usually empty. */
export function isAnyTodo(session: Session): boolean {
  return session.statement(session.queries.anyTodo).get() !== undefined
}

export interface WorkedOff {
  readonly cancelledByParents: readonly CancelledByParent[]
  readonly again: boolean
}

/** Handles the ends of parents, at most `limit` of their links. */
export function workOffLinks(session: Session, limit: number, now: number): WorkedOff {
  const cancelled: CancelledByParent[] = []
  let left = limit
  const todos = session.statement(session.queries.nextTodos).all(limit) as unknown as Todo[]
  for (const todo of todos) {
    if (left <= 0) break
    const [parent] = readParents(session, [todo.parent])
    const calls = bringCallEnd(session, todo, parent?.state, left, now)
    left -= calls
    if (left <= 0) break
    const fate = parentFateOf(parent?.state, todo.what)
    const policies = JSON.stringify(policiesMovedBy(fate))
    const links = session.statement(session.queries.movedLinks).all(todo.parent, policies, left) as unknown as LinkRow[]
    if (links.length < left) session.statement(session.queries.dropTodo).run(todo.number)
    left -= links.length
    resolveLinks(
      session,
      todo.parent,
      links.filter((link) => decideLink(fate, link.on_failure) === 'resolves'),
    )
    const reason = parentReason(fate, { id: todo.parent, name: parent?.name ?? null })
    for (const link of links)
      if (decideLink(fate, link.on_failure) === 'cancels') cancelled.push(...callOff(session, link, reason, now))
  }
  return { cancelledByParents: cancelled, again: isAnyTodo(session) }
}

interface Todo {
  readonly number: number
  readonly parent: string
  readonly what: LinkTodoKind
  /** How a called job ended; null: its row says it. */
  readonly ended_at: number | null
  readonly result: Encoded | null
  readonly error: string | null
}

/** Brings the end of a called job to the workflows that wait for it. Returns how many they were. */
function bringCallEnd(session: Session, todo: Todo, state: State | undefined, limit: number, now: number): number {
  const { parent: id, ended_at, result, error, what } = todo
  const encoded = result === null ? null : toEncoded(result)
  if (ended_at !== null) return deliverCallEnd(session, id, { result: encoded, error, at: ended_at }, limit, now)
  if (!isEndOf(state)) return 0
  const [row] = state === undefined ? [] : readJobs(session, [id])
  const end = row === undefined ? goneEnd(what) : callEndOf({ ...row, to: row.state })
  return deliverCallEnd(session, id, { ...end, at: row?.settledAt ?? now }, limit, now)
}

/** A job that existed before and has ended is handled as if it ended now. */
export function linkCall(session: Session, { caller, called, keepMs }: NewCall): void {
  session.statement(session.queries.addCall).run(called.id, caller, finite(keepMs))
  const [parent] = called.isNew ? [] : readParents(session, [called.id])
  if (parent !== undefined && isFinal(parent.state)) noteAll(session, [[parent.id, parent.state]])
}

interface LinkRow {
  readonly child: number
  readonly on_failure: LinkPolicy
  readonly keep_ms: number | null
  readonly id: string
  readonly name: string
  readonly queue: string
  /** Null when it has ended. */
  readonly state: State | null
}

function resolveLinks(session: Session, parent: string, links: readonly LinkRow[]): void {
  if (links.length === 0) return
  const children = JSON.stringify(links.map((link) => link.child))
  session.statement(session.queries.resolveLinks).run(parent, children)
  for (const { grp, queue, state } of session.statement(session.queries.freedMembers).all(children) as MemberRow[]) {
    session.groupMoves.leave({ group: grp, queue }, 'blocked')
    session.groupMoves.enter({ group: grp, queue }, state)
  }
  session.statement(session.queries.freeJobs).run(children)
}

function callOff(session: Session, link: LinkRow, reason: string, now: number): CancelledByParent[] {
  // Cancelled by this pass already, because of another parent.
  if (!isBlocked(session, link.child)) return []
  const { id, name, queue } = link
  endWaiting(session, id, reason, link.keep_ms ?? Infinity, now)
  return [{ id, name, queue, reason }]
}
