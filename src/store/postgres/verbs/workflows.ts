import { isTimed } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import { numberOf, numberOrNull } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { Claim, Inserted, NewJob, SettledJob } from '../../store.js'
import { awaitVerb } from '../../verbs/verb.js'
import { cancelCalled, stepRowOf, writeChildren } from '../../verbs/workflows.js'
import type { StoredStep } from '../../verbs/workflows.js'
import type { KeptClaim, LogAppend, LogAppended, StepRow, WorkflowEnd, WorkflowLog } from '../../workflows.js'
import { arrayOf } from '../connection/session.js'
import { lockWorkflows, readInboxes } from './inbox.js'
import type { JobSession } from './job-session.js'
import { toColumns } from './read.js'
import { stepJson } from './sequences.js'

/** The logs of claimed workflows. Those whose claim is lost are left out. */
export async function readLogs(session: JobSession, claims: readonly KeptClaim[]): Promise<WorkflowLog[]> {
  if (claims.length === 0) return []
  const given = JSON.stringify(claims.map(({ ref, fence }) => ({ ref, fence })))
  const stored = (await session.query<StoredSuspension>(session.queries.claimLogs, given)).map(suspensionOf)
  const kept = new Map(claims.map(({ ref, keptFence }) => [ref, keptFence]))
  const isKept = ({ ref, lastFence }: Suspended): boolean => lastFence !== null && kept.get(ref) === lastFence
  const rows = await rowsOf(
    session,
    stored.filter((one) => one.hasRows && !isKept(one)),
  )
  const inboxes = await readInboxes(
    session,
    stored.map(({ ref }) => ref),
  )
  return stored.map((one, index): WorkflowLog => {
    const log = isKept(one) ? undefined : (rows.get(one.ref) ?? [])
    const lastNo = (log ?? []).reduce((last, { no }) => Math.max(last, no ?? -1), -1)
    const { ref, run, deadlineAt, retriedAt } = one
    const nextNo = Math.max(one.nextNo, lastNo + 1)
    return { ref, run, deadlineAt, retriedAt, nextNo, rows: log, inbox: inboxes[index]?.inbox ?? [] }
  })
}

export async function findUnbegun(session: JobSession, claims: readonly Claim[]): Promise<number[]> {
  const refs = arrayOf(claims.map(({ ref }) => ref))
  const rows = await session.query<{ ref: Numeric }>(session.queries.findUnbegun, refs)
  return rows.map(({ ref }) => numberOf(ref))
}

interface StoredSuspension {
  readonly ref: Numeric
  readonly run: Numeric | null
  readonly last_fence: Numeric | null
  readonly deadline_at: Numeric | null
  readonly next_no: Numeric | null
  readonly retried_at: Numeric | null
  readonly has_rows: boolean
}

interface Suspended {
  readonly ref: number
  readonly run: number
  readonly lastFence: number | null
  readonly deadlineAt: number | null
  readonly nextNo: number
  readonly retriedAt: number | null
  readonly hasRows: boolean
}

function suspensionOf(stored: StoredSuspension): Suspended {
  const { ref, run, last_fence, deadline_at, next_no, retried_at, has_rows } = stored
  return {
    ref: numberOf(ref),
    run: numberOf(run ?? 0),
    lastFence: numberOrNull(last_fence),
    deadlineAt: numberOrNull(deadline_at),
    nextNo: numberOf(next_no ?? 0),
    retriedAt: numberOrNull(retried_at),
    hasRows: has_rows,
  }
}

async function rowsOf(session: JobSession, logs: readonly Suspended[]): Promise<Map<number, StepRow[]>> {
  const runs = new Map(logs.map(({ ref, run }) => [ref, run]))
  if (runs.size === 0) return new Map()
  const rows = await session.query<StoredStep & { readonly ref: Numeric }>(
    session.queries.readLogs,
    arrayOf([...runs.keys()]),
    arrayOf([...runs.values()]),
  )
  const read = new Map<number, StepRow[]>()
  for (const row of rows) {
    const ref = numberOf(row.ref)
    const step = stepRowOf(session, runs.get(ref) ?? 0, row)
    const before = read.get(ref)
    if (before === undefined) read.set(ref, [step])
    else before.push(step)
  }
  return read
}

/** The jobs that appends insert: their lanes must exist before the transaction begins. */
export function childrenOf(appends: readonly Pick<LogAppend, 'children'>[]): readonly NewJob[] {
  return appends.flatMap(({ children }) => children.map(({ job }) => job))
}

/** Whether one statement writes these appends: no job is inserted or cancelled. */
export function areRowsOnly(appends: readonly Pick<LogAppend, 'children' | 'cancelled'>[]): boolean {
  return appends.every(({ children, cancelled }) => children.length === 0 && cancelled.length === 0)
}

/** Appends rows alone, by one statement for all. */
export async function appendRows(session: JobSession, appends: readonly LogAppend[]): Promise<LogAppended[]> {
  const held = await writeRows(session, appends)
  for (const { ref, endsStreak } of appends)
    if (endsStreak && held.has(ref)) await session.query(session.queries.endStreak, String(ref))
  return appends.map(({ ref }) => ({ ref, held: held.has(ref), children: [] }))
}

type Written = Pick<LogAppend, 'ref' | 'fence' | 'rows' | 'taken'>

/** Writes rows under the fence; returns the refs whose claims hold. */
async function writeRows(session: JobSession, written: readonly Written[]): Promise<ReadonlySet<number>> {
  const claims = written.map(({ ref, fence }) => ({ ref, fence }))
  const rows = written.flatMap(({ ref, fence, rows: steps }) => steps.map((step) => stepJson({ ref, fence, step })))
  const taken = written.flatMap(({ ref, taken: numbers }) => numbers.map((number) => ({ ref, number })))
  const given = [claims, rows, taken].map((list) => JSON.stringify(list))
  const held = await session.query<{ ref: Numeric }>(session.queries.appendSteps, ...given)
  return new Set(held.map(({ ref }) => numberOf(ref)))
}

/** Appends with jobs that are inserted or cancelled. Within a transaction; a child that is refused undoes its append alone. */
export async function appendSteps(session: JobSession, appends: readonly LogAppend[]): Promise<LogAppended[]> {
  await lockCancelled(session, appends)
  const claims = JSON.stringify(appends.map(({ ref, fence }) => ({ ref, fence })))
  const rows = await session.query<{ ref: Numeric }>(session.queries.shareLeases, claims)
  const held = new Set(rows.map(({ ref }) => numberOf(ref)))
  const answers: LogAppended[] = []
  for (const append of appends)
    answers.push(
      held.has(append.ref) ? await appendApart(session, append) : { ref: append.ref, held: false, children: [] },
    )
  return answers
}

/** Workflows that are cancelled are locked before any lease. */
export async function lockCancelled(
  session: JobSession,
  appends: readonly Pick<LogAppend, 'cancelled'>[],
  others: readonly number[] = [],
): Promise<void> {
  const ids = appends.flatMap(({ cancelled }) => cancelled)
  const rows =
    ids.length === 0 ? [] : await session.query<{ ref: Numeric }>(session.queries.workflowsAmong, JSON.stringify(ids))
  await lockWorkflows(session, [...others, ...rows.map(({ ref }) => numberOf(ref))])
}

async function appendApart(session: JobSession, append: LogAppend): Promise<LogAppended> {
  const { ref, endsStreak } = append
  await session.query(session.queries.savepoint)
  try {
    const children = await writeLog(session, append, append)
    if (endsStreak) await session.query(session.queries.endStreak, String(ref))
    await session.query(session.queries.release)
    return { ref, held: true, children }
  } catch (error) {
    session.groupMoves.take()
    // Where the connection is lost, the first error says so.
    await session.query(session.queries.rollbackTo)
    await session.query(session.queries.release)
    if (append.children.length === 0) throw error
    return { ref, held: true, children: [], error }
  }
}

type LogWrite = Pick<LogAppend, 'run' | 'rows' | 'taken' | 'children' | 'cancelled'>

/** Writes rows, with the jobs that they call and what they take from the inbox. */
async function writeLog(session: JobSession, { ref, fence }: Claim, written: LogWrite): Promise<readonly Inserted[]> {
  const { rows, inserted } =
    written.children.length === 0
      ? { rows: written.rows, inserted: [] }
      : await awaitVerb(writeChildren(session, { ...written, ref }))
  if (rows.length + written.taken.length > 0) await writeRows(session, [{ ref, fence, rows, taken: written.taken }])
  if (written.cancelled.length > 0) await awaitVerb(cancelCalled(session, ref, written.cancelled))
  return inserted
}

/** A settlement of a workflow, whose rows of `workflows` are locked before its lease. */
export async function lockSettled(session: JobSession, settled: readonly SettledJob[]): Promise<void> {
  const ends = settled.filter(isWorkflow)
  if (ends.length === 0) return
  const waiting = ends.filter(({ workflow }) => workflow.suspended !== undefined || workflow.restarted !== undefined)
  await lockCancelled(
    session,
    ends.map(({ workflow }) => workflow),
    waiting.map(({ ref }) => ref),
  )
}

type SettledWorkflow = SettledJob & { readonly workflow: WorkflowEnd }

function isWorkflow(job: SettledJob): job is SettledWorkflow {
  return job.workflow !== undefined
}

/** Writes the rows of settlements under the locks of their leases. */
export async function writeLogs(session: JobSession, settled: readonly SettledJob[]): Promise<void> {
  for (const job of settled) if (isWorkflow(job)) await writeLog(session, job, job.workflow)
}

/**
 * Settlements with the places of workflows: one that is suspended is ready at once when its inbox has what it waits for.
 * The lock of its row in `workflows` keeps others from writing into the inbox until this transaction ends.
 */
export async function placeWorkflows(session: JobSession, settled: readonly SettledJob[]): Promise<SettledJob[]> {
  const placed: SettledJob[] = []
  for (const job of settled) placed.push(isWorkflow(job) ? await placeWorkflow(session, job) : job)
  return placed
}

async function placeWorkflow(session: JobSession, job: SettledWorkflow): Promise<SettledJob> {
  const { suspended, restarted } = job.workflow
  if (restarted !== undefined) return { ...job, to: 'ready', delayMs: 0 }
  if (suspended === undefined) return job
  const waits = JSON.stringify(suspended.waits)
  const isOver = (await session.query(session.queries.isWaitOver, String(job.ref), waits)).length > 0
  return isOver ? { ...job, to: 'ready', delayMs: 0 } : { ...job, delayMs: job.delayMs ?? 0 }
}

/** When a suspended workflow is due, by the store's clock; undefined: the delay of its settlement says it. */
export function dueAtOf({ workflow, to }: SettledJob, wanted: State): number | undefined {
  if (workflow?.suspended === undefined || to === 'ready' || !isTimed(wanted)) return undefined
  return workflow.suspended.wakeAt ?? undefined
}

/** What settlements write beside the places of the jobs. `placed`: before a pause altered them. */
export async function endClaims(
  session: JobSession,
  placed: readonly SettledJob[],
  written: readonly SettledJob[],
): Promise<void> {
  const wanted = new Map(placed.map(({ ref, to }) => [ref, to]))
  const suspended: object[] = []
  for (const job of written) {
    if (!isWorkflow(job)) continue
    const { ref, workflow, to } = job
    if (workflow.restarted !== undefined) await restart(session, ref, workflow)
    else if (workflow.suspended !== undefined) suspended.push(suspension(session, job, wanted.get(ref) ?? to))
    else if (workflow.forgetFrom !== null && to !== 'done')
      await session.query(session.queries.putForgetFrom, String(ref), String(workflow.forgetFrom))
  }
  if (suspended.length > 0) await session.query(session.queries.suspend, JSON.stringify(suspended))
}

function suspension(
  session: JobSession,
  { ref, fence, to, delayMs, workflow }: SettledWorkflow,
  wanted: State,
): object {
  const { waits, wakeAt } = workflow.suspended ?? { waits: [], wakeAt: null }
  const blockedUntil = wanted === 'blocked' ? wakeAt : null
  if (blockedUntil !== null && to !== 'paused') session.note({ dueInMs: delayMs ?? 0 })
  return {
    ref,
    waits: wanted === 'ready' ? null : JSON.stringify(waits),
    wake_at: blockedUntil,
    paused_from: wanted !== 'ready' && to === 'paused' ? wanted : null,
    last_fence: fence,
    deadline_at: workflow.deadlineAt,
  }
}

/** The next run begins with an empty log and the new input. The rows of this one are removed later. */
async function restart(session: JobSession, ref: number, { run, restarted, deadlineAt }: WorkflowEnd): Promise<void> {
  const { text, bytes } = toColumns(restarted?.input ?? '')
  await session.query(session.queries.putInput, String(ref), text, bytes, restarted?.options ?? null)
  await session.run('addLeftover', ref, run, null, session.givenNow, 0)
  await session.run('restartWorkflow', ref, run + 1, deadlineAt)
}
