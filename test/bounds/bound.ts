import { expect } from 'vitest'
import type { Mill, MillOptions } from '../../src/index.js'
import { job, millrace } from '../../src/index.js'
import type { TestKit, TestOptions } from '../../src/testing/index.js'
import type { MillraceError } from '../../src/errors.js'
import { passingStore } from '../support/fresh-store.js'
import { testing } from '../support/testing.js'

/**
 * One named bound of the product, and what is true just below it, at it and just above it. `test/house/bounds.ts` finds a
 * constant of `src/` that has neither such a case nor a line in `untested.ts`.
 */
export interface Bound {
  /** The file and the constant: `src/client/read/count.ts#COUNT_MAX`. */
  readonly of: string
  /** The value of the constant; the house rule compares it with the source. The case runs at n − 1, n and n + 1. */
  readonly at: number
  /** The stores that have the bound; 'none': the caller is answered before any store is involved. */
  readonly on: 'both' | 'sqlite' | 'postgres' | 'none'
  /** Other constants whose edges the same three runs reach. */
  readonly also?: readonly string[]
  /** It takes a second or more, on each store or on one: `npm test` leaves it out there, `MILLRACE_BOUNDS=all` runs it. */
  readonly isLong?: true | 'postgres'
  /** Part of the name of the test, when one constant has several cases. */
  readonly when?: string
  /** Asserts what is true at this size. The three sizes, from the smallest on, share one bench. */
  readonly holds: (size: number, bench: Bench) => unknown
}

/** A job that does nothing, for cases that only need rows. */
export const noop = job<unknown, unknown>('noop', async () => undefined)

/** The mills of one case. They are made at their first use, and closed when the case has ended. */
export class Bench {
  #kit: Promise<TestKit> | undefined
  #mill: Promise<Mill> | undefined
  /** What the case has made so far: it grows from one size to the next, instead of being made three times. */
  made = 0
  readonly notes: unknown[] = []
  readonly #closing: (() => Promise<unknown>)[] = []

  /** A kit with virtual time; the options count at the first call. */
  kit(options: TestOptions = { jobs: [noop] }): Promise<TestKit> {
    return (this.#kit ??= testing(options))
  }

  /** A kit of its own, for a case about the options of a mill. */
  async another(options: TestOptions): Promise<TestKit> {
    const kit = await testing(options)
    this.closeToo(() => kit.close())
    return kit
  }

  /** A started mill in real time; the options count at the first call. */
  mill(options: MillOptions): Promise<Mill> {
    return (this.#mill ??= started(options))
  }

  /** Calls `add` with how many are missing up to `size`. */
  async grow(size: number, add: (missing: number) => Promise<unknown>): Promise<void> {
    if (size > this.made) await add(size - this.made)
    this.made = size
  }

  closeToo(close: () => Promise<unknown>): void {
    this.#closing.push(close)
  }

  async close(): Promise<void> {
    for (const close of this.#closing) await close()
    await (await this.#kit)?.close()
    await (await this.#mill)?.close()
  }
}

async function started(options: MillOptions): Promise<Mill> {
  const mill = await millrace({ store: passingStore(), logger: false, ...options })
  await mill.start()
  return mill
}

/** `call` succeeds up to the bound, and is refused above it with this code and text. Returns what the call gave. */
export async function refusedAbove<T>(
  size: number,
  most: number,
  call: () => Promise<T> | T,
  refusal: { readonly code: string; readonly text: RegExp },
): Promise<T | undefined> {
  let error: MillraceError | undefined
  let value: T | undefined
  try {
    value = await call()
  } catch (thrown) {
    error = thrown as MillraceError
  }
  if (size <= most) expect(error).toBeUndefined()
  else expect(error).toMatchObject({ code: refusal.code, message: expect.stringMatching(refusal.text) as unknown })
  return value
}

/** A text of so many characters. */
export const text = (length: number): string => 'k'.repeat(length)

/** So many payloads. */
export const payloads = (count: number): readonly { readonly n: number }[] =>
  Array.from({ length: count }, (_, n) => ({ n }))

/** The number of items that an iteration gives. */
export async function lengthOf(items: AsyncIterable<unknown>): Promise<number> {
  let length = 0
  for await (const _ of items) length += 1
  return length
}
