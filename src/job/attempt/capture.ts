import type { Codec } from '../../codec/codec.js'
import { problemOf } from '../../codec/path.js'
import { reason } from '../../codec/show.js'
import { CodecError, DefinitionError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { isThenable, ignoreRejection } from '../definition/schema.js'
import { fromStoredValue, toStoredValue } from '../definition/stored-options.js'
import type { Captured, StoredValue } from '../definition/stored-options.js'

/** The most bytes of all stored captured values of one job together. */
export const CAPTURED_MAX_BYTES = 16 * 1024

/** An AsyncLocalStorage, or an object with the same two methods. */
export interface ContextStore {
  /** The value of the current async context; undefined when there is none. */
  getStore(): unknown
  /** Calls `call` in a context with `value`. `value` is undefined when there was none at the enqueue. */
  run(value: never, call: () => unknown): unknown
}

/** The context that is captured at each enqueue and restored when the job runs, by name. */
export interface CaptureOptions {
  /** OpenTelemetry's trace context, when its API is loaded. Default true. */
  readonly trace?: ContextStore | boolean | undefined
  /** A store of yours. */
  readonly [name: string]: ContextStore | boolean | undefined
}

/** Calls a function in the captured context of a job. */
export type RunInContext = <T>(call: () => T) => T

export interface CaptureResult {
  readonly captured: Captured | undefined
  readonly problems: readonly Problem[]
}

/**
 * Captures context at the enqueue and restores it where the job runs. A store without a value at the enqueue has none in the
 * handler either: the context of the code that woke the worker must not leak into a job.
 */
export class Capture {
  readonly #stores: readonly (readonly [name: string, store: ContextStore])[]
  /** Restored only for jobs that have a captured trace. */
  readonly #trace: ContextStore | undefined
  readonly #codec: Codec

  constructor(stores: Readonly<Record<string, ContextStore>>, trace: ContextStore | undefined, codec: Codec) {
    this.#stores = Object.entries(stores)
    this.#trace = trace
    this.#codec = codec
  }

  /** Reads every store, synchronously in the caller's async context. */
  capture(): CaptureResult {
    const values: [string, StoredValue][] = []
    const problems: Problem[] = []
    if (this.#trace !== undefined) this.#captureOne('trace', this.#trace, values, problems)
    for (const [name, store] of this.#stores) this.#captureOne(name, store, values, problems)
    if (values.length === 0 && problems.length === 0) return NOTHING_CAPTURED
    const tooLarge = sizeProblem(values)
    if (tooLarge !== undefined) problems.push(tooLarge)
    return { captured: Object.fromEntries(values), problems }
  }

  /** A function that calls another in the job's captured context; undefined when there is none. Throws when a value does not decode. */
  restore(captured: Captured | undefined): RunInContext | undefined {
    if (captured === undefined && this.#stores.length === 0) return undefined
    const stores: StoreWithValue[] = []
    if (this.#trace !== undefined && captured !== undefined && Object.hasOwn(captured, 'trace'))
      stores.push([this.#trace, this.#read('trace', captured)])
    for (const [name, store] of this.#stores) stores.push([store, this.#read(name, captured)])
    return stores.length === 0 ? undefined : (call) => runInStores(stores, call)
  }

  #captureOne(name: string, store: ContextStore, values: [string, StoredValue][], problems: Problem[]): void {
    try {
      const value = store.getStore()
      if (isThenable(value)) {
        ignoreRejection(value)
        problems.push({ path: `captured.${name}`, message: 'must be synchronous: its getStore() returned a promise' })
      } else if (value !== undefined) values.push([name, toStoredValue(this.#codec, value)])
    } catch (error) {
      const path = `captured.${name}`
      const problem =
        error instanceof CodecError
          ? problemOf(error, path)
          : { path, message: `could not be written: ${reason(error)}` }
      problems.push({ ...problem, message: `${problem.message} (capture takes it at each enqueue)` })
    }
  }

  #read(name: string, captured: Captured | undefined): unknown {
    const stored = captured !== undefined && Object.hasOwn(captured, name) ? captured[name] : undefined
    if (stored === undefined) return undefined
    try {
      return this.#codec.decode(fromStoredValue(stored))
    } catch (error) {
      throw new CodecError(name, `what was captured as ${JSON.stringify(name)} does not decode: ${reason(error)}`, {
        cause: error,
      })
    }
  }
}

/** The decoded captured values, for a job's record; one that does not decode is left out. */
export function readCaptured(captured: Captured | undefined, codec: Codec): Readonly<Record<string, unknown>> {
  const read: [string, unknown][] = []
  for (const [name, stored] of Object.entries(captured ?? {})) {
    try {
      read.push([name, codec.decode(fromStoredValue(stored))])
    } catch {
      // Perhaps a type of another deploy. The worker that runs the job reports it; the rest of the record is still useful.
    }
  }
  return Object.fromEntries(read)
}

const NOTHING_CAPTURED: CaptureResult = { captured: undefined, problems: [] }

function sizeProblem(values: readonly (readonly [string, StoredValue])[]): Problem | undefined {
  const sizes = values.map(([name, value]) => ({ name, bytes: bytesOf(value) }))
  const bytes = sizes.reduce((sum, size) => sum + size.bytes, 0)
  if (bytes <= CAPTURED_MAX_BYTES) return undefined
  const list = sizes.map((size) => `${size.name} ${size.bytes}`).join(', ')
  const advice = 'capture an id, and look the rest up in the handler'
  return {
    path: 'captured',
    message: `has ${bytes} bytes and the limit is ${CAPTURED_MAX_BYTES} (${list}); ${advice}`,
  }
}

const bytesOf = (value: StoredValue): number => Buffer.byteLength('text' in value ? value.text : value.base64)

type StoreWithValue = readonly [store: ContextStore, value: unknown]

/** Nests the stores. The result of `call` is kept in a variable: the `run` of a user's store may return nothing. */
function runInStores<T>(stores: readonly StoreWithValue[], call: () => T): T {
  let returned: { readonly value: T } | undefined
  let step = (): void => {
    returned = { value: call() }
  }
  for (const [store, value] of stores) {
    const inner = step
    step = () => void store.run(value as never, inner)
  }
  step()
  if (returned === undefined)
    throw new DefinitionError('a store given to capture did not call back: run(value, call) must call `call`')
  return returned.value
}
