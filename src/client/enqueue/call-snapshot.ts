import { isOptionsObject } from '../../codec/options-object.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable } from '../../job/definition/schema.js'

/*
 * What counts is what was given at the call. Between the call and the write there may be hooks and checks that wait, and the
 * caller goes on meanwhile: a buffer is emptied and filled anew, an options object is used for the next call.
 */

/** A payload as it was when the call was made, for a call that goes through hooks. It stands in the payload's place. */
export class PayloadSnapshot {
  readonly encoded: Encoded
  readonly #registered: Registered
  readonly #payload: unknown

  constructor(registered: Registered, payload: unknown, encoded: Encoded) {
    this.#registered = registered
    this.#payload = payload
    this.encoded = encoded
  }

  /** The value for checks, titles and `unique` to look at, when there are any: what is looked at is what is stored. */
  read(): unknown {
    try {
      return this.#registered.codec.decode(this.encoded)
    } catch {
      // A codec that encrypts may be unable to read here what it writes.
      return this.#payload
    }
  }
}

/** The options of a call, each read once and copied, lists too; what is no options object stays as it is, to be refused. */
export function copyOptions<T extends Pick<EnqueueOptions, 'labels'> | undefined>(options: T): T {
  try {
    if (!isOptionsObject(options) || isThenable(options)) return options
    const own: Record<string, unknown> = { ...options }
    for (const name of COPIED) if (own[name] !== undefined) own[name] = copyValue(own[name])
    return own as T
  } catch {
    // A getter or a proxy threw: whoever checks it meets the same, and says so.
    return options
  }
}

/** Options that are objects or lists. The value of `meta` is the codec's to copy, and a handle is nobody's. */
const COPIED = ['labels', 'retry', 'unique', 'after', 'in', 'at', 'expires'] as const

/** Of a list, a date, or an object that holds them. */
export function copyValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => (Array.isArray(one) ? one.slice() : one))
  if (value instanceof Date) return new Date(value)
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, copyValue(inner)]))
}
