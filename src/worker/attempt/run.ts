import { describeError } from '../../codec/error-text.js'
import { formatDuration, parseWhen } from '../../job/duration/duration.js'
import type { Handler } from '../../job/definition/define.js'
import { isLazy, loadHandler } from '../../job/definition/lazy.js'
import type { Encoded, Outcome } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import type { RetryOptions, RetryPolicy } from '../../job/rules/retry.js'
import { mergeRetry, promiseNote, retryDelayMs } from '../../job/rules/retry.js'
import { ChildCrashError, isA, UnsentResult } from '../executors/child-crash.js'
import { checkPayload, isThenable, ignoreRejection } from '../../job/definition/schema.js'
import { upcastPayload } from '../../job/definition/upcast.js'
import { isAbort, isSnooze } from '../../job/attempt/control-errors.js'
import type { Snooze } from '../../job/attempt/control-errors.js'
import { InvalidOptionsError, JobCancelledError, LeaseLostError, StoppedError, TimeoutError } from '../../errors.js'

/** A result larger than this is not kept; the job is done all the same. */
const RESULT_MAX_BYTES = 1024 * 1024

/** The input of `runAttempt`. */
export interface Attempt {
  readonly registered: Registered
  readonly payload: Encoded
  /** The version of the payload. Default 0. */
  readonly version?: number | undefined
  /** The retry options given at enqueue. */
  readonly retry: RetryOptions | undefined
  readonly retries: number
  readonly attempt: number
  readonly random: () => number
  /** The time by the store's clock, as far as the worker knows it. */
  readonly now: () => number
  /** The handler is loaded and called in a thread or a process of its own. */
  readonly isIsolated?: boolean | undefined
  /** Calls the handler; the executor's part. */
  readonly call: (handler: Handler<unknown, unknown>, payload: unknown) => unknown
  /** Why the signal was aborted; undefined if it was not. */
  readonly abortReason: () => unknown
  /** How the body of a workflow ended for this claim; undefined for other jobs. */
  readonly ended?: (() => Outcome | undefined) | undefined
  /** Adds a line to the attempt's own log. */
  readonly note?: ((line: string) => void) | undefined
}

/**
 * Runs one attempt. Handlers may throw anything; this function never throws and returns an outcome. It makes a promise only if
 * it must wait: at a hundred thousand jobs a second each promise is measurable.
 */
export function runAttempt(attempt: Attempt): Outcome | Promise<Outcome> {
  const { run } = attempt.registered
  const read = readPayload(attempt)
  if (read instanceof Promise || isLazy(run)) return runLater(attempt, read)
  return read.ok ? callHandler(attempt, run as Handler<unknown, unknown>, read.payload) : read.outcome
}

/** The schema checks asynchronously, or the handler is not loaded yet. */
async function runLater(attempt: Attempt, read: Ready | Promise<Ready>): Promise<Outcome> {
  const ready = await read
  if (!ready.ok) return ready.outcome
  const { run } = attempt.registered
  try {
    const isLoaded = !isLazy(run) || attempt.isIsolated === true
    const handler = (isLoaded ? run : await loadHandler(run)) as Handler<unknown, unknown>
    return await callHandler(attempt, handler, ready.payload)
  } catch (thrown) {
    return classify(attempt, thrown)
  }
}

function callHandler(
  attempt: Attempt,
  handler: Handler<unknown, unknown>,
  payload: unknown,
): Outcome | Promise<Outcome> {
  try {
    const returned = attempt.call(handler, payload)
    if (!isThenable(returned)) return succeeded(attempt.registered, returned)
    return Promise.resolve(returned).then(
      (value) => attempt.ended?.() ?? succeeded(attempt.registered, value),
      (thrown: unknown) => attempt.ended?.() ?? classify(attempt, thrown),
    )
  } catch (thrown) {
    return classify(attempt, thrown)
  }
}

type Ready = { readonly ok: true; readonly payload: unknown } | { readonly ok: false; readonly outcome: Outcome }

/** Decodes the payload and validates it. A job whose payload does not fit is parked, and no attempt is counted. */
function readPayload(attempt: Attempt): Ready | Promise<Ready> {
  const { registered } = attempt
  try {
    const decoded = registered.codec.decode(attempt.payload)
    const current = upcastPayload(registered.upcast, attempt.version ?? 0, decoded)
    const checked = checkPayload(registered.job.options, current)
    if (checked instanceof Promise) return checked.then(fits, unreadable)
    return fits(checked)
  } catch (error) {
    return unreadable(error)
  }
}

function fits(checked: Awaited<ReturnType<typeof checkPayload>>): Ready {
  if (checked.ok) return { ok: true, payload: checked.value }
  const message = `the payload no longer fits: ${checked.problems.map((p) => `${p.path} ${p.message}`).join('; ')}`
  return { ok: false, outcome: { kind: 'unreadable', error: { name: 'InvalidPayloadError', message } } }
}

function unreadable(error: unknown): Ready {
  return { ok: false, outcome: { kind: 'unreadable', error: describeError(error) } }
}

/** Any returned value is a success, also one that cannot be stored: the record then says why it is not kept. */
export function succeeded(registered: Registered, returned: unknown): Outcome {
  if (returned === undefined) return NOTHING_RETURNED
  if (isA(UnsentResult, returned))
    return { kind: 'succeeded', result: null, note: `the result is not kept: ${returned.why}` }
  try {
    const result = registered.codec.encode(returned)
    const bytes = typeof result === 'string' ? Buffer.byteLength(result) : result.byteLength
    if (bytes <= RESULT_MAX_BYTES) return { kind: 'succeeded', result }
    return {
      kind: 'succeeded',
      result: null,
      note: `the result is not kept: it has ${bytes} bytes and the limit is ${RESULT_MAX_BYTES}`,
    }
  } catch (error) {
    return { kind: 'succeeded', result: null, note: `the result is not kept: ${describeError(error).message}` }
  }
}

const NOTHING_RETURNED: Outcome = { kind: 'succeeded', result: null }

/** The outcome of an attempt whose handler threw, or whose code threw outside of its handler. */
export function classify(attempt: Attempt, thrown: unknown): Outcome {
  const reason = attempt.abortReason()
  // The worker stopped or lost the claim: the error comes from that, and is not recorded as a failure.
  if (reason instanceof StoppedError || reason instanceof LeaseLostError) return { kind: 'released' }
  if (reason instanceof JobCancelledError && !isTreatedAsDone(attempt, thrown)) return cancelledOutcome(reason, thrown)
  if (reason === undefined && isA(ChildCrashError, thrown)) return { kind: 'child-crashed', exit: thrown.exit }
  if (isSnooze(thrown)) return snoozed(attempt, thrown)
  if (isAbort(thrown)) return { kind: 'aborted', error: describeError(thrown) }
  if (isTreatedAsDone(attempt, thrown))
    return { kind: 'succeeded', result: null, note: `treated as done: ${describeError(thrown).message}` }
  const error = reason instanceof TimeoutError && thrown !== reason ? new TimeoutError(reason.message) : thrown
  if (error !== thrown) (error as Error).cause = thrown
  return failure(attempt, error)
}

/** A handler that threw after its cancel ends cancelled. Its error is kept only if it is not the cancel itself. */
export function cancelledOutcome(cancel: JobCancelledError, thrown: unknown): Outcome {
  return { kind: 'cancelled', error: thrown === cancel ? null : describeError(thrown), reason: cancel.reason }
}

/** The outcome of a failed attempt by its retry policy; also of an attempt whose handler did not return. */
export function failure(
  attempt: Pick<Attempt, 'registered' | 'retry' | 'retries' | 'attempt' | 'random' | 'note'>,
  error: unknown,
): Outcome {
  const policy = mergeRetry(
    attempt.retry === undefined ? attempt.registered.retryLevels : [attempt.retry, ...attempt.registered.retryLevels],
  )
  return {
    kind: 'failed',
    error: describeError(error),
    retryable: isWorthRetrying(policy, error, attempt),
    retryLimit: policy.limit,
    delayMs: retryDelayMs(policy, attempt.retries + 1, error, attempt.random, attempt.note),
  }
}

/**
 * A value that is no time, such as one parsed from a bad header, is a failed attempt, which is retried. So is an instant in the
 * past: the job would run again at once, without a limit, since a snooze counts no attempt.
 */
function snoozed(attempt: Attempt, { delay }: Snooze): Outcome {
  const now = attempt.now()
  const parsed = parseWhen(delay, now)
  if (parsed.ok && parsed.atMs >= now) return { kind: 'snoozed', delayMs: parsed.atMs - now }
  const message = parsed.ok
    ? `must be an instant that is still to come, got ${new Date(parsed.atMs).toISOString()}, which was ${formatDuration(now - parsed.atMs)} ago`
    : parsed.problem
  return failure(attempt, new InvalidOptionsError('new Snooze()', [{ path: 'the delay', message }]))
}

/** A predicate that throws must neither prevent the retry nor turn a failure into a success. */
function isWorthRetrying(policy: RetryPolicy, error: unknown, { attempt, note }: Noted): boolean {
  if (policy.when === undefined) return true
  try {
    const worth: unknown = policy.when(error, attempt)
    if (!isThenable(worth)) return Boolean(worth)
    ignoreRejection(worth)
    note?.(promiseNote('retry.when', 'the error is tried again, as without it'))
    return true
  } catch {
    return true
  }
}

type Noted = Pick<Attempt, 'attempt' | 'note'>

function isTreatedAsDone({ registered, note }: Attempt, thrown: unknown): boolean {
  try {
    const answer: unknown = registered.treatAsDone?.(thrown)
    if (!isThenable(answer)) return answer === true
    ignoreRejection(answer)
    note?.(promiseNote('treatAsDone', 'the error stays an error'))
    return false
  } catch {
    return false
  }
}
