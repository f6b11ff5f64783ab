import { reason, show } from '../../codec/show.js'
import type { Problem } from '../../errors.js'
import type { Duration } from '../duration/duration.js'
import { parseDuration } from '../duration/duration.js'
import type { JobLimits } from '../limits/limits.js'
import { keyNumber } from '../limits/turns.js'
import type { JobTurn } from '../limits/turns.js'
import { checkFields } from './check-fields.js'
import type { Check, Fields } from './check-fields.js'
import { isCount, isFunction, isPositiveDuration } from './check-values.js'
import { FOREIGN_LIMIT_OPTIONS, FOREIGN_RATE_OPTIONS } from './foreign-option-names.js'
import { ignoreRejection, isThenable } from './schema.js'

/** What a key function may return: each value has slots, a window and turns of its own. Undefined and null: the jobs without a key. */
export type LimitKey = string | number | bigint | boolean | null | undefined

/** How many jobs may be in flight at once, in the whole fleet. */
export interface LimitOptions<Payload = never> {
  /** Jobs in flight at once, in all processes together; with `key`, for each key. */
  readonly max: number
  /** Counts each key by itself, and lets the keys take turns. It is called at enqueue, with the payload as it was given. */
  readonly key?: ((payload: Payload) => LimitKey) | undefined
}

/** How many jobs may start within a window, in the whole fleet. */
export interface RateOptions<Payload = never> {
  /** Starts in any window of the length `per`, in all processes together; with `key`, for each key. */
  readonly max: number
  /** The length of the window, by the clock of the database. */
  readonly per: Duration | number
  /** Counts each key by itself, and lets the keys take turns. It is called at enqueue, with the payload as it was given. */
  readonly key?: ((payload: Payload) => LimitKey) | undefined
  /** What a start uses of `max`: a whole number. It is called at enqueue. Default 1. */
  readonly weight?: ((payload: Payload) => number) | undefined
}

/** The most of a limit and of a rate, and the shortest and the longest window. */
export const LIMIT_MAX = 1_000_000
export const RATE_PER_MIN_MS = 10
export const RATE_PER_MAX_MS = 366 * 24 * 60 * 60 * 1000
/** The most characters of a limit key. */
export const LIMIT_KEY_MAX = 1_000

const isMax = isCount(1, LIMIT_MAX)
const isPer: Check = (value) => {
  const wrong = isPositiveDuration(RATE_PER_MIN_MS)(value)
  if (wrong !== undefined) return wrong
  const parsed = parseDuration(value)
  return parsed.ok && parsed.ms > RATE_PER_MAX_MS ? `must be at most 366 days, got ${show(value)}` : undefined
}

const meantMax = (value: unknown): string | undefined =>
  isMax(value) === undefined ? `{ max: ${show(value)} }` : undefined
const QUEUE_LIMIT: Fields = {
  fields: { max: isMax, key: () => NO_FUNCTION },
  foreignNames: FOREIGN_LIMIT_OPTIONS,
  meant: meantMax,
}
const QUEUE_RATE: Fields = {
  fields: { max: isMax, per: isPer, key: () => NO_FUNCTION, weight: () => NO_FUNCTION },
  foreignNames: FOREIGN_RATE_OPTIONS,
}
const JOB_LIMIT: Fields = { ...QUEUE_LIMIT, fields: { ...QUEUE_LIMIT.fields, key: isFunction } }
const JOB_RATE: Fields = { ...QUEUE_RATE, fields: { ...QUEUE_RATE.fields, key: isFunction, weight: isFunction } }

const NO_FUNCTION =
  'is a function of a payload, and the limits of a queue are stored without functions: give the job that limit or rate'

export const isLimitOption: Check = (value) => whole(value, JOB_LIMIT, ['max'])
export const isRateOption: Check = (value) => whole(value, JOB_RATE, ['max', 'per'])
/** False removes what is stored. */
export const isQueueLimit: Check = (value) => (value === false ? undefined : whole(value, QUEUE_LIMIT, ['max']))
export const isQueueRate: Check = (value) => (value === false ? undefined : whole(value, QUEUE_RATE, ['max', 'per']))

function whole(value: unknown, fields: Fields, needed: readonly string[]): readonly Problem[] {
  const problems = checkFields(value, '', fields)
  if (typeof value !== 'object' || value === null) return problems
  const missing = needed.filter((name) => (value as { readonly [name: string]: unknown })[name] === undefined)
  return [...problems, ...missing.map((path) => ({ path, message: MISSING[path] as string }))]
}

const MISSING: { readonly [name: string]: string } = {
  max: `is missing: a whole number from 1 to ${LIMIT_MAX}`,
  per: 'is missing: the length of the window, such as "1m"',
}

/** The limits of a job as claims use them; undefined for a job without any. */
export function limitsOf(limit: LimitOptions | undefined, rate: RateOptions | undefined): JobLimits | undefined {
  if (limit === undefined && rate === undefined) return undefined
  return {
    ...(limit === undefined ? {} : { limit: { max: limit.max, isKeyed: limit.key !== undefined } }),
    ...(rate === undefined
      ? {}
      : { rate: { max: rate.max, perMs: perMsOf(rate.per), isKeyed: rate.key !== undefined } }),
  }
}

export function perMsOf(per: Duration | number): number {
  const parsed = parseDuration(per)
  return parsed.ok ? parsed.ms : RATE_PER_MAX_MS
}

/** What an enqueue stores; undefined for a job without a key or a weight. */
export type TurnResult =
  | { readonly ok: true; readonly turn: JobTurn | undefined }
  | { readonly ok: false; readonly problem: Problem; readonly cause: unknown }

/** Calls the functions of a job's limit and rate with an enqueued payload. `root` is what errors call the payload. */
export function turnOf(
  limit: LimitOptions | undefined,
  rate: RateOptions | undefined,
  payload: unknown,
  root: string,
): TurnResult {
  if (limit?.key === undefined && rate?.key === undefined && rate?.weight === undefined) return NO_TURN
  try {
    const ofLimit = numberOfKey('limit.key', limit?.key, payload)
    const ofRate = numberOfKey('rate.key', rate?.key, payload)
    const key = limit?.key === undefined ? ofRate : ofLimit
    const weight = rate?.weight === undefined ? 1 : weightOf(rate, payload)
    const isOther = limit?.key !== undefined && rate?.key !== undefined && ofRate !== ofLimit
    return { ok: true, turn: { limit: key, rate: isOther ? ofRate : null, weight: weight === 1 ? null : weight } }
  } catch (error) {
    if (error instanceof WrongValue)
      return { ok: false, problem: { path: root, message: error.message }, cause: error.cause }
    throw error
  }
}

const NO_TURN: TurnResult = { ok: true, turn: undefined }

/** What a function of a definition returned or threw. */
class WrongValue extends Error {}

function numberOfKey(what: string, key: ((payload: never) => LimitKey) | undefined, payload: unknown): number | null {
  if (key === undefined) return null
  const value = called(what, key as (payload: unknown) => unknown, payload)
  if (value === null || value === undefined) return null
  if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value))
    throw new WrongValue(`has no limit key: ${what} must return text, a number or a boolean, got ${show(value)}`)
  // eslint-disable-next-line typescript/no-base-to-string -- a primitive by now
  const text = String(value)
  if (text.length > LIMIT_KEY_MAX)
    throw new WrongValue(
      `has no limit key: ${what} must return at most ${LIMIT_KEY_MAX} characters, got ${text.length}`,
    )
  return keyNumber(text)
}

function weightOf(rate: RateOptions, payload: unknown): number {
  const value = called('rate.weight', rate.weight as (payload: unknown) => unknown, payload)
  if (!Number.isInteger(value) || (value as number) < 0)
    throw new WrongValue(`has no weight: rate.weight must return a whole number of 0 or more, got ${show(value)}`)
  if ((value as number) > rate.max)
    throw new WrongValue(
      `has the weight ${show(value)} and its rate allows ${rate.max} in a window: it could never start; split the work, or raise rate.max`,
    )
  return value as number
}

function called(what: string, run: (payload: unknown) => unknown, payload: unknown): unknown {
  let value: unknown
  try {
    value = run(payload)
  } catch (error) {
    throw new WrongValue(`cannot be limited: ${what} threw ${reason(error)}`, { cause: error })
  }
  if (!isThenable(value)) return value
  ignoreRejection(value)
  throw new WrongValue(`cannot be limited: ${what} must be synchronous, and it returned a promise`)
}
