import { decideLink, parentFateOf, policiesMovedBy, parentReason } from '../../../job/rules/links.js'
import type { ParentFate, LinkPolicy, LinkTodoKind } from '../../../job/rules/links.js'
import { isFinal } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import { numberOf, numberOrNull } from '../../rows/columns.js'
import { refuseCycle } from '../../links.js'
import type { CancelledByParent, FoundParent, InsertResult, MovedLinks, NewLinks, Parent } from '../../links.js'
import type { NewJob } from '../../store.js'
import { addParents } from '../../verbs/links.js'
import type { FoundParents, LinkSteps, NewLink } from '../../verbs/links.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Session } from '../connection/session.js'
import { arrayOf, finite } from '../connection/session.js'
import { DAY_MS, NUMBER_BITS } from '../numbers.js'
import { countMoves } from './groups.js'
import { deliverCalls, wakeSent } from './inbox.js'
import type { CallTodo } from './inbox.js'
import { cancelWritten, endAll, putIn, takeOut } from './moves.js'
import { encodedOf, readById, readStored } from './read.js'
import type { StoredJob } from './read.js'

/*
 * Links on PostgreSQL. A transaction that inserts a child only reads a parent that is unfinished or may be retried: it
 * inserts a to-do besides the link, and `promoteJobs` makes sure that the parent's end is seen. So a caller's
 * transaction, which may stay open for any length of time, blocks no worker that runs or settles a parent.
 */

/** What `store/verbs/links.ts` needs. */
export class PostgresLinks implements LinkSteps<StoredParent, StoredJob> {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  parentsById(ids: readonly string[]): Promise<StoredParent[]> {
    return byId(this.#session, ids)
  }

  async parentsByKey(
    keys: readonly { readonly name: string; readonly key: string }[],
  ): Promise<(readonly [Parent, StoredParent])[]> {
    const rows = await this.#session.query<KeyedRow>(this.#session.queries.parentsByKey, JSON.stringify(keys))
    return rows.map((row) => [{ name: row.wantedName, key: row.wantedKey }, toParent(row)])
  }

  async holdParents(found: FoundParents<StoredParent>): Promise<void> {
    const open = [...found.values()].filter((parent) => parent.state !== 'done').map((parent) => parent.ref)
    if (open.length === 0) return
    const held = await this.#session.query<{ ref: unknown }>(this.#session.queries.holdParents, arrayOf(open))
    const there = new Set(held.map((row) => numberOf(row.ref)))
    for (const [name, parent] of found) if (parent.state !== 'done' && !there.has(parent.ref)) found.delete(name)
  }

  lockLinking(): Promise<unknown> {
    return this.#session.query(this.#session.queries.lockLinking)
  }

  refuseCycle(job: StoredJob, parents: readonly StoredParent[]): Promise<void> {
    return refuseCycleAbove(this.#session, job, parents)
  }

  addLinks(links: readonly NewLink<StoredParent, StoredJob>[]): Promise<void> {
    return addLinks(
      this.#session,
      links.map(({ parent, child, onFailure, keepMs }) => ({
        parent: parent.ref,
        child: child.ref,
        onFailure,
        keepMs: finite(keepMs),
      })),
    )
  }

  watchParents(parents: readonly StoredParent[]): Promise<void> {
    return watchParents(this.#session, parents)
  }

  putAfter({ ref }: StoredJob, after: readonly string[]): Promise<unknown> {
    const rows = JSON.stringify([{ ref, after: JSON.stringify(after) }])
    return this.#session.query(this.#session.queries.putAfter, rows)
  }

  writeLinks(links: readonly NewLinks[], found: FoundParents<StoredParent>): Promise<void> {
    return writeLinks(this.#session, links, found)
  }

  cancelNew(job: NewJob, reason: string): Promise<void> {
    return cancelWritten(this.#session, job, reason)
  }

  /** No other process can move the job before this transaction ends: it is taken out once more, and blocked. */
  async linkMoved({ id, added }: MovedLinks): Promise<void> {
    const job = await readById(this.#session, id)
    if (job === undefined || isFinal(job.state)) return
    if (!(await takeOut(this.#session, job))) throw new Error(`job ${id} was moved and is not where it was put`)
    const open = await awaitVerb(addParents(this, job, added))
    const state = open.length > 0 && job.state !== 'paused' ? 'blocked' : job.state
    await putIn(this.#session, [{ job, state }], await this.#session.now())
  }
}

/** A parent, with its ref. */
export interface StoredParent extends FoundParent {
  readonly ref: number
}

interface ParentRow {
  readonly ref: unknown
  readonly id: string
  readonly name: string
  readonly key: string | null
  readonly state: State
}

async function byId(session: Session, ids: readonly string[]): Promise<StoredParent[]> {
  if (ids.length === 0) return []
  return (await session.query<ParentRow>(session.queries.parentsById, JSON.stringify(ids))).map(toParent)
}

function toParent({ ref, id, name, key, state }: ParentRow): StoredParent {
  return { ref: numberOf(ref), id, name, key, state }
}

interface Link {
  readonly parent: number
  readonly child: number
  readonly onFailure: string
  readonly keepMs: number | null
}

/** Links per statement. */
const LINKS_PER_INSERT = 10_000

async function addLinks(session: Session, links: readonly Link[]): Promise<void> {
  for (let from = 0; from < links.length; from += LINKS_PER_INSERT) {
    const some = links.slice(from, from + LINKS_PER_INSERT)
    await session.query(
      session.queries.addLinks,
      arrayOf(some.map((link) => link.parent)),
      arrayOf(some.map((link) => link.child)),
      JSON.stringify(some.map((link) => link.onFailure)),
      arrayOf(some.map((link) => link.keepMs)),
    )
  }
}

/** Inserts to-dos, so that the ends of the parents are seen, also those that happen before this transaction commits. */
async function watchParents(session: Session, parents: readonly StoredParent[]): Promise<void> {
  if (parents.length === 0) return
  const todos = parents.map(({ ref, id, state }) => ({ parent: ref, id, what: isFinal(state) ? state : 'recheck' }))
  await session.query(session.queries.addTodos, JSON.stringify(todos))
  session.note({ dueInMs: 0 })
}

type KeyedRow = ParentRow & { readonly wantedName: string; readonly wantedKey: string }

/** The current state of parents, by their refs. */
async function parentsByRef(session: Session, refs: readonly number[]): Promise<Map<number, StoredParent>> {
  if (refs.length === 0) return new Map()
  const rows = await session.query<ParentRow>(session.queries.parentsByRef, arrayOf(refs))
  return new Map(rows.map((row) => [numberOf(row.ref), toParent(row)]))
}

async function writeLinks(
  session: Session,
  links: readonly NewLinks[],
  found: FoundParents<StoredParent>,
): Promise<void> {
  const byParent = new Map([...found.values()].map((parent) => [parent.id, parent]))
  const refs = await newRefs(session, links)
  const refOf = (id: string): number => (byParent.get(id)?.ref ?? refs.get(id)) as number
  await addLinks(
    session,
    links.flatMap(({ job, open }) =>
      open.map((id) => ({
        parent: refOf(id),
        child: refs.get(job.id) as number,
        onFailure: job.onParentFailure ?? 'wait',
        keepMs: finite(job.keepCancelledMs ?? Infinity),
      })),
    ),
  )
  await correct(session, links, refs)
  const open = new Set(links.flatMap((each) => each.open))
  await watchParents(
    session,
    [...byParent.values()].filter((parent) => open.has(parent.id)),
  )
}

/** The end of a job that a workflow has called after it was enqueued must be seen, like that of a late parent. */
export async function watchCalled(session: Session, id: string): Promise<void> {
  const parents = await byId(session, [id])
  await session.query(session.queries.holdParents, arrayOf(parents.map(({ ref }) => ref)))
  await watchParents(session, parents)
}

async function newRefs(session: Session, links: readonly NewLinks[]): Promise<Map<string, number>> {
  const ids = [...new Set(links.flatMap(({ job, open }) => [job.id, ...open]))]
  const today = BigInt(Math.floor((await session.now()) / DAY_MS) - 1) << BigInt(NUMBER_BITS)
  const rows = await session.query<{ ref: unknown; id: string }>(
    session.queries.newRefs,
    JSON.stringify(ids),
    String(today),
  )
  return new Map(rows.map((row) => [row.id, numberOf(row.ref)]))
}

/** If a job of the bulk was replaced by an existing one, its children were planned with an id that does not exist. */
async function correct(session: Session, links: readonly NewLinks[], refs: ReadonlyMap<string, number>): Promise<void> {
  const changed = links.filter(
    ({ job, after }) => after.length !== job.after?.length || after.some((id, index) => !isNamed(job, id, index)),
  )
  const rows = changed.map(({ job, after }) => ({ ref: refs.get(job.id), after: JSON.stringify(after) }))
  if (rows.length > 0) await session.query(session.queries.putAfter, JSON.stringify(rows))
  const free = links.filter(({ open }) => open.length === 0).map(({ job }) => refs.get(job.id) as number)
  if (free.length === 0) return
  await freeJobs(session, arrayOf(free))
  session.note({ dueInMs: 0 })
}

/** Jobs without an open link wait for their time. */
async function freeJobs(session: Session, refs: string): Promise<void> {
  const freed = await session.query<{ grp: string | null; queue: string; state: State }>(session.queries.freeJobs, refs)
  for (const { grp, queue, state } of freed) {
    session.groupMoves.leave({ group: grp, queue }, 'blocked')
    session.groupMoves.enter({ group: grp, queue }, state)
  }
}

function isNamed(job: NewJob, id: string, index: number): boolean {
  const parent = job.after?.[index]
  return parent !== undefined && 'id' in parent && parent.id === id
}

async function refuseCycleAbove(session: Session, job: StoredJob, added: readonly StoredParent[]): Promise<void> {
  const refs = arrayOf(added.map(({ ref }) => ref))
  const above = await session.query<{ child: unknown; parent: unknown }>(session.queries.linksAbove, refs)
  const edges = above.map(({ child, parent }) => ({ child: String(numberOf(child)), parent: String(numberOf(parent)) }))
  const seen = new Set([job.ref, ...added.map(({ ref }) => ref), ...edges.map(({ parent }) => Number(parent))])
  const known = edges.some(({ parent }) => Number(parent) === job.ref)
    ? await parentsByRef(session, [...seen])
    : new Map<number, StoredParent>()
  for (const parent of added) known.set(parent.ref, parent)
  known.set(job.ref, job)
  const label = (ref: string): string =>
    `${known.get(Number(ref))?.name ?? 'a job'} ${known.get(Number(ref))?.id ?? ref}`
  refuseCycle(
    String(job.ref),
    added.map(({ ref }) => String(ref)),
    edges,
    label,
  )
}

/** Which of these jobs have parents to wait for. */
export async function linkedAmong(session: Session, jobs: readonly StoredJob[]): Promise<ReadonlySet<number>> {
  if (jobs.length === 0) return new Set()
  const rows = await session.query<{ child: unknown }>(session.queries.haveLinks, arrayOf(jobs.map((job) => job.ref)))
  return new Set(rows.map((row) => numberOf(row.child)))
}

/** Blocks successors until their predecessor ends. */
export async function linkSuccessors(session: Session, inserted: readonly InsertResult[]): Promise<void> {
  const followed = inserted.flatMap(({ id, follows }) => (follows === undefined ? [] : [{ id, parent: follows.id }]))
  if (followed.length === 0) return
  const rows = await byId(session, [...new Set(followed.flatMap(({ id, parent }) => [id, parent]))])
  const known = new Map(rows.map((row) => [row.id, row]))
  // Not those that a later job of the bulk has replaced.
  const open = followed.flatMap(({ id, parent }) => {
    const [child, job] = [known.get(id), known.get(parent)]
    return child === undefined || job === undefined || isFinal(child.state) ? [] : [{ child, job }]
  })
  await addLinks(
    session,
    open.map(({ child, job }) => ({ parent: job.ref, child: child.ref, onFailure: 'run', keepMs: null })),
  )
  await watchParents(
    session,
    open.map(({ job }) => job),
  )
}

/*
 * Applying the ends of parents. Two settlements that commit at the same time do not see each other, so no transaction
 * can decide that it ended the last parent: each inserts a to-do, and the process that works it off reads the state
 * with a new statement, under the lock of the child. Nothing here waits: locked rows are left for the next round.
 */

export interface WorkedOff {
  readonly cancelledByParents: readonly CancelledByParent[]
  /** Whether anything was changed. */
  readonly moved: boolean
  /** Whether to-dos are left. */
  readonly left: boolean
}

interface Todo extends CallTodo {
  readonly number: number
  readonly what: LinkTodoKind
}

export async function workOffLinks(session: Session, limit: number): Promise<WorkedOff> {
  const { todos, wakes } = await nextTodos(session, limit)
  const busy = await wakeSent(
    session,
    wakes.map(({ parent }) => parent),
  )
  const seen = await markUnfinishedParents(session, todos)
  const due = todos.filter((todo) => !mayHaveParent(todo) || seen.has(todo.parent))
  const calls = await deliverCalls(session, due, limit)
  const ends = await endsOf(session, due)
  const links = await moveLinks(session, ends, limit)
  const isFull = links.isFull || calls.isFull
  const isOver = ({ parent }: Todo): boolean => !isFull && !links.stuck.has(parent) && !calls.stuck.has(parent)
  const over = [...due.filter(isOver), ...wakes.filter(({ parent }) => !busy.has(parent))].map(({ number }) => number)
  if (over.length > 0) await session.query(session.queries.dropTodos, arrayOf(over))
  await countMoves(session)
  const left = (await session.query(session.queries.anyTodo)).length > 0
  const moved = links.moved || calls.isAny || over.length > 0
  return { cancelledByParents: links.cancelledChildren, moved, left }
}

/** To-dos of jobs with children, and of workflows to which a caller's transaction has sent an event. */
async function nextTodos(
  session: Session,
  limit: number,
): Promise<{
  readonly todos: readonly Todo[]
  readonly wakes: readonly { readonly number: number; readonly parent: number }[]
}> {
  const rows = await session.query<StoredTodo>(session.queries.nextTodos, String(limit))
  const read = rows.map(({ number, parent, id, what, ended_at, result, result_bytes, error }) => ({
    number: numberOf(number),
    parent: numberOf(parent),
    id,
    what,
    ended: ended_at === null ? null : { at: numberOf(ended_at), result: encodedOf(result, result_bytes), error },
  }))
  const isTodo = (one: (typeof read)[number]): one is Todo => one.what !== 'wake'
  return { todos: read.filter(isTodo), wakes: read.filter(({ what }) => what === 'wake') }
}

interface StoredTodo {
  readonly number: unknown
  readonly parent: unknown
  readonly id: string | null
  readonly what: LinkTodoKind | 'wake'
  readonly ended_at: unknown
  readonly result: string | null
  readonly result_bytes: string | null
  readonly error: string | null
}

/**
 * Parents that were unfinished when a child was inserted. Each is marked, so that its end inserts a to-do, and no claim
 * may take it without seeing the mark. A row of `ready` or `waiting` is deleted and inserted again: only a claim that
 * also sees the mark can see the new row. If a worker has claimed the parent, its lease is marked as for a requested
 * change. Returns the parents that it could lock.
 */
async function markUnfinishedParents(session: Session, todos: readonly Todo[]): Promise<Set<number>> {
  const refs = [...new Set(todos.filter(mayHaveParent).map((todo) => todo.parent))]
  if (refs.length === 0) return new Set()
  const marked = numbers(await session.query(session.queries.markParents, arrayOf(refs)))
  const stored = await readStored(session, [...marked])
  const at = (table: string): string =>
    arrayOf([...stored.values()].filter((job) => job.table === table).map((job) => job.ref))
  const ready = await session.query<{ ref: unknown }>(session.queries.takeReadyRows, at('ready'))
  if (ready.length > 0) await session.query(session.queries.putReady, JSON.stringify(ready))
  const waiting = await session.query<{ ref: unknown }>(session.queries.takeWaitingRows, at('waiting'))
  if (waiting.length > 0) await session.query(session.queries.putWaiting, JSON.stringify(waiting))
  const ended = await session.query<{ ref: unknown }>(session.queries.lockEnds, at('history'))
  const held = await markHolders(
    session,
    [...stored.values()].filter((job) => job.table === 'lease'),
  )
  const gone = await missing(
    session,
    refs.filter((ref) => !marked.has(ref)),
  )
  return new Set([...numbers([...ready, ...waiting, ...ended]), ...held, ...gone])
}

function mayHaveParent({ what }: Todo): boolean {
  return what !== 'done' && what !== 'gone'
}

/** A settlement holds the lock of the lease: after it, the job is still claimed or has ended. */
async function markHolders(
  session: Session,
  jobs: readonly { readonly ref: number; readonly fence: number | null }[],
): Promise<number[]> {
  if (jobs.length === 0) return []
  const fences = [...new Set(jobs.map((job) => job.fence))]
  const rows = await session.query<{ fence: unknown }>(session.queries.lockFreeLeases, arrayOf(fences))
  const locked = rows.map((row) => numberOf(row.fence))
  const now = await readStored(
    session,
    jobs.map((job) => job.ref),
  )
  const held = [...now.values()].filter((job) => job.table === 'lease' && locked.includes(job.fence as number))
  if (held.length > 0)
    await session.query(session.queries.markLeases, arrayOf([...new Set(held.map((job) => job.fence))]))
  return held.map((job) => job.ref)
}

/** Parents that were not marked because they were deleted, and not because another process has locked them. */
async function missing(session: Session, refs: readonly number[]): Promise<number[]> {
  const there = await parentsByRef(session, refs)
  return refs.filter((ref) => !there.has(ref))
}

interface Ended {
  readonly parent: number
  readonly fate: ParentFate
  readonly reason: string
}

async function endsOf(session: Session, todos: readonly Todo[]): Promise<Map<number, Ended>> {
  const now = await parentsByRef(session, [...new Set(todos.map((todo) => todo.parent))])
  const ends = new Map<number, Ended>()
  const recorded = await recordedElsewhere(
    session,
    todos.filter((todo) => !now.has(todo.parent)),
  )
  for (const todo of todos) {
    const { parent, id, what } = todo
    const row: StoredParent | undefined = now.get(parent)
    const fate = parentFateOf(row?.state, what)
    // Of several to-dos of a deleted parent, one that says done decides.
    if (ends.get(parent)?.fate === 'done' || (mayHaveParent(todo) && recorded.has(parent))) continue
    ends.set(parent, { parent, fate, reason: parentReason(fate, { id: row?.id ?? id, name: row?.name ?? null }) })
  }
  return ends
}

/**
 * The transaction that deleted a parent inserted a to-do with its state: that one counts, whichever process works it
 * off.
 */
async function recordedElsewhere(session: Session, todos: readonly Todo[]): Promise<Set<number>> {
  const older = todos.filter(mayHaveParent).map((todo) => todo.parent)
  if (older.length === 0) return new Set()
  const rows = await session.query<{ parent: unknown }>(session.queries.forgottenAmong, arrayOf(older))
  return new Set(rows.map((row) => numberOf(row.parent)))
}

interface LinkRow {
  readonly parent: number
  readonly child: number
  readonly onFailure: LinkPolicy
  readonly keepMs: number | null
}

interface LinksMoved {
  /** Parents with a child that another process has locked. */
  readonly stuck: ReadonlySet<number>
  readonly cancelledChildren: readonly CancelledByParent[]
  /** Whether there may be more links than were read. */
  readonly isFull: boolean
  readonly moved: boolean
}

async function moveLinks(session: Session, ends: ReadonlyMap<number, Ended>, limit: number): Promise<LinksMoved> {
  const links = await readLinks(session, [...ends.values()], limit)
  if (links.length === 0) return { stuck: new Set(), cancelledChildren: [], isFull: false, moved: false }
  const children = arrayOf([...new Set(links.map((link) => link.child))])
  const locked = numbers(await session.query(session.queries.lockChildren, children))
  const busy = numbers(await session.query(session.queries.anyChildren, children))
  for (const child of locked) busy.delete(child)
  const free = links.filter((link) => !busy.has(link.child))
  const verdict = (link: LinkRow): string => decideLink(ends.get(link.parent)?.fate ?? 'unfinished', link.onFailure)
  const cancelled = free.filter((link) => verdict(link) === 'cancels' && locked.has(link.child))
  await resolveLinks(
    session,
    free.filter((link) => !cancelled.includes(link)),
  )
  const cancelledChildren = await cancelChildren(session, cancelled, ends)
  const stuck = new Set(links.filter((link) => busy.has(link.child)).map((link) => link.parent))
  return { stuck, cancelledChildren, isFull: links.length >= limit, moved: free.length > 0 }
}

async function readLinks(session: Session, ends: readonly Ended[], limit: number): Promise<LinkRow[]> {
  const wanted = ends
    .filter(({ fate }) => policiesMovedBy(fate).length > 0)
    .map(({ parent, fate }) => ({ parent, policies: policiesMovedBy(fate).join(' ') }))
  if (wanted.length === 0) return []
  const rows = await session.query<Record<'parent' | 'child' | 'keep_ms', unknown> & { on_failure: LinkPolicy }>(
    session.queries.movedLinks,
    JSON.stringify(wanted),
    String(limit),
  )
  return rows.map((row) => ({
    parent: numberOf(row.parent),
    child: numberOf(row.child),
    onFailure: row.on_failure,
    keepMs: numberOrNull(row.keep_ms),
  }))
}

/**
 * Whether a child has other open links is read under its lock, by a statement that sees the links that were deleted
 * before.
 */
async function resolveLinks(session: Session, links: readonly LinkRow[]): Promise<void> {
  if (links.length === 0) return
  const children = arrayOf(links.map((link) => link.child))
  await session.query(session.queries.resolveLinks, arrayOf(links.map((link) => link.parent)), children)
  await freeJobs(session, children)
}

async function cancelChildren(
  session: Session,
  links: readonly LinkRow[],
  ends: ReadonlyMap<number, Ended>,
): Promise<CancelledByParent[]> {
  const first = new Map<number, LinkRow>()
  for (const link of links) if (!first.has(link.child)) first.set(link.child, link)
  if (first.size === 0) return []
  const jobs = [...(await readStored(session, [...first.keys()])).values()]
  await session.query(session.queries.takeWaitingRows, arrayOf(jobs.map((job) => job.ref)))
  for (const job of jobs) session.groupMoves.leave(job, job.state)
  const cancelled = jobs.map((job) => {
    const link = first.get(job.ref) as LinkRow
    return { job, keepMs: link.keepMs ?? Infinity, reason: ends.get(link.parent)?.reason ?? '' }
  })
  await endAll(
    session,
    cancelled.map(({ job, keepMs, reason }) => ({ ...job, to: 'cancelled' as const, keepMs, reason, result: null })),
  )
  return cancelled.map(({ job: { id, name, queue }, reason }) => ({ id, name, queue, reason }))
}

function numbers(rows: readonly object[]): Set<number> {
  return new Set(rows.map((row) => numberOf((row as { readonly ref: unknown }).ref)))
}
