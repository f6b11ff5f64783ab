import assert from 'node:assert/strict'
import type { WorkflowVerb } from '../../src/job/rules/workflow-commands.js'
import type { NewStep } from '../../src/store/sequences.js'
import type { ClaimedJob, NewJob, SettledJob } from '../../src/store/store.js'
import type {
  InboxRow,
  LogAppend,
  LogAppended,
  NewChild,
  NewEvent,
  Sent,
  StepRow,
  Suspension,
  WorkflowChanged,
  WorkflowEnd,
  WorkflowLog,
} from '../../src/store/workflows.js'
import { only } from './fixture.js'
import type { ContractFixture } from './fixture.js'

/** A worker's and a client's view of workflows, in short methods for the cases. */

export function workflow(b: ContractFixture, change: Partial<NewJob> = {}): Promise<string> {
  return b.one({ shape: 'workflow', ...change })
}

export async function claimOne(b: ContractFixture, worker: string): Promise<ClaimedJob> {
  return only(await b.claim(worker))
}

/** A workflow that a new worker has in hand. */
export async function inHand(b: ContractFixture, change: Partial<NewJob> = {}): Promise<ClaimedJob> {
  await workflow(b, change)
  return claimOne(b, await b.worker())
}

export function answer(no: number, change: Partial<NewStep> = {}): NewStep {
  const row = { run: 0, address: `/step:s${no}#0`, kind: 'step', no, attempt: 1, startedAt: 5, endedAt: 7 }
  return { ...row, since: no, until: null, value: `"v${no}"`, error: null, note: null, ...change }
}

export function open(address: string, change: Partial<NewStep> = {}): NewStep {
  return answer(0, { address, kind: 'sleep', no: null, value: null, ...change })
}

const NOTHING = { run: 0, rows: [], taken: [], children: [], cancelled: [], endsStreak: false }

export async function append(
  b: ContractFixture,
  job: ClaimedJob,
  change: Partial<LogAppend> = {},
): Promise<LogAppended> {
  const { ref, fence, id, name, key } = job
  const [appended] = await b.store.leases.appendSteps([{ ...NOTHING, ref, fence, id, name, key, ...change }])
  assert.ok(appended)
  return appended
}

export function ended(change: Partial<WorkflowEnd> = {}): WorkflowEnd {
  const { endsStreak: _, ...nothing } = NOTHING
  return { ...nothing, deadlineAt: null, forgetFrom: null, ...change }
}

/** Suspends a workflow; returns the refs that were refused. */
export function suspend(
  b: ContractFixture,
  job: ClaimedJob,
  to: SettledJob['to'],
  suspended: Partial<Suspension> = {},
  change: Partial<WorkflowEnd> = {},
): Promise<readonly number[]> {
  const workflowEnd = ended({ suspended: { waits: [], wakeAt: null, ...suspended }, ...change })
  return b.settle(job, { to, attempt: job.attempt, delayMs: 0, workflow: workflowEnd })
}

/** A workflow that has recorded an answer and waits for an event. */
export async function waiting(b: ContractFixture, change: Partial<NewJob> = {}): Promise<ClaimedJob> {
  const job = await inHand(b, change)
  assert.deepEqual(await suspend(b, job, 'blocked', { waits: ['event:go'] }, { rows: [answer(0), WAIT] }), [])
  return job
}

export const WAIT = open('/wait:go#0', { kind: 'wait', since: 1 })

export function send(b: ContractFixture, id: string, change: Partial<NewEvent> = {}): Promise<Sent> {
  return b.store.workflows.sendEvent({ to: { id }, name: 'go', eventId: null, payload: '"p"', ...change })
}

export async function sent(b: ContractFixture, id: string, change: Partial<NewEvent> = {}): Promise<string> {
  return (await send(b, id, change)).did
}

export function command(b: ContractFixture, id: string, verb: WorkflowVerb): Promise<WorkflowChanged> {
  return b.store.workflows.changeWorkflow({ id, verb, reason: `${verb} it`, keepMs: Infinity })
}

export async function log(b: ContractFixture, job: ClaimedJob, keptFence: number | null = null): Promise<WorkflowLog> {
  const [read] = await b.store.leases.readLogs([{ ...job, keptFence }])
  assert.ok(read, 'the claim holds')
  return read
}

export const addresses = (rows: readonly StepRow[] | undefined): string[] | undefined =>
  rows?.map(({ address }) => address)

/** What is in the inbox of a workflow in hand. */
export async function inbox(b: ContractFixture, job: ClaimedJob): Promise<(readonly unknown[])[]> {
  const [read] = await b.store.leases.readInboxes([job])
  return (read?.inbox ?? []).map(({ kind, name, payload, error }: InboxRow) => [kind, name, payload, error])
}

export async function promote(b: ContractFixture): Promise<void> {
  for (let left = 20; left > 0; left -= 1) if (!(await b.store.jobs.promoteJobs(100)).again) return
  assert.fail('the promotion does not end')
}

/** Sweeps until nothing is left to sweep. */
export async function sweepAll(b: ContractFixture): Promise<void> {
  for (let left = 200; left > 0; left -= 1) if (!(await b.store.jobs.sweepRows(3)).more) return
  assert.fail('the sweep does not end')
}

export function child(b: ContractFixture, change: Partial<NewJob> = {}, how: Partial<NewChild> = {}): NewChild {
  const job = b.job({ name: 'child', keepCancelledMs: Infinity, ...change })
  const options = { onDuplicate: 'return', keepCancelledMs: Infinity } as const
  return { address: '/call:child#0', job, options, isAwaited: true, ...how }
}

export const CALL = open('/call:child#0', { kind: 'call' })

/** A workflow that waits for the end of a job that it called, and the id of that job. */
export async function calling(
  b: ContractFixture,
  change: Partial<NewJob> = {},
  how: Partial<NewChild> = {},
): Promise<{ readonly caller: ClaimedJob; readonly called: string }> {
  const caller = await inHand(b)
  const appended = await append(b, caller, { rows: [CALL], children: [child(b, change, how)] })
  const called = appended.children[0]?.id
  assert.ok(called)
  assert.deepEqual(await suspend(b, caller, 'blocked', { waits: [`call:${called}`] }), [])
  return { caller, called }
}

/** Claims the called job. */
export async function claimChild(b: ContractFixture): Promise<ClaimedJob> {
  return only(await b.claim(await b.worker(), { names: ['child'] }))
}
