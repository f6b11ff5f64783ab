import type { Duration } from '../duration/duration.js'
import { parseDuration } from '../duration/duration.js'
import { isThenable, ignoreRejection } from '../definition/schema.js'

/** How failed attempts are retried. Each part may be set at any level; the most specific level wins, part by part. */
export interface RetryOptions {
  /** Retries after the first run: 0 = once, Infinity = for ever. Default 25. */
  readonly limit?: number | undefined
  /** The wait before each retry. Default 'exponential': 1 s · 2^n, at most 1 h. */
  readonly backoff?: Backoff | undefined
  /** Up to this share is added to each wait; no wait gets shorter: 0 to 1. Default 0.2. */
  readonly jitter?: number | undefined
  /** Whether an error is worth a retry. Default: every error is. */
  readonly when?: ((error: unknown, attempt: number) => boolean) | undefined
}

/**
 * `'exponential'`, `'fixed'` (1 s each time), the same with your own figures, or a function of the retry's number (1 is the first).
 */
export type Backoff = 'exponential' | 'fixed' | BackoffSteps | ((retry: number, error: unknown) => Duration)

export interface BackoffSteps {
  /** The first wait. Default '1s'. */
  readonly start?: Duration | undefined
  /** Each wait is this many times the one before. Default 2; 1 keeps it fixed. */
  readonly factor?: number | undefined
  /** No wait is longer. Default '1h'. */
  readonly max?: Duration | undefined
}

export interface RetryPolicy {
  readonly limit: number
  readonly backoff: Backoff
  readonly jitter: number
  readonly when: ((error: unknown, attempt: number) => boolean) | undefined
}

/** The first wait, and the longest, unless `backoff` says otherwise. */
const BACKOFF_START_MS = 1_000
const BACKOFF_MAX_MS = 3_600_000

export const RETRY_DEFAULTS: RetryPolicy = { limit: 25, backoff: 'exponential', jitter: 0.2, when: undefined }

/** Merges the levels, most specific first, option by option. */
export function mergeRetry(levels: readonly (RetryOptions | undefined)[]): RetryPolicy {
  const first = <K extends keyof RetryOptions>(name: K): RetryOptions[K] => {
    for (const level of levels) if (level?.[name] !== undefined) return level[name]
    return undefined
  }
  return {
    limit: first('limit') ?? RETRY_DEFAULTS.limit,
    backoff: first('backoff') ?? RETRY_DEFAULTS.backoff,
    jitter: first('jitter') ?? RETRY_DEFAULTS.jitter,
    when: first('when'),
  }
}

/** The wait before retry number `retry` (1 is the first). Jitter only adds, so no retry runs earlier than its backoff says. */
export function retryDelayMs(
  policy: RetryPolicy,
  retry: number,
  error: unknown,
  random: () => number,
  note?: (line: string) => void,
): number {
  const wait = baseDelayMs(policy.backoff, retry, error, note)
  return Math.round(wait * (1 + policy.jitter * random()))
}

function baseDelayMs(backoff: Backoff, retry: number, error: unknown, note?: (line: string) => void): number {
  if (typeof backoff === 'function') return functionDelayMs(backoff, retry, error, note)
  const steps = backoff === 'exponential' ? {} : backoff === 'fixed' ? { factor: 1 } : backoff
  const start = milliseconds(steps.start, BACKOFF_START_MS)
  const max = milliseconds(steps.max, BACKOFF_MAX_MS)
  // The power may overflow to Infinity for a large retry number; the minimum is right in either case.
  return Math.min(max, start * (steps.factor ?? 2) ** (retry - 1))
}

/** When the user's function throws or returns something that is no duration, the default wait is used: a retry must not be lost. */
function functionDelayMs(
  backoff: (retry: number, error: unknown) => Duration,
  retry: number,
  error: unknown,
  note?: (line: string) => void,
): number {
  let wait: unknown
  try {
    wait = backoff(retry, error)
  } catch {
    // A failure of the backoff function must not cost the job its retry: the default wait is used.
  }
  if (isThenable(wait)) {
    ignoreRejection(wait)
    note?.(promiseNote('retry.backoff', 'the default wait is taken'))
  }
  const parsed = parseDuration(wait)
  return parsed.ok ? parsed.ms : baseDelayMs('exponential', retry, error)
}

/** The log line for a synchronous option that returned a promise; the promise is not awaited. */
export function promiseNote(what: string, instead: string): string {
  return `${what} returned a promise and must be synchronous: ${instead}`
}

function milliseconds(value: Duration | undefined, otherwise: number): number {
  const parsed = parseDuration(value)
  return parsed.ok ? parsed.ms : otherwise
}
