import type { AuditRecord } from '../../../client/read/audit.js'
import type { WorkerRecord } from '../../../client/read/lists.js'
import type { AttemptRecord, JobRecord } from '../../../job/record.js'
import type { StepRecord, WorkflowRecord } from '../../../job/workflow-record.js'
import type { AttemptShown, FlagShown, JobFields, StepRow } from '../../protocol/jobs.js'
import { isUuid } from '../ids.js'
import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import { sealedError } from '../show/redact.js'
import type { Show } from '../show/redact.js'
import { jobRow } from './job-row.js'
import { ms, workersOf } from './reads.js'
import { timelineOf, triesOf } from './timeline.js'

const FLAGS_MAX = 50
const STEPS_MAX = 200
const RESULT_MAX = 4_000

/** One job: what happened, what is next, and why it waits. Payload, result and logs are parts of their own. */
export async function readJob(parts: Parts, id: string): Promise<MakeView> {
  if (!isUuid(id)) throw new ViewGone(`"${id}" is not the id of a job: an id is a UUID.`)
  const record = await parts.mill.get(id)
  if (record === undefined)
    throw new ViewGone(
      'This job was pruned or never existed. Done jobs are kept for 7 days, unless the app says otherwise.',
    )
  const [why, audit, workers, steps] = await Promise.all([
    parts.mill.why(id),
    parts.mill.audit({ target: `job ${id}`, limit: FLAGS_MAX }),
    workersOf(parts),
    record.workflow === undefined ? [] : parts.mill.steps(id, { limit: STEPS_MAX }),
  ])
  const isWaiting = record.settledAt === undefined && record.state !== 'running'
  const now = parts.world.clock.now()
  return (show) => {
    const isSealed = parts.isSealed(record.job)
    const fields: JobFields = {
      ...jobRow(parts, record, show, isWaiting ? why : undefined),
      ...detailsOf(parts, record, show, isSealed),
      attempts: attemptsOf(record, workers.rows, show, isSealed),
      timeline: timelineOf(record, now, why?.reason),
      flags: audit.rows.map((row) => flagOf(row, show)).toReversed(),
      workflow: record.workflow === undefined ? null : workflowOf(record.workflow),
      sequence: null,
      requested: requestedOf(record, audit.rows),
    }
    return {
      fields,
      rows: steps.map((step) => [step.address, stepRow(step, show, isSealed)]),
      absent: steps.length === STEPS_MAX ? { steps: `Only the first ${STEPS_MAX} steps are shown.` } : {},
    }
  }
}

/** The newest request of the attempt that runs. The trail has it; of a workflow, its record. */
function requestedOf({ state, startedAt, workflow }: JobRecord, rows: readonly AuditRecord[]): JobFields['requested'] {
  if (state !== 'running' || startedAt === undefined) return null
  const found = rows.find(({ verb, at }) => (verb === 'pause' || verb === 'cancel') && at >= startedAt)
  return workflow?.requested ?? (found?.verb as 'cancel' | 'pause' | undefined) ?? null
}

type Details = Pick<
  JobFields,
  | 'crashes'
  | 'after'
  | 'calledBy'
  | 'expiresAt'
  | 'tick'
  | 'lastError'
  | 'logTail'
  | 'encrypted'
  | 'undecoded'
  | 'description'
  | 'trace'
>

function detailsOf(parts: Parts, record: JobRecord, show: Show, isSealed: boolean): Details {
  const { crashes, after, calledBy, expiresAt, tick, error, log, reason, captured, job } = record
  const listed = parts.mill.jobs().find(({ name }) => name === job)
  return {
    crashes,
    after,
    calledBy: calledBy ?? null,
    expiresAt: ms(expiresAt),
    tick: tick === undefined ? null : { schedule: tick.schedule, at: tick.at.getTime() },
    lastError: show.error(isSealed ? sealedError(error) : error),
    logTail: isSealed ? [] : show.lines(log),
    encrypted: isSealed,
    undecoded: record.raw === undefined ? null : show.text(reason),
    description: listed?.description ?? null,
    trace: traceOf(captured),
  }
}

/** The id of a W3C trace context: the second part of `traceparent`. */
function traceOf(captured: JobRecord['captured']): string | null {
  const { trace } = captured as { readonly trace?: unknown }
  const parent =
    typeof trace === 'string' ? trace : (trace as { readonly traceparent?: unknown } | undefined)?.traceparent
  return typeof parent === 'string' ? (/^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(parent)?.[1] ?? null) : null
}

function attemptsOf(
  record: JobRecord,
  workers: readonly WorkerRecord[],
  show: Show,
  isSealed: boolean,
): readonly AttemptShown[] {
  const hostOf = (id: string): string | null => workers.find((worker) => worker.id === id)?.host ?? null
  const ended = triesOf(record).map((attempt: AttemptRecord, i): AttemptShown => {
    const { startedAt, endedAt, worker, error, exit, log } = attempt
    return {
      number: i + 1,
      startedAt: startedAt.getTime(),
      endedAt: endedAt.getTime(),
      worker,
      host: hostOf(worker),
      error: show.error(isSealed ? sealedError(error) : error),
      exit: exit ?? null,
      logLines: log?.length ?? 0,
    }
  })
  if (record.state !== 'running' || record.startedAt === undefined) return ended
  const now: AttemptShown = {
    number: ended.length + 1,
    startedAt: record.startedAt.getTime(),
    endedAt: null,
    worker: record.worker ?? '',
    host: record.worker === undefined ? null : hostOf(record.worker),
    error: null,
    exit: null,
    logLines: record.log?.length ?? 0,
  }
  return [...ended, now]
}

function flagOf({ at, verb, actor, before, after, reason }: AuditRecord, show: Show): FlagShown {
  return { at: at.getTime(), verb, actor, before: before ?? null, after: after ?? null, reason: show.text(reason) }
}

function workflowOf({ run, answers, waitingFor, warnings, unread, requested }: WorkflowRecord): JobFields['workflow'] {
  return {
    run,
    answers,
    waitingFor: waitingFor.map(({ address, kind, name, until, event, job }) => ({
      address,
      kind,
      name,
      until: ms(until),
      event: event ?? null,
      job: job ?? null,
    })),
    warnings,
    unread,
    requested: requested ?? null,
  }
}

function stepRow(step: StepRecord, show: Show, isSealed: boolean): StepRow {
  const {
    address,
    name,
    kind,
    state,
    attempt,
    startedAt,
    endedAt,
    until,
    result,
    error,
    log,
    child,
    foreign,
    unknown,
  } = step
  return {
    address,
    parent: parentOf(address),
    name,
    kind,
    state,
    attempt,
    startedAt: startedAt.getTime(),
    endedAt: ms(endedAt),
    until: ms(until),
    result: result === undefined || isSealed ? null : show.value(result, 'result', RESULT_MAX),
    error: show.error(isSealed ? sealedError(error) : error),
    log: isSealed ? [] : show.lines(log),
    child: child ?? null,
    foreign: foreign === true,
    unknown: unknown === true,
  }
}

/** The scope of an address is that of its branch: `scope/kind:name#n`. */
function parentOf(address: string): string | null {
  const at = address.lastIndexOf('/')
  return at <= 0 ? null : address.slice(0, at)
}
