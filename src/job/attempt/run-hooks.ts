import { HookError } from '../../errors.js'
import { isThenable, ignoreRejection } from '../definition/schema.js'

/** The function that a hook wraps: it returns a value or a promise. */
type Inner<Change> = (change?: Change) => unknown

export interface HookRunOptions {
  /** The caller is inside a synchronous transaction: `next` must be called, and errors thrown, before this call returns. */
  readonly sync?: boolean | undefined
  /** Receives the error of a hook that failed too late to change the result. */
  readonly failed: (error: unknown) => void
}

/**
 * Calls `inner` through one hook, which must call `next` once. The result is that of `inner`, not of the hook, so that a forgotten
 * `return` or a swallowed error changes nothing. An error that the hook throws replaces the result. The result settles only after
 * `inner` has: a hook that gives up on a handler must not free the handler's slot.
 * With `sync` the hook must have called `next` when it returns, and what it throws until then is thrown. A later failure of the
 * promise that it returned is only reported.
 */
export function runThroughHook<Change>(
  which: string,
  hook: (next: Inner<Change>) => unknown,
  inner: Inner<Change>,
  options: HookRunOptions,
): unknown {
  const call = new HookCall(which, inner, options.failed)
  let returned: unknown
  try {
    returned = hook((change) => call.next(change))
  } catch (error) {
    return options.sync === true ? call.throwSync(error) : call.fail(error)
  }
  if (!isThenable(returned) || returned === call.nextResult) return call.end()
  if (options.sync === true) return call.endSync(returned)
  return Promise.resolve(returned).then(
    () => call.end(),
    (error: unknown) => call.fail(error),
  )
}

type InnerResult = { readonly value: unknown } | { readonly thrown: unknown; readonly value: Promise<never> }

class HookCall<Change> {
  readonly #which: string
  readonly #inner: Inner<Change>
  readonly #failed: HookRunOptions['failed']
  #innerResult: InnerResult | undefined
  #hasEnded = false

  constructor(which: string, inner: Inner<Change>, failed: HookRunOptions['failed']) {
    this.#which = which
    this.#inner = inner
    this.#failed = failed
  }

  /** The return value of `next`. */
  get nextResult(): unknown {
    return this.#innerResult?.value
  }

  next(change: Change | undefined): unknown {
    if (this.#innerResult !== undefined) {
      // The first call has taken effect. An error thrown here would report a failure that did not happen.
      this.#failed(
        this.#misuse('called next() twice; once is all there is, and the second call was given the first one’s result'),
      )
      return this.#innerResult.value
    }
    // The hook called next() later, perhaps from a timer. No code awaits it, and the rejection must not end the process.
    if (this.#hasEnded)
      return ignoreRejection(Promise.reject(this.#misuse('called next() after it had ended; wait for it with await')))
    this.#innerResult = this.#callInner(change)
    return this.#innerResult.value
  }

  /** A synchronous throw becomes a rejected promise for the hook, so that `next().finally(…)` covers every failure. */
  #callInner(change: Change | undefined): InnerResult {
    try {
      const value = this.#inner(change)
      // The hook may await it late, or never. The result reports its failure.
      return { value: isThenable(value) ? ignoreRejection(value) : value }
    } catch (thrown) {
      return { thrown, value: ignoreRejection(Promise.reject(thrown as Error)) }
    }
  }

  end(): unknown {
    this.#hasEnded = true
    if (this.#innerResult === undefined) throw this.#misuse('ended without calling next(); throw an error to refuse')
    if ('thrown' in this.#innerResult) throw this.#innerResult.thrown
    return this.#innerResult.value
  }

  fail(error: unknown): unknown {
    this.#hasEnded = true
    const rethrow = (): never => {
      throw error
    }
    return isThenable(this.nextResult) ? this.nextResult.then(rethrow, rethrow) : rethrow()
  }

  throwSync(error: unknown): never {
    this.#hasEnded = true
    throw error
  }

  /** Ends without awaiting the promise that the hook returned. */
  endSync(returned: PromiseLike<unknown>): unknown {
    if (this.#innerResult === undefined) {
      ignoreRejection(returned)
      this.throwSync(
        this.#misuse(
          'awaited before it called next(), and with tx everything must happen within the call; call next() first',
        ),
      )
    }
    const inside = Promise.resolve(this.nextResult).catch((error: unknown) => error)
    Promise.resolve(returned).catch(async (error: unknown) => {
      // The result has already reported a failure of `inner` that the hook only passed on.
      if ((await inside) !== error) this.#failed(error)
    })
    return this.end()
  }

  #misuse(what: string): HookError {
    return new HookError(`hooks.${this.#which} ${what}`)
  }
}
