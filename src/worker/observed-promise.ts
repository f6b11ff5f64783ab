/**
 * A promise that knows whether anybody listens to it. If nobody does, its rejection is no unhandled one: whoever gave it out
 * asks, and tells of it in another way.
 */
export class ObservedPromise<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  isObserved = false

  static of<T>(promise: PromiseLike<T>): ObservedPromise<T> {
    const heard = new ObservedPromise<T>((resolve, reject) => void promise.then(resolve, reject))
    void heard.failure()
    return heard
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

  /** Why it was rejected, where nobody else has heard it. Asking is not listening. */
  failure(): Promise<{ readonly error: unknown } | undefined> {
    return super.then(
      () => undefined,
      (error: unknown) => (this.isObserved ? undefined : { error }),
    )
  }
}
