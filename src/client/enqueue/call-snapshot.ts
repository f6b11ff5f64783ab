import { isOptionsObject } from '../../codec/options-object.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable } from '../../job/definition/schema.js'

/*
 * A call stores its arguments as they were when it was made. Hooks and asynchronous checks may run between the call and the
 * insert, and the caller may reuse a buffer or an options object meanwhile. So both are copied at the call.
 */

/** A payload encoded at the call, for a call that passes through hooks. It replaces the payload from then on. */
export class PayloadSnapshot {
  readonly encoded: Encoded
  readonly #registered: Registered
  readonly #payload: unknown

  constructor(registered: Registered, payload: unknown, encoded: Encoded) {
    this.#registered = registered
    this.#payload = payload
    this.encoded = encoded
  }

  /** The stored value, decoded: checks, titles and `unique` see what will be stored. */
  read(): unknown {
    try {
      return this.#registered.codec.decode(this.encoded)
    } catch {
      // A codec that encrypts may be able to write here and not to read.
      return this.#payload
    }
  }
}

/** A copy of the options of a call, lists included. Each is read once. A value that is no options object is returned unchanged, to be refused later. */
export function copyOptions<T extends Pick<EnqueueOptions, 'labels'> | undefined>(options: T): T {
  try {
    if (!isOptionsObject(options) || isThenable(options)) return options
    const copy: Record<string, unknown> = { ...options }
    for (const name of COPIED_DEEPLY) if (copy[name] !== undefined) copy[name] = copyValue(copy[name])
    return copy as T
  } catch {
    // A getter or a proxy threw. The check of the options gets the same error and reports it.
    return options
  }
}

/** Options that are objects or lists. The codec copies `meta`, and a transaction handle (`tx`) must not be copied. */
const COPIED_DEEPLY = ['labels', 'retry', 'unique', 'after', 'in', 'at', 'expires'] as const

/** Copies a list, a date, or an object that contains them. */
export function copyValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => (Array.isArray(one) ? one.slice() : one))
  if (value instanceof Date) return new Date(value)
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, copyValue(inner)]))
}
