/**
 * Every public error, each with a stable `code` that has an anchor in docs/errors.md.
 * A message names the subject, what was expected, what was passed, and what to try.
 */

/** One problem of the arguments of a call. */
export interface Problem {
  /** The path of the wrong value: `options.retry.limit`, `payloads[3].to`. */
  readonly path: string
  /** What was expected, what was passed and what to try, in one sentence. */
  readonly message: string
}

/** The base of every error Millrace throws; `code` is stable and documented. */
export class MillraceError extends Error {
  readonly code: string
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** The options of a call are invalid. `problems` lists every problem; nothing was written. */
export class InvalidOptionsError extends MillraceError {
  readonly problems: readonly Problem[]
  constructor(subject: string, problems: readonly Problem[]) {
    super('E_INVALID_OPTIONS', describe(subject, problems))
    this.problems = problems
  }
}

/** The job's check refused a payload, or it cannot be encoded. Nothing was written. */
export class InvalidPayloadError extends MillraceError {
  readonly problems: readonly Problem[]
  constructor(subject: string, problems: readonly Problem[], options?: { cause?: unknown }) {
    super('E_INVALID_PAYLOAD', describe(subject, problems), options)
    this.problems = problems
  }
}

/** A payload is larger than a job may carry. */
export class PayloadTooLargeError extends MillraceError {
  readonly bytes: number
  constructor(subject: string, bytes: number, limit: number) {
    super(
      'E_PAYLOAD_TOO_LARGE',
      `${subject}: the payload is ${bytes} bytes and the limit is ${limit}; store the data elsewhere and enqueue a reference to it`,
    )
    this.bytes = bytes
  }
}

/** A value cannot be encoded, or stored data cannot be decoded. */
export class CodecError extends MillraceError {
  readonly path: string
  constructor(path: string, message: string, options?: { cause?: unknown }) {
    super('E_CODEC', message, options)
    this.path = path
  }
}

/** A stored value is encrypted and cannot be decrypted here: its key is not known, or the value is not authentic. */
export class EncryptionError extends MillraceError {}

/** An announced feature that this version does not have yet. The call is refused, and the message says what to use `instead`. */
export class NotYetError extends MillraceError {
  constructor(what: string, instead: string) {
    super('E_NOT_YET', `${what} is not yet part of this version; it was refused, not ignored. Until then: ${instead}`)
  }
}

/** A hook never called `next()`, called it twice or too late, or was asynchronous inside a synchronous transaction. */
export class HookError extends MillraceError {
  constructor(message: string) {
    super('E_HOOK', message)
  }
}

/** A job definition, or the set of jobs given to `millrace()`, contradicts itself. */
export class DefinitionError extends MillraceError {
  constructor(message: string) {
    super('E_DEFINITION', message)
  }
}

/** `enqueue('name')` with a name that is not registered in this mill. */
export class UnknownJobError extends MillraceError {
  constructor(name: string, hint: string) {
    super('E_UNKNOWN_JOB', `no job named ${JSON.stringify(name)} is registered here${hint}`)
  }
}

/** A command about a schedule that does not exist. */
export class UnknownScheduleError extends MillraceError {
  constructor(id: string) {
    super(
      'E_UNKNOWN_SCHEDULE',
      `no schedule has the id ${JSON.stringify(id)}; make it with mill.recurring(), or look with mill.schedules.list()`,
    )
  }
}

/** An unfinished job already holds this key, and the caller's policy is 'reject', or 'replace' while that job runs. */
export class DuplicateKeyError extends MillraceError {
  /** The id of the job that holds the key; undefined when it is a job of the same bulk, which was refused too. */
  readonly existingId: string | undefined
  constructor(job: string, key: string, existingId: string | undefined, why: string) {
    super('E_DUPLICATE_KEY', `job ${JSON.stringify(job)}: key ${JSON.stringify(key)} ${why}${inBrackets(existingId)}`)
    this.existingId = existingId
  }
}

/** Another job has the same unique value, and the policy is 'reject', or it cannot be replaced or rescheduled. */
export class DuplicateJobError extends MillraceError {
  /** The id of the other job; undefined when it is a job of the same bulk, which was refused too. */
  readonly existingId: string | undefined
  constructor(job: string, value: string, existingId: string | undefined, why: string) {
    super(
      'E_DUPLICATE_JOB',
      `job ${JSON.stringify(job)}: another one with the unique value ${value} ${why}${inBrackets(existingId)}`,
    )
    this.existingId = existingId
  }
}

/** How many missing parents a message lists. */
const MISSING_SHOWN_MAX = 10

/** A parent in `after` does not exist. Nothing was written. */
export class ParentMissingError extends MillraceError {
  /** The missing parents: an id, or a job's name and a key. */
  readonly missing: readonly ({ readonly id: string } | { readonly name: string; readonly key: string })[]
  /** `where`: the path of the job in a bulk. */
  constructor(missing: ParentMissingError['missing'], where = '') {
    const shown = missing
      .slice(0, MISSING_SHOWN_MAX)
      .map((one) => ('id' in one ? one.id : `${JSON.stringify(one.name)} with key ${JSON.stringify(one.key)}`))
    const more = missing.length > shown.length ? ` and ${missing.length - shown.length} more` : ''
    super(
      'E_PARENT_MISSING',
      `after${where}: no such job: ${shown.join(', ')}${more}; the parents must exist: enqueue them first, or enqueue all of them together with mill.flow()`,
    )
    this.missing = missing
  }
}

/** A longer cycle is shown by its two ends. */
const CYCLE_SHOWN_MAX = 12

function shortened(path: readonly string[]): readonly string[] {
  return [...path.slice(0, 6), `… ${path.length - 11} more …`, ...path.slice(-5)]
}

/** The links of the jobs would form a cycle. Nothing was written. */
export class CycleError extends MillraceError {
  /** The cycle: each job waits for the next, and the last is the first. */
  readonly path: readonly string[]
  constructor(path: readonly string[], advice = 'take one of these links out') {
    const shown = path.length <= CYCLE_SHOWN_MAX ? path : shortened(path)
    super('E_CYCLE', `after: these jobs would wait for each other for ever: ${shown.join(' → ')}; ${advice}`)
    this.path = path
  }
}

/** A job was enqueued into a sealed group. Nothing of the call was written. */
export class GroupSealedError extends MillraceError {
  readonly group: string
  constructor(group: string, isComplete: boolean) {
    const why = isComplete
      ? 'is sealed and complete, so it takes no more jobs'
      : 'is sealed, so only its own running jobs may add to it, by ctx.enqueue()'
    super('E_GROUP_SEALED', `group ${JSON.stringify(group)} ${why}; enqueue before seal(), or into another group`)
    this.group = group
  }
}

function inBrackets(id: string | undefined): string {
  return id === undefined ? '' : ` (${id})`
}

/** `handle.result()` of a job that failed for good; `cause` is the error that its handler threw. */
export class JobFailedError extends MillraceError {
  readonly jobId: string
  constructor(jobId: string, job: string, message: string, cause: unknown) {
    super('E_JOB_FAILED', `job ${JSON.stringify(job)} ${jobId} failed: ${message}`, { cause })
    this.jobId = jobId
  }
}

/** `handle.result()` of a job that was cancelled; also the abort reason of `ctx.signal` when a running job is cancelled. */
export class JobCancelledError extends MillraceError {
  readonly jobId: string
  readonly reason: string
  constructor(jobId: string, job: string, reason: string) {
    super('E_JOB_CANCELLED', `job ${JSON.stringify(job)} ${jobId} was cancelled: ${reason}`)
    this.jobId = jobId
    this.reason = reason
  }
}

/** `handle.result()` or `edit` of a job that does not exist any more: deleted, pruned, or not kept. */
export class JobGoneError extends MillraceError {
  readonly jobId: string
  constructor(jobId: string) {
    super('E_JOB_GONE', `job ${jobId} does not exist (any more): it was deleted, pruned, or its job keeps nothing`)
    this.jobId = jobId
  }
}

/** A time limit passed. */
export class TimeoutError extends MillraceError {
  constructor(message: string) {
    super('E_TIMEOUT', message)
  }
}

/** `handle.result()` inside a handler could wait for a job that needs the handler's own slot: a deadlock. */
export class ResultInHandlerError extends MillraceError {
  constructor() {
    super(
      'E_RESULT_IN_HANDLER',
      'handle.result() was called inside a handler, where it can wait for ever on its own slot; ' +
        'let a job that runs after it (the option `after`, or mill.flow) do the rest and read ctx.results, or enqueue it with ctx.enqueue',
    )
  }
}

/** A step of a workflow failed for good; `cause` has the name, message and code of what it threw, never its class. */
export class StepFailedError extends MillraceError {
  /** The name of the step. */
  readonly step: string
  /** How often it was tried. */
  readonly attempt: number
  constructor(step: string, attempt: number, cause: Error) {
    super('E_STEP_FAILED', `step ${JSON.stringify(step)} failed (attempt ${attempt}): ${cause.message}`, { cause })
    this.step = step
    this.attempt = attempt
  }
}

/** The result of a step or a called job cannot be recorded. The act has happened, so it is not repeated. */
export class StepResultError extends MillraceError {
  readonly step: string
  constructor(step: string, why: string) {
    super('E_STEP_RESULT', `${JSON.stringify(step)}: ${why}; return a small value, and store the rest elsewhere`)
    this.step = step
  }
}

/** A verb of `w` was called inside the function of a step. */
export class StepNestedError extends MillraceError {
  constructor(verb: string) {
    super(
      'E_STEP_NESTED',
      `w.${verb}() was called inside the function of a step, where nothing of it could be replayed; call it in the body, after or beside the step`,
    )
  }
}

/** A verb of `w` was called after its workflow had ended. */
export class WorkflowOverError extends MillraceError {
  constructor(verb: string, id: string) {
    super(
      'E_WORKFLOW_OVER',
      `w.${verb}(): workflow ${id} has ended, so nothing more of it is recorded; await every verb`,
    )
  }
}

/** The body of a workflow awaited something that is not a verb of `w`, and its option `strict` is set. */
export class ForeignAwaitError extends MillraceError {
  constructor(what: string) {
    super('E_FOREIGN_AWAIT', `${what}: the body awaited something that is not of w; do it inside w.step(name, () => …)`)
  }
}

/** Another branch of the same `w.all` or `w.each` failed, so this one is ended. */
export class SiblingFailedError extends MillraceError {
  constructor(scope: string) {
    super('E_SIBLING_FAILED', `another branch of ${scope} failed, so the verbs of this one reject; undo in w.cleanup()`)
  }
}

/** Another branch of the same `w.race` ended first, so this one is ended. */
export class RaceLostError extends MillraceError {
  constructor(scope: string) {
    super('E_RACE_LOST', `another branch of ${scope} ended first, so the verbs of this one reject; undo in w.cleanup()`)
  }
}

/** An event that no workflow here declares, or that this workflow does not list in its `events`. */
export class UnknownEventError extends MillraceError {
  constructor(name: string, hint: string) {
    super('E_UNKNOWN_EVENT', `the event ${JSON.stringify(name)} is not known here${hint}`)
  }
}

/** `mill.send` or `mill.steps` of a job that is no workflow. */
export class NotAWorkflowError extends MillraceError {
  constructor(jobId: string, job: string) {
    super('E_NOT_A_WORKFLOW', `job ${JSON.stringify(job)} ${jobId} is no workflow: it has no inbox and no steps`)
  }
}

/** `mill.send` to a workflow whose inbox is full. */
export class InboxFullError extends MillraceError {
  constructor(jobId: string, job: string, max: number) {
    super(
      'E_INBOX_FULL',
      `workflow ${JSON.stringify(job)} ${jobId} has ${max} events that it has not taken; let it take them, or send less`,
    )
  }
}

/** Workflows call each other too deeply: most likely one calls itself without end. */
export class CallDepthError extends MillraceError {
  constructor(job: string, max: number) {
    super(
      'E_CALL_DEPTH',
      `w.call(${JSON.stringify(job)}): calls within calls are limited to ${max}; does it call itself?`,
    )
  }
}

/** The body called `w.restart()` and did not return its value. */
export class RestartUnusedError extends MillraceError {
  constructor() {
    super('E_RESTART_UNUSED', 'w.restart() was called and its value was not returned: write return w.restart(input)')
  }
}

/** `retryOne` found a job that cannot start now. */
export class RetryHeldError extends MillraceError {
  /** The id of the job. */
  readonly id: string

  constructor(queue: string, id: string) {
    super(
      'E_RETRY_HELD',
      `retryOne(${JSON.stringify(queue)}): job ${id} was not started, because the queue is paused, its limit or rate has no room, or other processes change it; resume the queue or call it again later`,
    )
    this.id = id
  }
}

/** The claim of this attempt was lost: another worker rescued the job, or it was cancelled. Nothing more is recorded. */
export class LeaseLostError extends MillraceError {
  constructor(what: string, options?: { cause?: unknown }) {
    super('E_LEASE_LOST', `${what}: its claim is gone, so nothing it does from here on is recorded`, options)
  }
}

/**
 * A transaction passed as `tx` cannot be used, was rolled back, or its job is settled already. The call wrote nothing in it; the
 * caller may commit or roll back.
 */
export class TransactionError extends MillraceError {}

/** The worker is stopping and its deadline has passed; the job is released, and no attempt is counted. */
export class StoppedError extends MillraceError {
  constructor() {
    super('E_STOPPED', 'the worker is stopping and its deadline has passed; this job is released and will run again')
  }
}

/** The mill was closed, or the store could not be opened or used. */
export class StoreError extends MillraceError {}

/** The mill was closed and cannot be used any more. */
export class ClosedError extends StoreError {
  constructor() {
    super('E_CLOSED', 'this mill is closed; make a new one with millrace()')
  }
}

/**
 * The connection was lost after a write was sent and before its reply arrived: the write may or may not have been committed.
 * `retry()` finds out, writes what is missing, and resolves with the result of the original call; nothing is written twice.
 */
export class OutcomeUnknownError extends StoreError {
  /** The ids of the jobs that the call writes or changes; empty for a queue, a schedule or the seal of a group. */
  readonly ids: readonly string[]
  readonly #resolve: () => Promise<unknown>
  #resolved: Promise<unknown> | undefined
  constructor(message: string, ids: readonly string[], resolve: () => Promise<unknown>, options?: { cause?: unknown }) {
    super('E_OUTCOME_UNKNOWN', message, options)
    this.ids = ids
    this.#resolve = resolve
  }

  /** The result of the original call; all callers share one answer. Rejects with this code again while the outcome is still unknown. */
  retry<T = unknown>(): Promise<T> {
    this.#resolved ??= this.#resolve().catch((error: unknown) => {
      this.#resolved = undefined
      throw error
    })
    return this.#resolved as Promise<T>
  }
}

/** The disk is full. Nothing was written; claims pause and resume automatically. A store that was being opened is not opened. */
export class StoreFullError extends StoreError {
  constructor(where: string, cause: unknown, isOpening = false) {
    const next = isOpening
      ? 'the store was not opened. Free some space, and open it again'
      : 'nothing was written. Free some space: work resumes by itself'
    super('E_STORE_FULL', `${where}: no space is left on the disk; ${next}`, { cause })
  }
}

/**
 * The database of the mill is gone: its SQLite file was deleted, moved or replaced, or its PostgreSQL tables were dropped. A write
 * that fails with this error is not acknowledged; it may be in the file that was deleted or moved.
 */
export class StoreGoneError extends StoreError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('E_STORE_GONE', message, options)
  }
}

/** One line for one problem, a list for several. */
function describe(subject: string, problems: readonly Problem[]): string {
  const lines = problems.map((p) => (p.path === '' ? p.message : `${p.path} ${p.message}`))
  if (lines.length === 1) return `${subject}: ${lines[0]}`
  return `${subject}: ${lines.length} problems\n${lines.map((l) => `  - ${l}`).join('\n')}`
}
