import { HookError } from '../errors.js'
import { isThenable } from './schema.js'

/** What a hook goes round: synchronous, or a promise. */
type Inner<Change> = (change?: Change) => unknown

/**
 * Calls `inner` through one hook, which must call `next` once. The result is that of `inner`, whatever the hook returns, so
 * that a forgotten `return` or a swallowed error changes nothing; what the hook itself throws comes before it. Nothing is
 * over before `inner` is: a hook that gave up on its handler must not free the handler's slot.
 * With `sync` a hook may return nothing but what `next` gave, for callers inside a synchronous transaction.
 */
export function around<Change>(
  which: string,
  hook: (next: Inner<Change>) => unknown,
  inner: Inner<Change>,
  sync = false,
): unknown {
  const turn = new Turn(which, inner)
  let returned: unknown
  try {
    returned = hook((change) => turn.next(change))
  } catch (error) {
    return turn.fail(error)
  }
  if (!isThenable(returned) || returned === turn.given) return turn.end()
  if (sync) return turn.refuseAsync(returned)
  return Promise.resolve(returned).then(
    () => turn.end(),
    (error: unknown) => turn.fail(error),
  )
}

class Turn<Change> {
  readonly #which: string
  readonly #inner: Inner<Change>
  #came: { readonly value: unknown } | { readonly thrown: unknown } | undefined
  #over = false

  constructor(which: string, inner: Inner<Change>) {
    this.#which = which
    this.#inner = inner
  }

  /** What `next` gave the hook. */
  get given(): unknown {
    return this.#came !== undefined && 'value' in this.#came ? this.#came.value : undefined
  }

  next(change: Change | undefined): unknown {
    // Called from a timer the hook left behind: nobody is there to catch it, and the process must not pay for it.
    if (this.#over)
      return quiet(Promise.reject(this.#misuse('called next() after it had ended; wait for it with await')))
    if (this.#came !== undefined) throw this.#misuse('called next() twice; once is all there is')
    try {
      const value = this.#inner(change)
      // The hook may look at it late, or never; its failure is told by the result.
      this.#came = { value: isThenable(value) ? quiet(value) : value }
      return value
    } catch (thrown) {
      this.#came = { thrown }
      throw thrown
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

  refuseAsync(returned: PromiseLike<unknown>): never {
    this.#over = true
    quiet(returned)
    throw this.#misuse('returned a promise, and with tx everything must happen within the call; return next() itself')
  }

  #misuse(what: string): HookError {
    return new HookError(`hooks.${this.#which} ${what}`)
  }
}

function quiet<T extends PromiseLike<unknown>>(promise: T): T {
  promise.then(undefined, () => undefined)
  return promise
}
