/**
 * A promise that knows whether a handler was attached to it. If none was, its rejection is not an unhandled one: the code that
 * made it calls `failure()` and reports the error in another way.
 */
export class ObservedPromise<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  isObserved = false

  static of<T>(promise: PromiseLike<T>): ObservedPromise<T> {
    const observed = new ObservedPromise<T>((resolve, reject) => void promise.then(resolve, reject))
    void observed.failure()
    return observed
  }

  // An await calls this too, since the class is not Promise itself.
  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  override then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isObserved = true
    return super.then(fulfilled, rejected)
  }

  /** Why it was rejected, if no handler was attached to it. This call itself does not count as one. */
  failure(): Promise<{ readonly error: unknown } | undefined> {
    return super.then(
      () => undefined,
      (error: unknown) => (this.isObserved ? undefined : { error }),
    )
  }
}
