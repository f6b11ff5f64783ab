import type { Codec } from '../../codec/codec.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import { InvalidOptionsError, JobGoneError, NotAWorkflowError } from '../../errors.js'
import { checkFields } from '../../job/definition/check-fields.js'
import { isCount } from '../../job/definition/check-options.js'
import type { ActingSteps, StepRecord, WorkflowRecord } from '../../job/workflow-record.js'
import type { Store } from '../../store/store.js'
import type { StepRow, WorkflowRecordRow } from '../../store/workflows.js'
import { canBeId } from '../check-arguments.js'
import { UNWOUND } from '../../workflow/log-row.js'
import { decodeStored } from '../read/records.js'

/** The page of `mill.steps`. */
export interface StepsOptions {
  /** The last address that was read. */
  readonly after?: string | undefined
  /** The most steps to return, at most 1,000. Default 100. */
  readonly limit?: number | undefined
}

const STEPS_LIMIT = 100
/** The most steps of one page: each may have a result of a megabyte. */
const STEPS_LIMIT_MAX = 1_000

export interface StepParts {
  readonly store: Store
  readonly codecOf: (name: string) => Codec
}

export async function readSteps(parts: StepParts, id: string, options: StepsOptions = {}): Promise<StepRecord[]> {
  const problems = checkFields(options, '', STEPS_OPTIONS)
  if (problems.length > 0) throw new InvalidOptionsError('steps()', problems)
  if (!canBeId(id)) throw new JobGoneError(String(id))
  const limit = options.limit ?? STEPS_LIMIT
  const page = await parts.store.workflows.readSteps(id, options.after, limit)
  if (page === undefined) throw new JobGoneError(id)
  if (!page.isWorkflow) throw new NotAWorkflowError(id, page.name)
  const records = page.rows.map((row) => toStepRecord(row, page.name, parts.codecOf))
  return page.rows.length < limit ? withActing(records, page.rows, await readActing(parts, id)) : records
}

/** The steps that act, by the last report of the worker. */
async function readActing({ store }: StepParts, id: string): Promise<ActingSteps | undefined> {
  const [row] = await store.jobs.readJobs([id])
  if (row?.state !== 'running' || row.progress === null) return undefined
  return (JSON.parse(row.progress) as { readonly acting?: ActingSteps }).acting
}

/**
 * The report may be older than the log: a step that it names may have been answered since, by a row of this page, or of one
 * before it. In the second case the report is too old to be of use.
 */
function withActing(records: StepRecord[], rows: readonly StepRow[], acting: ActingSteps | undefined): StepRecord[] {
  const first = rows[0]?.no ?? 0
  if (acting === undefined || first > acting.answers || rows.some(({ run }) => run !== acting.run)) return records
  const answered = new Set(rows.flatMap(({ no, address }) => (no === null ? [] : [address])))
  const shown = acting.steps
    .filter(({ address }) => !answered.has(address))
    .map(({ address, attempt, startedAt }): StepRecord => {
      const { kind, name } = namedIn({ address, kind: 'step', error: null })
      return { address, kind, name, state: 'open', attempt, startedAt: new Date(startedAt) }
    })
  return [...records.filter(({ address }) => shown.every((step) => step.address !== address)), ...shown]
}

const STEPS_OPTIONS = {
  fields: {
    after: (value: unknown) => (typeof value === 'string' ? undefined : 'must be the address of a step'),
    limit: isCount(1, STEPS_LIMIT_MAX),
  },
}

/** The parts of a note that records show. The worker writes it. */
interface ShownNote {
  readonly log?: readonly string[] | undefined
  readonly child?: string | undefined
  readonly event?: string | undefined
  readonly foreign?: boolean | undefined
  readonly unknown?: boolean | undefined
  readonly warnings?: readonly string[] | undefined
}

function noteOf(note: string | null): ShownNote {
  return note === null ? {} : (JSON.parse(note) as ShownNote)
}

function toStepRecord(row: StepRow, job: string, codecOf: StepParts['codecOf']): StepRecord {
  const { address, attempt, startedAt, answeredAt, until } = row
  const { kind, name } = namedIn(row)
  const { log, child, foreign, unknown } = noteOf(row.note)
  // The result of a called job was encoded with its own codec.
  const codec = codecOf(kind === 'call' ? name : job)
  const result = row.value === null ? undefined : decodeStored(codec, row.value)
  return {
    address,
    name,
    kind,
    state: stateOf(row),
    attempt,
    startedAt: new Date(startedAt),
    ...(answeredAt === null ? {} : { endedAt: new Date(Math.max(startedAt, answeredAt)) }),
    ...(until === null || until === undefined ? {} : { until: new Date(until) }),
    ...(result?.ok === true ? { result: result.value } : {}),
    ...(row.error === null || isMark(row) ? {} : { error: JSON.parse(row.error) as ErrorRecord }),
    ...(log === undefined ? {} : { log }),
    ...(child === undefined ? {} : { child }),
    ...(foreign === true ? { foreign } : {}),
    ...(unknown === true ? { unknown } : {}),
  }
}

/** A cancel or the deadline, as an answer of its own. Its error is the reason of the cancel, as plain text. */
function isMark({ kind }: Pick<StepRow, 'kind'>): boolean {
  return kind === 'cancel' || kind === 'deadline'
}

function stateOf(row: StepRow): StepRecord['state'] {
  const { no, kind, error, attempt } = row
  if (no !== null) return error === null || isMark(row) ? 'done' : 'failed'
  if (kind === UNWOUND) return 'failed'
  return attempt > 0 ? 'retrying' : 'open'
}

/** The kind and the name in an address: `scope/kind:name#n`. */
function namedIn(row: Pick<StepRow, 'address' | 'kind' | 'error'>): { readonly kind: string; readonly name: string } {
  const { address, kind, error } = row
  if (isMark(row)) return { kind: address, name: error ?? '' }
  const found = /\/([a-z]+):([^/]*)#\d+$/.exec(address)
  if (found === null) return { kind, name: address }
  const [, named = kind, name = ''] = found
  return {
    kind: named,
    name: name.replaceAll(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
  }
}

export function toWorkflowRecord(row: WorkflowRecordRow): WorkflowRecord {
  const waiting = row.open.filter(({ kind }) => kind !== UNWOUND)
  const warnings = [...new Set(row.warned.flatMap((note) => noteOf(note).warnings ?? []))]
  const requested = row.isCancelRequested ? 'cancel' : row.isPauseRequested ? 'pause' : undefined
  return {
    run: row.run,
    answers: row.answers,
    waitingFor: waiting.map(toWaitingFor),
    warnings,
    unread: row.unread,
    ...(requested === undefined ? {} : { requested }),
  }
}

function toWaitingFor(row: StepRow): WorkflowRecord['waitingFor'][number] {
  const { kind, name } = namedIn(row)
  const { child, event } = noteOf(row.note)
  return {
    address: row.address,
    kind,
    name,
    ...(row.until === null || row.until === undefined ? {} : { until: new Date(row.until) }),
    ...(kind === 'wait' ? { event: event ?? name } : {}),
    ...(child === undefined ? {} : { job: child }),
  }
}
