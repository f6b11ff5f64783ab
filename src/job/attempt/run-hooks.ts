import { HookError } from '../../errors.js'
import { isThenable, ignoreRejection } from '../definition/schema.js'

/** What a hook goes round: synchronous, or a promise. */
type Inner<Change> = (change?: Change) => unknown

export interface HookRunOptions {
  /** Everything must happen within the call: the caller is inside a synchronous transaction, and waits for nothing. */
  readonly sync?: boolean | undefined
  /** Told of a hook's fault that changes nothing any more. */
  readonly failed: (error: unknown) => void
}

/**
 * Calls `inner` through one hook, which must call `next` once. The result is that of `inner`, whatever the hook returns, so
 * that a forgotten `return` or a swallowed error changes nothing; what the hook itself throws comes before it. Nothing is
 * over before `inner` is: a hook that gave up on its handler must not free the handler's slot.
 * With `sync` the hook must have called `next` when it returns, and what it throws until then is thrown; what a promise of
 * its own comes to later is too late to count.
 */
export function runThroughHook<Change>(
  which: string,
  hook: (next: Inner<Change>) => unknown,
  inner: Inner<Change>,
  how: HookRunOptions,
): unknown {
  const turn = new HookCall(which, inner, how.failed)
  let returned: unknown
  try {
    returned = hook((change) => turn.next(change))
  } catch (error) {
    return how.sync === true ? turn.throwNow(error) : turn.fail(error)
  }
  if (!isThenable(returned) || returned === turn.given) return turn.end()
  if (how.sync === true) return turn.endNow(returned)
  return Promise.resolve(returned).then(
    () => turn.end(),
    (error: unknown) => turn.fail(error),
  )
}

type Came = { readonly value: unknown } | { readonly thrown: unknown; readonly value: Promise<never> }

class HookCall<Change> {
  readonly #which: string
  readonly #inner: Inner<Change>
  readonly #failed: HookRunOptions['failed']
  #came: Came | undefined
  #over = false

  constructor(which: string, inner: Inner<Change>, failed: HookRunOptions['failed']) {
    this.#which = which
    this.#inner = inner
    this.#failed = failed
  }

  /** What `next` gave the hook. */
  get given(): unknown {
    return this.#came?.value
  }

  next(change: Change | undefined): unknown {
    if (this.#came !== undefined) {
      // What is written is written: an error now would tell the caller of a failure that did not happen.
      this.#failed(
        this.#misuse('called next() twice; once is all there is, and the second call was given the first one’s result'),
      )
      return this.#came.value
    }
    // Called from a timer the hook left behind: nobody is there to catch it, and the process must not pay for it.
    if (this.#over)
      return ignoreRejection(Promise.reject(this.#misuse('called next() after it had ended; wait for it with await')))
    this.#came = this.#call(change)
    return this.#came.value
  }

  /** A failure is always a promise's for the hook, at once or later, so that `next().finally(…)` meets every one of them. */
  #call(change: Change | undefined): Came {
    try {
      const value = this.#inner(change)
      // The hook may look at it late, or never; its failure is told by the result.
      return { value: isThenable(value) ? ignoreRejection(value) : value }
    } catch (thrown) {
      return { thrown, value: ignoreRejection(Promise.reject(thrown as Error)) }
    }
  }

  end(): unknown {
    this.#over = true
    if (this.#came === undefined) throw this.#misuse('ended without calling next(); throw an error to refuse')
    if ('thrown' in this.#came) throw this.#came.thrown
    return this.#came.value
  }

  fail(error: unknown): unknown {
    this.#over = true
    const rethrow = (): never => {
      throw error
    }
    return isThenable(this.given) ? this.given.then(rethrow, rethrow) : rethrow()
  }

  throwNow(error: unknown): never {
    this.#over = true
    throw error
  }

  /** The end where nobody waits for what the hook still does. */
  endNow(returned: PromiseLike<unknown>): unknown {
    if (this.#came === undefined) {
      ignoreRejection(returned)
      this.throwNow(
        this.#misuse(
          'awaited before it called next(), and with tx everything must happen within the call; call next() first',
        ),
      )
    }
    const inside = Promise.resolve(this.given).catch((error: unknown) => error)
    Promise.resolve(returned).catch(async (error: unknown) => {
      // A failure of what is inside that only passed through the hook has been told.
      if ((await inside) !== error) this.#failed(error)
    })
    return this.end()
  }

  #misuse(what: string): HookError {
    return new HookError(`hooks.${this.#which} ${what}`)
  }
}
