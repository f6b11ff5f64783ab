import type { Codec } from '../../codec/codec.js'
import { problemOf } from '../../codec/path.js'
import { reason } from '../../codec/show.js'
import { CodecError, DefinitionError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import { isThenable, ignoreRejection } from '../definition/schema.js'
import { fromStoredValue, toStoredValue } from '../definition/stored-options.js'
import type { Captured, StoredValue } from '../definition/stored-options.js'

/** What all captured values of a job may take as they are stored. */
export const CAPTURED_MAX_BYTES = 16 * 1024

/** An AsyncLocalStorage, or anything that can be asked, and put in place, like one. */
export interface ContextStore {
  /** The value in place here and now; undefined when there is none. */
  getStore(): unknown
  /** Calls `call` with `value` in place. `value` is undefined for a job that was enqueued where there was none. */
  run(value: never, call: () => unknown): unknown
}

/** What is taken at each enqueue and in place when the job runs, by name. */
export interface CaptureOptions {
  /** OpenTelemetry's trace context, when its API is loaded. Default true. */
  readonly trace?: ContextStore | boolean | undefined
  /** A store of yours. */
  readonly [name: string]: ContextStore | boolean | undefined
}

/** Calls something with a job's captured values in place. */
export type RunInContext = <T>(call: () => T) => T

export interface CaptureResult {
  readonly captured: Captured | undefined
  readonly problems: readonly Problem[]
}

/**
 * Takes context at enqueue and puts it in place where the job runs. A store that had no value at the enqueue has none in
 * the handler either: what happened to be in place where a worker was woken is nobody's business.
 */
export class Capture {
  readonly #stores: readonly (readonly [name: string, store: ContextStore])[]
  /** Asked for, and not put in place for jobs without it. */
  readonly #trace: ContextStore | undefined
  readonly #codec: Codec

  constructor(stores: Readonly<Record<string, ContextStore>>, trace: ContextStore | undefined, codec: Codec) {
    this.#stores = Object.entries(stores)
    this.#trace = trace
    this.#codec = codec
  }

  /** Reads every store, at once and in the caller's own turn. */
  capture(): CaptureResult {
    const written: [string, StoredValue][] = []
    const problems: Problem[] = []
    if (this.#trace !== undefined) this.#takeOne('trace', this.#trace, written, problems)
    for (const [name, store] of this.#stores) this.#takeOne(name, store, written, problems)
    if (written.length === 0 && problems.length === 0) return NOTHING_CAPTURED
    const tooLarge = sizeProblem(written)
    if (tooLarge !== undefined) problems.push(tooLarge)
    return { captured: Object.fromEntries(written), problems }
  }

  /** How to call something with a job's values in place, or undefined when there is nothing to put. Throws what does not decode. */
  restore(captured: Captured | undefined): RunInContext | undefined {
    if (captured === undefined && this.#stores.length === 0) return undefined
    const places: StoreWithValue[] = []
    if (this.#trace !== undefined && captured !== undefined && Object.hasOwn(captured, 'trace'))
      places.push([this.#trace, this.#read('trace', captured)])
    for (const [name, store] of this.#stores) places.push([store, this.#read(name, captured)])
    return places.length === 0 ? undefined : (call) => enter(places, call)
  }

  #takeOne(name: string, store: ContextStore, written: [string, StoredValue][], problems: Problem[]): void {
    try {
      const value = store.getStore()
      if (isThenable(value)) {
        ignoreRejection(value)
        problems.push({ path: `captured.${name}`, message: 'must be synchronous: its getStore() returned a promise' })
      } else if (value !== undefined) written.push([name, toStoredValue(this.#codec, value)])
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
    const written = captured !== undefined && Object.hasOwn(captured, name) ? captured[name] : undefined
    if (written === undefined) return undefined
    try {
      return this.#codec.decode(fromStoredValue(written))
    } catch (error) {
      throw new CodecError(name, `what was captured as ${JSON.stringify(name)} does not decode: ${reason(error)}`, {
        cause: error,
      })
    }
  }
}

/** The captured values as people read them; one that does not decode is left out. */
export function readCaptured(captured: Captured | undefined, codec: Codec): Readonly<Record<string, unknown>> {
  const read: [string, unknown][] = []
  for (const [name, written] of Object.entries(captured ?? {})) {
    try {
      read.push([name, codec.decode(fromStoredValue(written))])
    } catch {
      // A type of another deploy: the worker that runs the job says so, and the rest of the record is still of use.
    }
  }
  return Object.fromEntries(read)
}

const NOTHING_CAPTURED: CaptureResult = { captured: undefined, problems: [] }

function sizeProblem(written: readonly (readonly [string, StoredValue])[]): Problem | undefined {
  const sizes = written.map(([name, value]) => ({ name, bytes: bytesOf(value) }))
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

/** One inside the other. What `call` gave is kept aside, so that a store whose `run` returns nothing loses nothing. */
function enter<T>(places: readonly StoreWithValue[], call: () => T): T {
  let given: { readonly value: T } | undefined
  let step = (): void => {
    given = { value: call() }
  }
  for (const [store, value] of places) {
    const inner = step
    step = () => void store.run(value as never, inner)
  }
  step()
  if (given === undefined)
    throw new DefinitionError('a store given to capture did not call back: run(value, call) must')
  return given.value
}
