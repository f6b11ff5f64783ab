import { isTimed } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import type { Claim, Inserted, SettledJob } from '../../store.js'
import { cancelCalled, stepRowOf, writeChildren } from '../../verbs/workflows.js'
import type { StoredStep } from '../../verbs/workflows.js'
import { runVerb } from '../../verbs/verb.js'
import type { NewStep } from '../../sequences.js'
import type { Inbox, KeptClaim, LogAppend, LogAppended, StepRow, WorkflowEnd, WorkflowLog } from '../../workflows.js'
import type { Session } from '../connection/session.js'
import { apart, countMoves } from './groups.js'
import { readInbox, takeInbox } from './inbox.js'
import { JobSession } from './job-session.js'
import { dropLinks } from './moves.js'
import { stepColumns } from './sequences.js'

/** The logs of claimed workflows. Those whose claim is lost are left out. */
export function readLogs(session: Session, claims: readonly KeptClaim[], now: number): WorkflowLog[] {
  const at = new JobSession(session, now)
  return findLogs(session, claims).map(([claim, found]) => {
    if (found.shape === null) session.statement(session.queries.markWorkflow).run(claim.ref)
    if (found.was_suspended === 1) session.statement(session.queries.clearSuspension).run(claim.ref)
    return readLog(session, at, claim, found)
  })
}

/** The same by reading alone; undefined when there is something to write: workflows that were never suspended need nothing. */
export function readUnsuspended(
  session: Session,
  claims: readonly KeptClaim[],
  now: number,
): WorkflowLog[] | undefined {
  const at = new JobSession(session, now)
  const logs = findLogs(session, claims)
  if (logs.some(([, found]) => found.shape === null || found.was_suspended === 1)) return undefined
  return logs.map(([claim, found]) => readLog(session, at, claim, found))
}

function findLogs(session: Session, claims: readonly KeptClaim[]): [KeptClaim, FoundLog][] {
  const statement = session.statement(session.queries.claimLog)
  return claims.flatMap((claim) => {
    const found = statement.get(claim.ref, claim.fence) as FoundLog | undefined
    return found === undefined ? [] : [[claim, found]]
  })
}

function readLog(session: Session, at: JobSession, { ref, keptFence }: KeptClaim, found: FoundLog): WorkflowLog {
  const { run, first_run, next_no, last_fence } = found
  const isKept = keptFence !== null && keptFence === last_fence
  const rows = isKept ? undefined : found.has_rows === 1 ? readRows(session, at, ref, run) : []
  return {
    ref,
    inbox: found.has_inbox === 1 ? readInbox(session, ref).inbox : [],
    run,
    firstRun: first_run,
    deadlineAt: found.deadline_at,
    retriedAt: found.retried_at,
    nextNo: rows?.reduce((next, { no }) => Math.max(next, (no ?? -1) + 1), next_no) ?? next_no,
    rows,
  }
}

function readRows(session: Session, at: JobSession, ref: number, run: number): StepRow[] {
  const rows = session.statement(session.queries.readLog).all(ref, run) as StoredStep[]
  return rows.map((row) => stepRowOf(at, run, row))
}

interface FoundLog {
  readonly shape: string | null
  readonly was_suspended: number
  readonly run: number
  readonly first_run: number
  readonly last_fence: number | null
  readonly deadline_at: number | null
  readonly next_no: number
  readonly retried_at: number | null
  readonly has_rows: number
  readonly has_inbox: number
}

export function findUnbegun(session: Session, claims: readonly Claim[]): number[] {
  const refs = JSON.stringify(claims.map(({ ref }) => ref))
  return (session.statement(session.queries.findUnbegun).all(refs) as { seq: number }[]).map(({ seq }) => seq)
}

function isHeld(session: Session, { ref, fence }: Claim): boolean {
  return session.statement(session.queries.holdsClaim).get(ref, fence) !== undefined
}

export function readInboxes(session: Session, claims: readonly Claim[]): Inbox[] {
  return claims.map(({ ref }) => readInbox(session, ref))
}

/** Appends to the logs of workflows whose claims go on. A child that is refused undoes its own append alone. */
export function appendSteps(session: Session, appends: readonly LogAppend[], now: number): LogAppended[] {
  return appends.map((append) => {
    if (append.children.length === 0) return appendOne(session, append, now)
    const done = apart(session, () => appendOne(session, append, now))
    return 'error' in done ? { ref: append.ref, held: true, children: [], error: done.error } : done.value
  })
}

function appendOne(session: Session, append: LogAppend, now: number): LogAppended {
  const { ref, fence, rows } = append
  const isRowsOnly = areRowsOnly(append)
  // Rows are written only under the fence: one that was written shows that the claim holds.
  const isWritten = isRowsOnly && writeRows(session, append, rows).includes(true)
  if (!isWritten && !isHeld(session, append)) return { ref, held: false, children: [] }
  const children = isRowsOnly ? [] : writeLog(session, append, append, now)
  if (append.endsStreak) session.statement(session.queries.endStreak).run(ref, fence)
  countMoves(session)
  return { ref, held: true, children }
}

type Written = Pick<LogAppend, 'run' | 'rows' | 'taken' | 'children' | 'cancelled'>

function areRowsOnly({ taken, children, cancelled }: Pick<Written, 'taken' | 'children' | 'cancelled'>): boolean {
  return taken.length + children.length + cancelled.length === 0
}

/** Whether each row was written: not without the claim, and not where it has its answer. */
function writeRows(session: Session, { ref, fence }: Claim, rows: readonly NewStep[]): boolean[] {
  const append = session.statement(session.queries.appendStep)
  return rows.map((row) => Number(append.run(...stepColumns(row), ref, fence).changes) > 0)
}

/** Writes rows under the fence, with the jobs that they call and what they take from the inbox. */
function writeLog(session: Session, claim: Claim, written: Written, now: number): readonly Inserted[] {
  const { ref } = claim
  const at = new JobSession(session, now)
  const { rows, inserted } =
    written.children.length === 0
      ? { rows: written.rows, inserted: [] }
      : runVerb(writeChildren(at, { ...written, ref }))
  const isNew = writeRows(session, claim, rows)
  // An append that is repeated because its reply was lost takes nothing: the number of a taken row is given again.
  const isRepeated = rows.some(({ no }) => no !== null) && !rows.some(({ no }, index) => no !== null && isNew[index])
  if (!isRepeated) takeInbox(session, ref, written.taken)
  if (written.cancelled.length > 0) runVerb(cancelCalled(at, ref, written.cancelled))
  return inserted
}

/** Writes the rows of settlements whose claims still hold: the claim, with which they are guarded, ends after this. */
export function writeLogs(session: Session, settled: readonly SettledJob[], now: number): void {
  for (const job of settled)
    if (job.workflow !== undefined && !isNothing(job.workflow) && isHeld(session, job))
      writeLog(session, job, job.workflow, now)
}

function isNothing(written: Written): boolean {
  return written.rows.length === 0 && areRowsOnly(written)
}

/**
 * The settlement of a workflow with its place: one that is suspended is ready at once when its inbox has what it waits
 * for. Both are in the transaction that reads the inbox, so that no row comes between.
 */
export function placeWorkflow(session: Session, job: SettledJob, now: number): SettledJob {
  const { workflow } = job
  if (workflow?.restarted !== undefined) return { ...job, to: 'ready', delayMs: 0 }
  const suspended = workflow?.suspended
  if (suspended === undefined) return job
  const isOver =
    // All rows, as the other users of this statement read it: libsql gives the row of an earlier `all` to a `get` that finds none.
    session.statement(session.queries.isWaitOver).all(job.ref, JSON.stringify(suspended.waits)).length > 0
  if (isOver || (suspended.wakeAt !== null && suspended.wakeAt <= now)) return { ...job, to: 'ready', delayMs: 0 }
  const isDueThen = isTimed(job.to) && suspended.wakeAt !== null
  return { ...job, delayMs: isDueThen ? suspended.wakeAt - now : 0 }
}

/**
 * What a settlement writes beside the place of the job, once the claim has ended. `wanted`: before a pause altered it;
 * `hasLinks`: whether any job has links.
 */
export function endClaim(
  session: Session,
  job: SettledJob,
  { wanted, hasLinks }: { readonly wanted: State; readonly hasLinks: boolean },
  now: number,
): void {
  const { ref, fence, to, workflow } = job
  if (workflow === undefined) return
  const { queries } = session
  if (workflow.restarted !== undefined) restart(session, ref, workflow, now)
  else if (workflow.suspended !== undefined) suspend(session, { ref, fence }, workflow, { to, wanted }, now)
  else if (to === 'done' || to === 'failed' || to === 'cancelled') {
    if (hasLinks) dropLinks(session, ref)
    if (workflow.forgetFrom !== null) session.statement(queries.putForgetFrom).run(ref, workflow.forgetFrom)
  }
}

function suspend(
  session: Session,
  { ref, fence }: Claim,
  { suspended, deadlineAt }: WorkflowEnd,
  { to, wanted }: { readonly to: State; readonly wanted: State },
  now: number,
): void {
  const { waits, wakeAt } = suspended ?? { waits: [], wakeAt: null }
  const isWaiting = wanted !== 'ready'
  const blockedUntil = isWaiting && wanted === 'blocked' ? wakeAt : null
  session
    .statement(session.queries.suspend)
    .run(
      ref,
      isWaiting ? JSON.stringify(waits) : null,
      blockedUntil,
      isWaiting && to === 'paused' ? wanted : null,
      fence,
      deadlineAt,
    )
  if (blockedUntil !== null && to !== 'paused') session.note({ dueInMs: Math.max(0, blockedUntil - now) })
}

/** The next run begins with an empty log and the new input. The rows of this one are removed later. */
function restart(session: Session, ref: number, { run, restarted, deadlineAt }: WorkflowEnd, now: number): void {
  const { queries } = session
  session.statement(queries.putInput).run(restarted?.input ?? '', restarted?.options ?? null, ref)
  session.statement(queries.addLeftover).run(ref, run, null, now, 0)
  session.statement(queries.restartWorkflow).run(ref, run + 1, deadlineAt)
}
