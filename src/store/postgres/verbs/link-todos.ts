import { decideLink, parentFateOf, policiesMovedBy, parentReason } from '../../../job/rules/links.js'
import type { ParentFate, LinkPolicy, LinkTodoKind } from '../../../job/rules/links.js'
import type { CancelledByParent } from '../../links.js'
import { numberOf, numberOrNull } from '../connection/executor.js'
import { countMoves } from './groups.js'
import { freeJobs, parentsByRef } from './links.js'
import type { StandingParent } from './link-rows.js'
import { endAll } from './moves.js'
import { readStanding } from './read.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'

/*
 * Working off what the ends of parents change. Two ends that commit at once do not see each other, so nobody decides in an
 * ending transaction that it was the last: each leaves a to-do, and whoever works it off looks at the truth with a fresh
 * statement, under the lock of the child. Nothing here waits: what somebody has locked is left for the next round.
 */

export interface WorkedOff {
  readonly cancelledByParents: readonly CancelledByParent[]
  /** Whether anything was done. */
  readonly moved: boolean
  /** To-dos are left. */
  readonly left: boolean
}

interface Todo {
  readonly number: number
  readonly parent: number
  readonly id: string | null
  readonly what: LinkTodoKind
}

export async function workOffLinks(s: Session, limit: number): Promise<WorkedOff> {
  const rows = await s.query<Record<'number' | 'parent', unknown> & Pick<Todo, 'id' | 'what'>>(
    s.queries.nextTodos,
    String(limit),
  )
  const todos = rows.map((row) => ({ ...row, number: numberOf(row.number), parent: numberOf(row.parent) }))
  const seen = await lookAtParents(s, todos)
  const ripe = todos.filter((todo) => !mayGoOn(todo) || seen.has(todo.parent))
  const ends = await endsOf(s, ripe)
  const { stuck, calledOff, isFull, moved } = await moveLinks(s, ends, limit)
  const over = ripe.filter((todo) => !isFull && !stuck.has(todo.parent)).map((todo) => todo.number)
  if (over.length > 0) await s.query(s.queries.dropTodos, arrayOf(over))
  await countMoves(s)
  const left = (await s.query(s.queries.anyTodo)).length > 0
  return { cancelledByParents: calledOff, moved: moved || over.length > 0, left }
}

/**
 * Parents that were unfinished when a child came. Each is marked, so that its end is told; and no claim may have it without
 * seeing the mark: out of the line and in again it is a new row, which only a claim can see that also sees the mark; in
 * a worker's hand its lease is marked as asked, as for a wish. Gives those it got hold of.
 */
async function lookAtParents(s: Session, todos: readonly Todo[]): Promise<Set<number>> {
  const refs = [...new Set(todos.filter(mayGoOn).map((todo) => todo.parent))]
  if (refs.length === 0) return new Set()
  const marked = numbers(await s.query(s.queries.markParents, arrayOf(refs)))
  const standing = await readStanding(s, [...marked])
  const at = (place: string): string =>
    arrayOf([...standing.values()].filter((job) => job.place === place).map((job) => job.ref))
  const inLine = await s.query<{ ref: unknown }>(s.queries.takeLine, at('ready'))
  if (inLine.length > 0) await s.query(s.queries.putReady, JSON.stringify(inLine))
  const aside = await s.query<{ ref: unknown }>(s.queries.takeAside, at('waiting'))
  if (aside.length > 0) await s.query(s.queries.putWaiting, JSON.stringify(aside))
  const ended = await s.query<{ ref: unknown }>(s.queries.lockEnds, at('history'))
  const held = await askHolders(
    s,
    [...standing.values()].filter((job) => job.place === 'lease'),
  )
  const gone = await missing(
    s,
    refs.filter((ref) => !marked.has(ref)),
  )
  return new Set([...numbers([...inLine, ...aside, ...ended]), ...held, ...gone])
}

function mayGoOn({ what }: Todo): boolean {
  return what !== 'done' && what !== 'gone'
}

/** Who ends one of them holds the lease meanwhile: behind the lock it is still there, or it has ended. */
async function askHolders(
  s: Session,
  jobs: readonly { readonly ref: number; readonly fence: number | null }[],
): Promise<number[]> {
  if (jobs.length === 0) return []
  const fences = [...new Set(jobs.map((job) => job.fence))]
  const rows = await s.query<{ fence: unknown }>(s.queries.lockFreeLeases, arrayOf(fences))
  const locked = rows.map((row) => numberOf(row.fence))
  const now = await readStanding(
    s,
    jobs.map((job) => job.ref),
  )
  const held = [...now.values()].filter((job) => job.place === 'lease' && locked.includes(job.fence as number))
  if (held.length > 0) await s.query(s.queries.askLeases, arrayOf([...new Set(held.map((job) => job.fence))]))
  return held.map((job) => job.ref)
}

/** Not marked because it is no longer there, and not because somebody has it. */
async function missing(s: Session, refs: readonly number[]): Promise<number[]> {
  const there = await parentsByRef(s, refs)
  return refs.filter((ref) => !there.has(ref))
}

interface Ended {
  readonly parent: number
  readonly fate: ParentFate
  readonly reason: string
}

async function endsOf(s: Session, todos: readonly Todo[]): Promise<Map<number, Ended>> {
  const now = await parentsByRef(s, [...new Set(todos.map((todo) => todo.parent))])
  const ends = new Map<number, Ended>()
  const told = await toldElsewhere(
    s,
    todos.filter((todo) => !now.has(todo.parent)),
  )
  for (const todo of todos) {
    const { parent, id, what } = todo
    const row: StandingParent | undefined = now.get(parent)
    const fate = parentFateOf(row?.state, what)
    // Of several to-dos of one that is gone, the one that says it was done says what became of it.
    if (ends.get(parent)?.fate === 'done' || (mayGoOn(todo) && told.has(parent))) continue
    ends.set(parent, { parent, fate, reason: parentReason(fate, { id: row?.id ?? id, name: row?.name ?? null }) })
  }
  return ends
}

/** Who forgot a parent has said what it was: that to-do counts, whoever works it off. */
async function toldElsewhere(s: Session, todos: readonly Todo[]): Promise<Set<number>> {
  const older = todos.filter(mayGoOn).map((todo) => todo.parent)
  if (older.length === 0) return new Set()
  const rows = await s.query<{ parent: unknown }>(s.queries.forgottenAmong, arrayOf(older))
  return new Set(rows.map((row) => numberOf(row.parent)))
}

interface LinkRow {
  readonly parent: number
  readonly child: number
  readonly onFailure: LinkPolicy
  readonly keepMs: number | null
}

interface MovedLinks {
  /** Parents of which a child is in somebody's hands. */
  readonly stuck: ReadonlySet<number>
  readonly calledOff: readonly CancelledByParent[]
  /** There may be more than were looked at. */
  readonly isFull: boolean
  readonly moved: boolean
}

async function moveLinks(s: Session, ends: ReadonlyMap<number, Ended>, limit: number): Promise<MovedLinks> {
  const links = await readLinks(s, [...ends.values()], limit)
  if (links.length === 0) return { stuck: new Set(), calledOff: [], isFull: false, moved: false }
  const children = arrayOf([...new Set(links.map((link) => link.child))])
  const locked = numbers(await s.query(s.queries.lockChildren, children))
  const busy = numbers(await s.query(s.queries.anyChildren, children))
  for (const child of locked) busy.delete(child)
  const free = links.filter((link) => !busy.has(link.child))
  const verdict = (link: LinkRow): string => decideLink(ends.get(link.parent)?.fate ?? 'unfinished', link.onFailure)
  const cancelled = free.filter((link) => verdict(link) === 'cancels' && locked.has(link.child))
  await resolve(
    s,
    free.filter((link) => !cancelled.includes(link)),
  )
  const calledOff = await callOff(s, cancelled, ends)
  const stuck = new Set(links.filter((link) => busy.has(link.child)).map((link) => link.parent))
  return { stuck, calledOff, isFull: links.length >= limit, moved: free.length > 0 }
}

async function readLinks(s: Session, ends: readonly Ended[], limit: number): Promise<LinkRow[]> {
  const asked = ends
    .filter(({ fate }) => policiesMovedBy(fate).length > 0)
    .map(({ parent, fate }) => ({ parent, policies: policiesMovedBy(fate).join(' ') }))
  if (asked.length === 0) return []
  const rows = await s.query<Record<'parent' | 'child' | 'keep_ms', unknown> & { on_failure: LinkPolicy }>(
    s.queries.movedLinks,
    JSON.stringify(asked),
    String(limit),
  )
  return rows.map((row) => ({
    parent: numberOf(row.parent),
    child: numberOf(row.child),
    onFailure: row.on_failure,
    keepMs: numberOrNull(row.keep_ms),
  }))
}

/** Whether a child waits for anybody else is asked under its lock, by a statement that sees what those before it removed. */
async function resolve(s: Session, links: readonly LinkRow[]): Promise<void> {
  if (links.length === 0) return
  const children = arrayOf(links.map((link) => link.child))
  await s.query(s.queries.resolveLinks, arrayOf(links.map((link) => link.parent)), children)
  await freeJobs(s, children)
}

async function callOff(
  s: Session,
  links: readonly LinkRow[],
  ends: ReadonlyMap<number, Ended>,
): Promise<CancelledByParent[]> {
  const first = new Map<number, LinkRow>()
  for (const link of links) if (!first.has(link.child)) first.set(link.child, link)
  if (first.size === 0) return []
  const jobs = [...(await readStanding(s, [...first.keys()])).values()]
  await s.query(s.queries.takeAside, arrayOf(jobs.map((job) => job.ref)))
  for (const job of jobs) s.tally.leave(job, job.state)
  const called = jobs.map((job) => {
    const link = first.get(job.ref) as LinkRow
    return { job, keepMs: link.keepMs ?? Infinity, reason: ends.get(link.parent)?.reason ?? '' }
  })
  await endAll(
    s,
    called.map(({ job, keepMs, reason }) => ({ ...job, to: 'cancelled' as const, keepMs, reason, result: null })),
  )
  return called.map(({ job: { id, name, queue }, reason }) => ({ id, name, queue, reason }))
}

function numbers(rows: readonly object[]): Set<number> {
  return new Set(rows.map((row) => numberOf((row as { readonly ref: unknown }).ref)))
}
