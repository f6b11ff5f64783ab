import { show } from './show.js'
import { fieldsIn, listIn, textIn } from './written.js'

/** What is kept of an error; what every door that makes errors from text goes through. */
export interface ErrorShape {
  readonly name: string
  readonly message: string
  readonly stack?: string | undefined
  /** Present when the error has a cause, even one that is undefined. */
  readonly cause?: unknown
  /** The errors of an AggregateError. */
  readonly errors?: readonly unknown[] | undefined
  /** Its other own enumerable properties, such as `code`. */
  readonly props?: object | undefined
}

/** Only these classes are made from text, and none by looking a name up on an object. */
const CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((made) => [made.name, made]),
)

export function builtInClass(name: string): ErrorConstructor | undefined {
  return CLASSES.get(name)
}

/** A real error of that shape: by default of the built-in class with that name, else an Error that bears the name. */
export function makeError(shape: ErrorShape, made: ErrorConstructor = CLASSES.get(shape.name) ?? Error): Error {
  const error = shape.errors === undefined ? new made(shape.message) : new AggregateError(shape.errors, shape.message)
  if (error.name !== shape.name) hide(error, 'name', shape.name)
  hide(error, 'stack', shape.stack ?? `${shape.name}: ${shape.message}`)
  if (Object.hasOwn(shape, 'cause')) hide(error, 'cause', shape.cause)
  for (const [key, value] of Object.entries(shape.props ?? {})) {
    Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: true })
  }
  return error
}

/** Also true for errors of another realm, such as those Node throws inside a test runner's own context. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

/** Properties of an error that have a place of their own in its written form. */
export const NAMED: ReadonlySet<string> = new Set(['name', 'message', 'stack', 'cause', 'errors'])

/** The written form of an error. Its own enumerable properties are kept apart, so that none can pose as its name. */
export function writeError(error: Error): object {
  const { name, message, stack }: { name: unknown; message: unknown; stack?: unknown } = error
  const written: Record<string, unknown> = {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : show(message),
  }
  if (typeof stack === 'string') written['stack'] = stack
  if (Object.hasOwn(error, 'cause')) written['cause'] = error.cause
  const errors: unknown = Object.hasOwn(error, 'errors') ? (error as AggregateError).errors : undefined
  const isAggregate = Array.isArray(errors)
  if (isAggregate) written['errors'] = errors
  const props = Object.entries(error).filter(([key]) => !NAMED.has(key) || (key === 'errors' && !isAggregate))
  if (props.length > 0) written['props'] = Object.fromEntries(props)
  return written
}

/** An error from its written form. */
export function readError(written: unknown): Error {
  const shape = fieldsIn(written)
  const name = textIn(shape['name'], 'a name')
  const message = textIn(shape['message'], 'a message')
  return makeError({
    name,
    message,
    stack: shape['stack'] === undefined ? undefined : textIn(shape['stack'], 'a stack'),
    errors: shape['errors'] === undefined ? undefined : listIn(shape['errors']),
    props: shape['props'] === undefined ? undefined : fieldsIn(shape['props']),
    ...(Object.hasOwn(shape, 'cause') ? { cause: shape['cause'] } : {}),
  })
}

/** As the engine defines an error's own properties: there, and in no listing. */
function hide(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false })
}
