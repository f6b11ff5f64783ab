import type { Codec } from '../codec/codec.js'
import { describeError, reviveError } from '../codec/error-text.js'
import type { ErrorRecord } from '../codec/error-text.js'
import {
  JobCancelledError,
  JobFailedError,
  JobGoneError,
  StepFailedError,
  StepResultError,
  TimeoutError,
} from '../errors.js'
import type { Encoded, Outcome } from '../job/rules/outcome.js'
import type { NewStep } from '../store/sequences.js'
import type { CallFailure, InboxRow, StepRow } from '../store/workflows.js'
import type { Operation } from './operation.js'

/** The note of a row, as JSON. Everything in it is optional, because most rows need none. */
export interface LogNote {
  /** The lines logged since the row before, and those of the step. */
  readonly log?: readonly string[] | undefined
  /** The child that a call or an enqueue inserted; `isOld`: it existed before. */
  readonly child?: string | undefined
  readonly isOld?: boolean | undefined
  /** Of a wait whose name is not that of its event. */
  readonly event?: string | undefined
  /** It was called after something that is not of `w`. */
  readonly foreign?: boolean | undefined
  /** A cancelled step did not return: whether it acted is not known. */
  readonly unknown?: boolean | undefined
  /** A step that its scope's end aborted and that threw: it rejects with the reason of that end. */
  readonly unwound?: boolean | undefined
  /** The act succeeded and its result could not be recorded. */
  readonly unrecorded?: boolean | undefined
  /** The versions first read since the row before. */
  readonly versions?: Readonly<Record<string, number>> | undefined
  /** In the first row of a run: when the run began. */
  readonly beganAt?: number | undefined
  /** The instant of an operation whose branch has ended, should a retry continue it. */
  readonly until?: number | undefined
  readonly warnings?: readonly string[] | undefined
}

/** The kind of an open row whose operation was rejected by the end of its branch or of the workflow: nothing waits for it. */
export const UNWOUND = 'unwound'
/** The addresses of a cancel and of a passed deadline in the log. */
export const CANCEL = '!cancel'
export const DEADLINE = '!deadline'

export function readNote(note: string | null): LogNote {
  return note === null ? {} : (JSON.parse(note) as LogNote)
}

export function writeNote(note: LogNote): string | null {
  for (const value of Object.values(note)) if (value !== undefined) return JSON.stringify(note)
  return null
}

/** The row of an operation: open when `no` is null, else with its answer. */
export function rowOf(
  operation: Operation,
  run: number,
  no: number | null,
  at: number,
  answer: Pick<NewStep, 'value' | 'error'> = { value: null, error: operation.lastError },
): NewStep {
  const { address, kind, since, attempt, calledAt, note } = operation
  const until = no === null ? operation.until : null
  return {
    run,
    address,
    kind,
    no,
    since,
    until,
    attempt,
    startedAt: calledAt,
    endedAt: at,
    note: writeNote(note),
    value: answer.value,
    error: answer.error,
  }
}

/** The open row of an operation that was rejected without an answer. */
export function unwoundRow(operation: Operation, run: number, at: number): NewStep {
  const until = operation.until ?? undefined
  const row = rowOf({ ...operation, note: { ...operation.note, until } }, run, null, at)
  return { ...row, kind: UNWOUND, until: null }
}

export function asStored(row: NewStep): StepRow {
  const { run, address, kind, no, since, until, attempt, startedAt, endedAt, note, value, error } = row
  const answeredAt = no === null ? null : endedAt
  // Every field is named: a spread takes ten times as long, and there is one for each step.
  return { run, address, kind, no, since, until, attempt, startedAt, endedAt, note, value, error, answeredAt }
}

/** What an act recorded: a value, or the error that rejects the operation. */
export function actedAnswer(operation: Operation, outcome: Outcome): Pick<NewStep, 'value' | 'error'> {
  if (outcome.kind === 'succeeded' && outcome.note === undefined) return { value: outcome.result, error: null }
  if (outcome.kind === 'succeeded') {
    operation.note = { ...operation.note, unrecorded: true }
    return {
      value: null,
      error: JSON.stringify({ name: 'StepResultError', message: outcome.note, code: 'E_STEP_RESULT' }),
    }
  }
  const error = 'error' in outcome && outcome.error !== null ? outcome.error : NO_ERROR
  return { value: null, error: JSON.stringify(error) }
}

const NO_ERROR: ErrorRecord = { name: 'Error', message: 'it did not return after its signal was aborted' }

/** The answer of a call: the result of the job, or how it ended otherwise. */
export function calledAnswer({ payload, error }: InboxRow, name: string, id: string): Pick<NewStep, 'value' | 'error'> {
  if (error === null) return { value: payload, error: null }
  return { value: null, error: JSON.stringify(describeError(callError(JSON.parse(error) as CallFailure, name, id))) }
}

function callError({ kind, error }: CallFailure, name: string, id: string): Error {
  switch (kind) {
    case 'failed': {
      const record = error === undefined ? undefined : (JSON.parse(error) as ErrorRecord)
      const cause = record === undefined ? undefined : reviveError(record)
      return new JobFailedError(id, name, record?.message ?? 'without an error', cause)
    }
    case 'cancelled':
      return new JobCancelledError(id, name, error ?? 'cancelled')
    case 'gone':
      return new JobGoneError(id)
    case 'result-not-kept':
      return new StepResultError(name, error ?? 'the result of the job was not kept')
    default:
      return kind satisfies never
  }
}

/** The value that a recorded answer gives; it throws when the codec cannot read it. */
export function valueOf(operation: Operation, row: StepRow, codec: (name: string) => Codec): unknown {
  const { deed } = operation
  if (deed.kind === 'sleep') return undefined
  if (deed.kind === 'enqueue') return { id: readNote(row.note).child }
  if (row.value === null) return undefined
  const name = deed.kind === 'call' ? (typeof deed.job === 'string' ? deed.job : deed.job.name) : ''
  return codec(name).decode(row.value)
}

/** The error that a recorded answer rejects with: the same live and on replay, and never of the class that was thrown. */
export function errorOf(operation: Operation, row: StepRow): Error {
  const record = JSON.parse(row.error as string) as ErrorRecord
  const { name } = operation
  if (record.code === 'E_STEP_RESULT' && (operation.kind === 'call' || readNote(row.note).unrecorded === true))
    return new StepResultError(name, record.message)
  if (operation.kind === 'wait') return new TimeoutError(record.message)
  if (operation.kind === 'call' || operation.kind === 'enqueue') return calledError(record)
  return new StepFailedError(name, row.attempt, reviveError(record))
}

function calledError(record: ErrorRecord): Error {
  const { code, props, message, cause } = record
  const id = String(props?.['jobId'] ?? '')
  if (code === 'E_JOB_GONE') return new JobGoneError(id)
  const made =
    code === 'E_JOB_FAILED'
      ? new JobFailedError(id, '', '', cause === undefined ? undefined : reviveError(cause))
      : code === 'E_JOB_CANCELLED'
        ? new JobCancelledError(id, '', String(props?.['reason'] ?? ''))
        : undefined
  if (made === undefined) return reviveError(record)
  made.message = message
  return made
}

/** The bytes of an answer, for the limit of a log. */
export function bytesOf({ value, error }: { readonly value: Encoded | null; readonly error: string | null }): number {
  const size = value === null ? 0 : typeof value === 'string' ? value.length : value.byteLength
  return size + (error?.length ?? 0)
}
