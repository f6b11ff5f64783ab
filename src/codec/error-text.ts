import { cutText, jsonBytes } from './cut-text.js'
import { builtInClass, isError, makeError, NAMED } from './error-shape.js'
import { previewOf } from './preview.js'
import { className } from './show.js'

/** What is kept of something thrown: plain data, bounded, safe to write as JSON. */
export interface ErrorRecord {
  /** The error's name; `NonError` when something else was thrown. */
  readonly name: string
  readonly message: string
  /** The name of its class, where its `name` is only that of a built-in one: `class HttpError extends Error {}`. */
  readonly type?: string
  readonly stack?: string
  /** Its `code`, as Node's errors and ours have: a text or a number. */
  readonly code?: string | number
  /** Its other own enumerable fields, such as `status`, where they are text, numbers, booleans or null. */
  readonly props?: ErrorProps
  readonly cause?: ErrorRecord
  /** The errors of an AggregateError: a refused connection says what happened only there. */
  readonly errors?: readonly ErrorRecord[]
}

/** Objects are left out: those of an HTTP client's error hold the request, with its credentials. */
export type ErrorProps = Readonly<Record<string, string | number | boolean | null>>

/** How much an error's record takes at most, as JSON in UTF-8. */
const LIMIT_BYTES = 65_536

/** How far causes are followed, and how many errors of one aggregate are kept. */
const CAUSES_MAX = 8
const ERRORS_MAX = 8

/** The names and marks of one record: what is taken from the limit before its texts share the rest. */
const FRAME_BYTES = 100
const LABEL_BYTES = 256

/** What the fields of one error take at most together, and one text among them. */
const PROPS_BYTES = 4_096
const PROP_TEXT_BYTES = 1_024

/**
 * Describes anything that can be thrown. It never throws itself, whatever it is given: a getter or a proxy that throws,
 * a cause that leads back, a message of a gigabyte. What is too long is cut and says by how much, and the whole takes
 * at most `limitBytes` (at least 1,024) as JSON in UTF-8.
 */
export function describeError(thrown: unknown, limitBytes: number = LIMIT_BYTES): ErrorRecord {
  try {
    return describe(thrown, Math.max(1024, limitBytes), CAUSES_MAX, new Set())
  } catch {
    // Not even this much worked: the stack is at its end, or memory. Something was thrown; that much is kept.
    return { name: 'Error', message: 'something was thrown that could not be read' }
  }
}

/** A real Error with what the record kept: the `cause` of a JobFailedError. */
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

/** Loggers such as pino show the name of an error's class, not its own `name`. */
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
  // Half of what is left each time, so that a giant message leaves room for the stack, and both for the cause.
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

/** The errors behind an error: its cause, and those an aggregate gathers. */
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
  // Too little room, or too long a chain, to say anything of use.
  if (related.length === 0 || causesLeft === 0 || share < 2 * (FRAME_BYTES + LABEL_BYTES)) return {}
  const told = related.map(({ as, thrown }) => ({
    as,
    record: above.has(thrown) ? LEADS_BACK : describe(thrown, share, causesLeft - 1, above),
  }))
  const cause = told.find(({ as }) => as === 'cause')?.record
  const errors = told.filter(({ as }) => as === 'errors').map(({ record }) => record)
  return { ...(cause === undefined ? {} : { cause }), ...(errors.length === 0 ? {} : { errors }) }
}

const LEADS_BACK: ErrorRecord = { name: 'Error', message: '(leads back to an error above)' }

/** An error, or an object that talks like one: it has a message. */
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

/** The stack begins by repeating the message. Where that was cut, it is cut here too: the frames below are worth more. */
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

/** A property of a stranger's object, or undefined when reading it throws. */
function read(error: object, key: string): unknown {
  return attempt(() => (error as Readonly<Record<string, unknown>>)[key])
}

function attempt<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    // What cannot be read is not there; the rest of the error still is.
    return undefined
  }
}
