import { waitName } from '../../../job/rules/workflow-commands.js'
import { isFinal } from '../../../job/rules/states.js'
import type { LinkTodoKind } from '../../../job/rules/links.js'
import { callEndOf, goneEnd } from '../../verbs/call-ends.js'
import type { CallEnd, EndedJob } from '../../verbs/call-ends.js'
import { numberOf } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { NewCall } from '../../verbs/workflows.js'
import type { Inbox, InboxRow, EncodedEvent } from '../../workflows.js'
import { arrayOf, finite, textOf } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { encodedOf, readStored, toColumns } from './read.js'

/*
 * The inbox of workflows, and what wakes them. A transaction that sends to a workflow and one that suspends it lock its row
 * in `workflows` first, and read after that: else a row could come into the inbox after the suspension has read it, and
 * find no suspended workflow to wake.
 */

export async function putEvent(
  session: Session,
  ref: number,
  { name, eventId, payload }: EncodedEvent,
): Promise<boolean> {
  const { text, bytes } = toColumns(payload)
  const given = [String(ref), name, eventId, text, bytes, session.nowText]
  return (await session.query(session.queries.putEvent, ...given)).length > 0
}

export async function readInboxes(session: Session, refs: readonly number[]): Promise<Inbox[]> {
  if (refs.length === 0) return []
  const rows = await session.query<StoredInboxRow>(session.queries.readInboxes, arrayOf(refs))
  const inboxes = new Map<number, InboxRow[]>(refs.map((ref) => [ref, []]))
  for (const { ref, number, kind, name, payload, bytes, error, sent_at } of rows)
    inboxes.get(numberOf(ref))?.push({
      number: numberOf(number),
      kind,
      name,
      payload: encodedOf(payload, bytes),
      error,
      sentAt: numberOf(sent_at),
    })
  return [...inboxes].map(([ref, inbox]) => ({ ref, inbox }))
}

interface StoredInboxRow extends Pick<InboxRow, 'kind' | 'name' | 'error'> {
  readonly ref: Numeric
  readonly number: Numeric
  readonly payload: string | null
  readonly bytes: string | null
  readonly sent_at: Numeric
}

/** Locks the rows of workflows that this transaction suspends or sends to. */
export async function lockWorkflows(session: Session, refs: readonly number[]): Promise<void> {
  if (refs.length === 0) return
  const sorted = arrayOf([...new Set(refs)].toSorted((one, other) => one - other))
  await session.query(session.queries.ensureWorkflows, sorted)
  await session.query(session.queries.lockWorkflows, sorted)
}

/**
 * Makes suspended workflows ready and due now; their rows in `workflows` are locked. A row of `waiting` that another
 * transaction has written again meanwhile (`markUnfinishedParents`) is not in the statement's snapshot: the next one sees
 * it.
 */
export async function wakeWorkflows(session: Session, refs: readonly number[]): Promise<number> {
  let [left, woken] = [refs, 0]
  while (left.length > 0) {
    const rows = await session.query<{ ref: Numeric }>(session.queries.wakeWorkflows, session.nowText, arrayOf(left))
    const taken = new Set(rows.map(({ ref }) => numberOf(ref)))
    woken += taken.size
    const others = left.filter((ref) => !taken.has(ref))
    const still =
      others.length === 0 ? [] : await session.query<{ ref: Numeric }>(session.queries.stillSuspended, arrayOf(others))
    left = still.map(({ ref }) => numberOf(ref))
  }
  if (woken > 0) session.note({ ready: true })
  return woken
}

/** Wakes blocked workflows whose time has come. Within a transaction. */
export async function wakeDue(session: Session, now: number, limit: number): Promise<number> {
  const rows = await session.query<{ ref: Numeric }>(session.queries.dueWakes, String(now), String(limit))
  const due = rows.map(({ ref }) => numberOf(ref))
  const woken = await wakeWorkflows(session, due)
  if (woken < due.length) await session.query(session.queries.endWakes, arrayOf(due))
  return woken
}

/** A job that this transaction inserted is marked as a parent. One that existed before is marked as a late parent is. */
export async function linkCall(
  session: Session,
  { caller, called, keepMs }: NewCall,
  watch: (id: string) => Promise<void>,
): Promise<void> {
  if (called.isNew) await session.query(session.queries.markCalled, called.id)
  await session.query(session.queries.addCall, called.id, String(caller), textOf(finite(keepMs)))
  if (!called.isNew) await watch(called.id)
}

/** A job that ended, and its id: its row may be deleted already. */
export type EndedCall = EndedJob & { readonly ref: number; readonly id: string }

/** Writes to-dos that say how called jobs ended, because their rows may be deleted before the to-dos are worked off. */
export async function noteCallEnds(session: Session, ends: readonly EndedCall[]): Promise<void> {
  const called = await calledAmong(
    session,
    ends.map(({ ref }) => ref),
  )
  const noted = ends.filter(({ ref }) => called.has(ref)).map((end) => callColumns(end))
  if (noted.length > 0) await session.query(session.queries.noteCallEnds, session.nowText, JSON.stringify(noted))
}

/** Of these jobs, those that a workflow waits for. */
async function calledAmong(session: Session, refs: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await session.query<{ ref: Numeric }>(session.queries.calledAmong, arrayOf(refs))
  return new Set(rows.map(({ ref }) => numberOf(ref)))
}

function callColumns(end: EndedCall): object {
  const { result, error } = callEndOf(end)
  const { text, bytes } = toColumns(result)
  return { parent: end.ref, id: end.id, what: end.to, result: text, bytes, error }
}

/** A to-do of a job that workflows may have called. */
export interface CallTodo {
  readonly parent: number
  readonly id: string | null
  readonly what: LinkTodoKind | 'wake'
  /** How it ended; null: its row says it. */
  readonly ended: (CallEnd & { readonly at: number }) | null
}

export interface Delivered {
  /** Parents with a caller that another process has locked. */
  readonly stuck: ReadonlySet<number>
  /** Whether there may be more callers than were read. */
  readonly isFull: boolean
  readonly isAny: boolean
}

const NOTHING: Delivered = { stuck: new Set(), isFull: false, isAny: false }

/** Brings the ends of called jobs to the workflows that wait for them, at most `limit`. Locked rows are left for later. */
export async function deliverCalls(session: Session, todos: readonly CallTodo[], limit: number): Promise<Delivered> {
  if (todos.length === 0) return NOTHING
  const called = await calledAmong(
    session,
    todos.map(({ parent }) => parent),
  )
  const ends = await endsOf(
    session,
    todos.filter(({ parent }) => called.has(parent)),
  )
  if (ends.size === 0) return NOTHING
  const wanted = await callersOf(session, [...ends.keys()], limit)
  const waits = await lockCallers(session, [...new Set(wanted.map(({ child }) => child))])
  const free = wanted.filter(({ child }) => waits.has(child))
  if (free.length > 0) await deliver(session, free, ends, waits)
  const stuck = new Set(wanted.filter(({ child }) => !waits.has(child)).map(({ parent }) => parent))
  return { stuck, isFull: wanted.length >= limit, isAny: free.length > 0 }
}

interface Call {
  readonly parent: number
  readonly child: number
}

async function callersOf(session: Session, parents: readonly number[], limit: number): Promise<Call[]> {
  const given = [arrayOf(parents), String(limit)]
  const rows = await session.query<{ parent: Numeric; child: Numeric }>(session.queries.callersOf, ...given)
  return rows.map((row) => ({ parent: numberOf(row.parent), child: numberOf(row.child) }))
}

type CalledEnd = CallEnd & { readonly id: string; readonly at: number }

/** How each of these jobs ended: as its to-do says, else as its row says. A job that has not ended is left out. */
async function endsOf(session: Session, todos: readonly CallTodo[]): Promise<Map<number, CalledEnd>> {
  const ends = new Map<number, CalledEnd>()
  for (const { parent, id, ended } of todos)
    if (ended !== null && id !== null && !ends.has(parent)) ends.set(parent, { ...ended, id })
  const others = todos.filter(({ parent }) => !ends.has(parent))
  if (others.length === 0) return ends
  const refs = arrayOf(others.map(({ parent }) => parent))
  const noted = await session.query<{ parent: Numeric }>(session.queries.notedEnds, refs)
  const elsewhere = new Set(noted.map(({ parent }) => numberOf(parent)))
  const rows = await readStored(
    session,
    others.map(({ parent }) => parent),
  )
  for (const { parent, id, what } of others) {
    const row = rows.get(parent)
    if (elsewhere.has(parent) || (row !== undefined && !isFinal(row.state))) continue
    const end = row === undefined ? goneEnd(what === 'wake' ? 'gone' : what) : callEndOf({ ...row, to: row.state })
    const named = row?.id ?? id
    if (named !== null) ends.set(parent, { ...end, id: named, at: row?.settledAt ?? (await session.now()) })
  }
  return ends
}

/** The callers that could be locked, with what they wait for. */
async function lockCallers(session: Session, refs: readonly number[]): Promise<Map<number, readonly string[]>> {
  const sorted = arrayOf([...refs].toSorted((one, other) => one - other))
  await session.query(session.queries.ensureWorkflows, sorted)
  const given = session.queries.lockFreeWorkflows
  const rows = await session.query<{ ref: Numeric; waits: string | null }>(given, sorted)
  return new Map(rows.map(({ ref, waits }) => [numberOf(ref), JSON.parse(waits ?? '[]') as string[]]))
}

async function deliver(
  session: Session,
  calls: readonly Call[],
  ends: ReadonlyMap<number, CalledEnd>,
  waits: ReadonlyMap<number, readonly string[]>,
): Promise<void> {
  const given = [...new Set(calls.map(({ parent }) => parent))].map((parent) => {
    const { id, at, result, error } = ends.get(parent) as CalledEnd
    const { text, bytes } = toColumns(result)
    return { parent, id, at, result: text, bytes, error }
  })
  const [parents, children] = [calls.map(({ parent }) => parent), calls.map(({ child }) => child)]
  await session.query(session.queries.deliverCalls, JSON.stringify(given), arrayOf(parents), arrayOf(children))
  const isAwaited = ({ parent, child }: Call): boolean =>
    waits.get(child)?.includes(waitName('call', ends.get(parent)?.id ?? '')) === true
  await wakeWorkflows(session, [...new Set(calls.filter(isAwaited).map(({ child }) => child))])
  // A worker that has one of them in hand reads its inbox.
  session.note({ requested: true })
}

/** Wakes workflows to which a caller's transaction has sent an event. Returns those that another process has locked. */
export async function wakeSent(session: Session, refs: readonly number[]): Promise<ReadonlySet<number>> {
  if (refs.length === 0) return new Set()
  const waits = await lockCallers(session, [...new Set(refs)])
  const answered: number[] = []
  for (const [ref, names] of waits)
    if (names.length > 0) {
      const over = await session.query(session.queries.isWaitOver, String(ref), JSON.stringify(names))
      if (over.length > 0) answered.push(ref)
    }
  await wakeWorkflows(session, answered)
  session.note({ requested: true })
  return new Set(refs.filter((ref) => !waits.has(ref)))
}
