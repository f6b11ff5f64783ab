import type { Encoded } from '../../../job/rules/outcome.js'
import type { State } from '../../../job/rules/states.js'
import { waitName } from '../../../job/rules/workflow-commands.js'
import type { CallEnd } from '../../verbs/call-ends.js'
import type { Inbox, InboxRow, EncodedEvent } from '../../workflows.js'
import { toEncoded } from '../connection/driver.js'
import type { Session } from '../connection/session.js'

/*
 * The inbox of workflows, and what wakes them. There is one writer at a time, so a row is written and its workflow woken in
 * one transaction, and no suspension can come between.
 */

export function putEvent(
  session: Session,
  ref: number,
  { name, eventId, payload }: EncodedEvent,
  now: number,
): boolean {
  return putInbox(session, ref, ['event', name, eventId, payload, null, now])
}

type InboxColumns = readonly [
  kind: InboxRow['kind'],
  name: string | null,
  id: string | null,
  payload: Encoded | null,
  error: string | null,
  sentAt: number,
]

function putInbox(session: Session, ref: number, columns: InboxColumns): boolean {
  return session.statement(session.queries.putInbox).get(ref, ...columns) !== undefined
}

export function readInbox(session: Session, ref: number): Inbox {
  const rows = session.statement(session.queries.readInbox).all(ref) as StoredInboxRow[]
  return {
    ref,
    inbox: rows.map(({ number, kind, name, payload, error, sent_at }) => ({
      number,
      kind,
      name,
      payload: payload === null ? null : toEncoded(payload),
      error,
      sentAt: sent_at,
    })),
  }
}

interface StoredInboxRow extends Omit<InboxRow, 'sentAt'> {
  readonly sent_at: number
}

export function takeInbox(session: Session, ref: number, numbers: readonly number[]): void {
  if (numbers.length === 0) return
  const list = JSON.stringify(numbers)
  for (const sql of [session.queries.takeInbox, session.queries.markTaken]) session.statement(sql).run(ref, list)
}

/** Makes suspended workflows ready and due now. Returns how many. */
export function wakeWorkflows(session: Session, refs: readonly number[], now: number): number {
  let woken = 0
  for (const ref of refs) {
    const member = session.statement(session.queries.suspendedMember).get(ref) as SuspendedMember | undefined
    const { changes } = session.statement(session.queries.wakeWorkflow).run(now, now, ref)
    if (Number(changes) === 0 || member === undefined) continue
    woken += 1
    session.groupMoves.leave(member, member.state)
    session.groupMoves.enter(member, 'ready')
    session.statement(session.queries.endWaits).run(ref)
    session.note({ ready: true })
  }
  return woken
}

interface SuspendedMember {
  readonly state: State
  readonly group: string | null
  readonly queue: string
}

/** Wakes blocked workflows whose time has come. Returns how many. */
export function wakeDue(session: Session, limit: number, now: number): number {
  const due = session.statement(session.queries.dueWakes).all(now, limit) as { seq: number }[]
  const woken = wakeWorkflows(
    session,
    due.map(({ seq }) => seq),
    now,
  )
  // A workflow that another command has moved since wakes by itself: its time must not be found again.
  if (woken < due.length) for (const { seq } of due) session.statement(session.queries.endWaits).run(seq)
  return woken
}

/** Brings the end of a called job to at most `limit` of the workflows that wait for it. Returns how many they were. */
export function deliverCallEnd(
  session: Session,
  called: string,
  end: CallEnd & { readonly at: number },
  limit: number,
  now: number,
): number {
  const callers = session.statement(session.queries.callersOf).all(called, limit) as Caller[]
  for (const { child, waits } of callers) {
    session.statement(session.queries.dropCall).all(child, called)
    putInbox(session, child, ['call', called, null, end.result, end.error, end.at])
    const isAwaited = waits !== null && (JSON.parse(waits) as string[]).includes(waitName('call', called))
    if (isAwaited) wakeWorkflows(session, [child], now)
  }
  // A worker that has one of them in hand reads its inbox.
  if (callers.length > 0) session.note({ requested: true })
  return callers.length
}

interface Caller {
  readonly child: number
  readonly waits: string | null
}
