import { cutText, jsonBytes } from './cut-text.js'
import { builtInClass, isError, makeError, NAMED } from './error-shape.js'
import { previewOf } from './preview.js'
import { className } from './show.js'

/** What is kept of a thrown value: plain data, bounded, safe to write as JSON. */
export interface ErrorRecord {
  /** Of the error that a job failed with: its group in `mill.stats.errorGroups()`. */
  readonly fingerprint?: string
  /** The error's name; `NonError` when the thrown value is not an error. */
  readonly name: string
  readonly message: string
  /** The name of its class, if `name` is only inherited from a built-in class: `class HttpError extends Error {}`. */
  readonly type?: string
  readonly stack?: string
  /** Its `code`, as errors of Node and of this package have: text or a number. */
  readonly code?: string | number
  /** Its other own enumerable fields, such as `status`, if they are text, numbers, booleans or null. */
  readonly props?: ErrorProps
  readonly cause?: ErrorRecord
  /** The errors of an AggregateError; a refused connection has its cause only there. */
  readonly errors?: readonly ErrorRecord[]
}

/** Objects are left out: in errors of an HTTP client they contain the request with its credentials. */
export type ErrorProps = Readonly<Record<string, string | number | boolean | null>>

/** The maximum size of an error's record, as JSON in UTF-8. */
const LIMIT_BYTES = 65_536
/** A smaller limit would leave no room for texts. */
const LIMIT_MIN_BYTES = 1_024

/** How many causes are followed, and how many errors of one aggregate are kept. */
const CAUSES_MAX = 8
const ERRORS_MAX = 8

/** Bytes for field names and punctuation of one record; its texts share the rest of the limit. */
const FRAME_BYTES = 100
const LABEL_BYTES = 256

/** The maximum size of all fields of one error, and of one text among them. */
const PROPS_BYTES = 4_096
const PROP_TEXT_BYTES = 1_024

/**
 * Describes any thrown value. It never throws, also for a getter or a proxy that throws, a cyclic cause, or a message of a
 * gigabyte. Texts that are too long are cut and say by how much. The record takes at most `limitBytes` (at least 1,024) as
 * JSON in UTF-8.
 */
export function describeError(thrown: unknown, limitBytes: number = LIMIT_BYTES): ErrorRecord {
  try {
    return describe(thrown, Math.max(LIMIT_MIN_BYTES, limitBytes), CAUSES_MAX, new Set())
  } catch {
    // Stack overflow, or out of memory.
    return { name: 'Error', message: 'the thrown value could not be read' }
  }
}

/** Creates an Error from a record: the `cause` of a JobFailedError. */
export function reviveError(record: ErrorRecord): Error {
  const { name, message, stack, code, props, cause, errors } = record
  const shape = {
    name,
    message,
    stack,
    props: { ...(code === undefined ? {} : { code }), ...props },
    ...(cause === undefined ? {} : { cause: reviveError(cause) }),
    ...(errors === undefined ? {} : { errors: errors.map(reviveError) }),
  }
  return makeError(shape, classOf(record))
}

/** Loggers such as pino show the class name of an error, not its `name`. */
function classOf({ name, type }: ErrorRecord): ErrorConstructor {
  const builtIn = builtInClass(name)
  if (builtIn !== undefined && type === undefined) return builtIn
  const made = class extends (builtIn ?? Error) {}
  Object.defineProperty(made, 'name', { value: type ?? name })
  return made as ErrorConstructor
}

function describe(thrown: unknown, bytes: number, causesLeft: number, above: Set<unknown>): ErrorRecord {
  if (!isErrorLike(thrown)) return { name: 'NonError', message: cutText(previewOf(thrown), bytes - FRAME_BYTES) }
  above.add(thrown)
  const name = cutText(nameOf(thrown), LABEL_BYTES)
  const type = typeOf(thrown, name)
  const code = codeOf(thrown)
  const related = relatedTo(thrown)
  let left =
    bytes - FRAME_BYTES - jsonBytes(name) - jsonBytes(type ?? '') - (typeof code === 'string' ? jsonBytes(code) : 24)
  // Each text gets half of the remaining bytes, so that a huge message leaves room for the stack, and both for the cause.
  const whole = textOf(thrown, 'message') ?? ''
  const message = cutText(whole, Math.floor(left / 2))
  left -= jsonBytes(message)
  const { props, bytes: propsBytes } = propsOf(thrown, Math.min(PROPS_BYTES, Math.floor(left / 4)))
  left -= propsBytes
  const stack = stackOf(thrown, whole, message, Math.floor(related.length > 0 ? left / 2 : left))
  left -= stack === undefined ? 0 : jsonBytes(stack)
  const described = {
    name,
    message,
    ...(type === undefined ? {} : { type }),
    ...(stack === undefined ? {} : { stack }),
    ...(code === undefined ? {} : { code }),
    ...(props === undefined ? {} : { props }),
    ...describeRelated(related, left, causesLeft, above),
  }
  above.delete(thrown)
  return described
}

interface Related {
  readonly as: 'cause' | 'errors'
  readonly thrown: unknown
}

/** The related errors of an error: its cause, and those of an aggregate. */
function relatedTo(error: object): Related[] {
  const cause = read(error, 'cause')
  const errors = read(error, 'errors')
  const gathered = Array.isArray(errors) ? (attempt(() => errors.slice(0, ERRORS_MAX)) ?? []) : []
  const related: Related[] = gathered.map((thrown: unknown) => ({ as: 'errors', thrown }))
  return cause === undefined ? related : [{ as: 'cause', thrown: cause }, ...related]
}

function describeRelated(
  related: readonly Related[],
  bytes: number,
  causesLeft: number,
  above: Set<unknown>,
): { cause?: ErrorRecord; errors?: ErrorRecord[] } {
  const share = Math.floor(bytes / Math.max(1, related.length))
  // Too few bytes are left, or the chain is too long.
  if (related.length === 0 || causesLeft === 0 || share < 2 * (FRAME_BYTES + LABEL_BYTES)) return {}
  const described = related.map(({ as, thrown }) => ({
    as,
    record: above.has(thrown) ? CYCLE : describe(thrown, share, causesLeft - 1, above),
  }))
  const cause = described.find(({ as }) => as === 'cause')?.record
  const errors = described.filter(({ as }) => as === 'errors').map(({ record }) => record)
  return { ...(cause === undefined ? {} : { cause }), ...(errors.length === 0 ? {} : { errors }) }
}

const CYCLE: ErrorRecord = { name: 'Error', message: '(cycle: an error above)' }

/** An error, or another object with a message. */
function isErrorLike(thrown: unknown): thrown is object {
  if (typeof thrown !== 'object' || thrown === null) return false
  return attempt(() => isError(thrown)) === true || textOf(thrown, 'message') !== undefined
}

function nameOf(error: object): string {
  const name = textOf(error, 'name')
  if (name !== undefined && name !== '') return name
  const made = className(error)
  return made === 'object' || made === 'Object' ? 'Error' : made
}

function typeOf(error: object, name: string): string | undefined {
  if (builtInClass(name) === undefined) return undefined
  const type = cutText(className(error), LABEL_BYTES)
  return type === name || type === 'Object' || type === 'object' ? undefined : type
}

function codeOf(error: object): string | number | undefined {
  const code = read(error, 'code')
  if (typeof code === 'string') return cutText(code, LABEL_BYTES)
  return typeof code === 'number' && Number.isFinite(code) ? code : undefined
}

/** The other fields, as many as fit. */
function propsOf(error: object, limitBytes: number): { readonly props?: ErrorProps; readonly bytes: number } {
  const kept: [string, string | number | boolean | null][] = []
  let bytes = 0
  for (const key of attempt(() => Object.keys(error)) ?? []) {
    const value = NAMED.has(key) || key === 'code' ? undefined : read(error, key)
    const shown = typeof value === 'string' ? cutText(value, PROP_TEXT_BYTES) : value
    if (!isPlain(shown)) continue
    const takes = jsonBytes(key) + 2 + (typeof shown === 'string' ? jsonBytes(shown) : String(shown).length)
    if (bytes + takes > limitBytes) break
    bytes += takes
    kept.push([key, shown])
  }
  return kept.length === 0 ? { bytes } : { props: Object.fromEntries(kept), bytes }
}

function isPlain(value: unknown): value is string | number | boolean | null {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'string' || typeof value === 'boolean' || value === null
}

/** The stack begins with the message. If that was cut, it is cut here too, because the frames below are more useful. */
function stackOf(error: object, whole: string, message: string, bytes: number): string | undefined {
  const stack = textOf(error, 'stack')
  if (stack === undefined) return undefined
  const from = message === whole ? -1 : stack.indexOf(whole)
  if (from < 0) return cutText(stack, bytes)
  const head = cutText(stack.slice(0, from) + message, Math.floor(bytes / 2))
  return cutText(head + stack.slice(from + whole.length), bytes)
}

function textOf(error: object, key: string): string | undefined {
  const value = read(error, key)
  return typeof value === 'string' ? value : undefined
}

/** Reads a property of a foreign object; undefined when reading it throws. */
function read(error: object, key: string): unknown {
  return attempt(() => (error as Readonly<Record<string, unknown>>)[key])
}

function attempt<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    // An unreadable property counts as missing; the rest of the error is kept.
    return undefined
  }
}
