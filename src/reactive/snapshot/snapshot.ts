import type { Codec } from '../../codec/codec.js'
import { defaultCodec } from '../../codec/codec.js'
import { CodecError } from '../../errors.js'
import { checkRecord } from '../context/options.js'
import type { ReactiveContext } from '../context/context.js'
import { SerializeError, describe } from '../errors.js'
import { checkStored } from './check-stored.js'
import type { StoredContext } from './stored.js'
import { storeContext } from './take.js'

export interface SnapshotOptions {
  /** Whether the snapshot has the events that are queued: writes, deliveries and posts. Default: true. */
  readonly includePending?: boolean | undefined
  /** Whether a spin with a run in progress is stored without its last result. Default: true. */
  readonly cleanInFlight?: boolean | undefined
}

/**
 * The state of a context at one moment. It never changes, whatever the context does later. Restore it with
 * `restore(snapshot)`, or write it as text with `serialize()`.
 */
export interface Snapshot {
  /** The addresses of the cells and spins that it has, sorted. */
  readonly addresses: readonly string[]
  /**
   * Returns it as text; the same state gives the same text. Throws `SerializeError` with the address of a value that the
   * codec cannot write. Default codec: JSON with tags for `undefined`, `Date`, `Map`, `Set`, `bigint`, bytes and errors.
   */
  serialize(codec?: Codec): string
}

/** Takes a snapshot of a context. */
export function takeSnapshot(context: ReactiveContext, options: SnapshotOptions): Snapshot {
  checkRecord('snapshot', options)
  const { includePending = true, cleanInFlight = true, ...others } = options
  const problems = Object.keys(others).map((name) => `unknown option ${name}; known are includePending, cleanInFlight`)
  for (const [name, value] of Object.entries({ includePending, cleanInFlight })) {
    if (typeof value !== 'boolean') problems.push(`${name} must be true or false, got ${describe(value)}`)
  }
  if (problems.length > 0) throw new TypeError(`snapshot: ${problems.join('; ')}`)
  return new StoredSnapshot(storeContext(context, { includePending, cleanInFlight }))
}

/**
 * Reads the text that `snapshot.serialize()` wrote. Throws `SerializeError` for any other text.
 *
 * ```ts
 * import { type Context, deserialize, restore } from 'millrace/reactive'
 *
 * const copyOf = (ctx: Context): Context => restore(deserialize(ctx.snapshot().serialize()))
 * ```
 */
export function deserialize(text: string, codec: Codec = defaultCodec): Snapshot {
  if (typeof text !== 'string') {
    throw new SerializeError(`deserialize takes the text of a snapshot, got ${describe(text)}`)
  }
  let stored: unknown
  try {
    stored = codec.decode(text)
  } catch (error) {
    throw new SerializeError(`this text is not a snapshot: ${describe(error)}`, { cause: error })
  }
  checkStored(stored)
  return new StoredSnapshot(stored)
}

/** Returns what a snapshot holds; throws when the value is none. */
export function storedIn(snapshot: unknown, what: string): StoredContext {
  if (snapshot instanceof StoredSnapshot) return snapshot.stored
  const hint = typeof snapshot === 'string' ? '; read text with deserialize(text) first' : ''
  throw new TypeError(
    `${what} takes a snapshot of ctx.snapshot() or deserialize(text), got ${describe(snapshot)}${hint}`,
  )
}

class StoredSnapshot implements Snapshot {
  readonly #stored: StoredContext
  readonly addresses: readonly string[]

  constructor(stored: StoredContext) {
    this.#stored = stored
    this.addresses = Object.freeze(Object.keys(stored.cells).sort())
    Object.freeze(this)
  }

  get stored(): StoredContext {
    return this.#stored
  }

  serialize(codec: Codec = defaultCodec): string {
    const text = encode(codec, this.#stored, () => this.#findUnwritable(codec))
    if (typeof text !== 'string') {
      throw new SerializeError(`the codec must write a snapshot as text, and wrote ${describe(text)}`)
    }
    return sortKeys(text)
  }

  /** The error for the first part that the codec cannot write. */
  #findUnwritable(codec: Codec): SerializeError | undefined {
    const { cells, queue } = this.#stored
    for (const [addr, cell] of Object.entries(cells)) {
      const problem = unwritable(codec, addr, cell)
      if (problem !== undefined) return problem
    }
    for (const event of queue) {
      const problem = unwritable(codec, `the queued ${event.type} of ${event.addr}`, event)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

function encode(codec: Codec, stored: StoredContext, explain: () => SerializeError | undefined): string | Uint8Array {
  try {
    return codec.encode(stored)
  } catch (error) {
    throw explain() ?? new SerializeError(`the snapshot cannot be written: ${describe(error)}`, { cause: error })
  }
}

function unwritable(codec: Codec, addr: string, part: unknown): SerializeError | undefined {
  try {
    codec.encode(part)
    return undefined
  } catch (error) {
    const at = error instanceof CodecError && error.path !== '' ? ` at ${error.path}` : ''
    return new SerializeError(
      `${addr}: its state cannot be written${at}: ${describe(error)}; store plain data, or pass a codec with its type`,
      { cause: error, addr, path: error instanceof CodecError ? error.path : '' },
    )
  }
}

/** The same JSON with the keys of each object in order. A codec that writes another format is left alone. */
function sortKeys(text: string): string {
  let tree: unknown
  try {
    tree = JSON.parse(text)
  } catch {
    return text // An encrypted text, for example: the codec reads it back itself.
  }
  return sorted(tree)
}

function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const record = value as Readonly<Record<string, unknown>>
  const fields = Object.keys(record).sort()
  return `{${fields.map((key) => `${JSON.stringify(key)}:${sorted(record[key])}`).join(',')}}`
}
