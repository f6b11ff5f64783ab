import { show } from './show.js'
import { fieldsIn, listIn, textIn } from './check-written.js'

/** The parts of an error that are kept. Every function that creates errors from text uses it. */
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

/** Only these classes are created from text; a name is never looked up on an object. */
const CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((made) => [made.name, made]),
)

export function builtInClass(name: string): ErrorConstructor | undefined {
  return CLASSES.get(name)
}

/** Creates an error of that shape: of the built-in class with that name by default, else an Error with that name. */
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

/** Also true for errors of another realm, such as those that Node throws inside the context of a test runner. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

/** Properties of an error that have their own field in its written form. */
export const NAMED: ReadonlySet<string> = new Set(['name', 'message', 'stack', 'cause', 'errors'])

/** The written form of an error. Other own enumerable properties are kept separately, so that none can replace its name. */
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

/** Creates an error from its written form. */
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

/** Defines a property like the JavaScript engine does on errors: not enumerable. */
function hide(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false })
}
