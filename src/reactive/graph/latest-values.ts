import type { ReactiveContext } from '../context/context.js'
import { InvalidOptionsError } from '../../errors.js'
import { ContextStoppedError } from '../errors.js'
import * as host from '../host.js'

/** What can be read value by value: a signal or computed. */
interface Values<T> {
  get(): T
  [Symbol.asyncIterator](): AsyncIterableIterator<T>
  /** Signals only; see `SignalNode`. */
  onDispose?(context: ReactiveContext, end: () => void): (() => void) | undefined
}

/**
 * The latest values of a cell for one reader, beginning with the present one. It keeps one value: a write replaces the
 * value that the reader has not taken yet, so a slow reader costs no memory and gets no outdated values. It observes the
 * cell from the first `next()` on. It ends when the reader ends it, or after the last value when the signal is disposed or
 * the context stops; an error of a computed is thrown in the reader and ends it, too.
 */
export class LatestValues<T> implements AsyncIterableIterator<T> {
  readonly #context: ReactiveContext
  readonly #cell: Values<T>
  /** The value that the reader has not taken. */
  #unread: { readonly value: T } | undefined
  #error: { readonly thrown: unknown } | undefined
  #waiting: Waiting<T>[] = []
  #state: 'new' | 'open' | 'ended' = 'new'
  #release: (() => void)[] = []

  constructor(context: ReactiveContext, cell: Values<T>) {
    this.#context = context
    this.#cell = cell
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return this
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#state === 'new') this.#open()
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#serve()
    })
  }

  return(): Promise<IteratorResult<T>> {
    this.#unread = undefined
    this.#end()
    return Promise.resolve({ done: true, value: undefined })
  }

  #open(): void {
    this.#state = 'open'
    const context = this.#context
    if (context.state !== 'running') {
      this.#error = { thrown: new ContextStoppedError('values', context.state) }
      this.#state = 'ended'
      return
    }
    const observer = context.observe(() => this.#receive())
    const end = (): void => {
      observer.refresh() // A write whose drain has not come yet: the reader gets the last value before its end.
      this.#end()
    }
    context.endings.add(end)
    this.#release.push(
      () => observer.dispose(),
      () => void context.endings.delete(end),
    )
    // A computed is never disposed.
    const cancel = this.#cell.onDispose === undefined ? (): void => {} : this.#cell.onDispose(context, end)
    if (cancel !== undefined) this.#release.push(cancel)
    // The first run of the effect may have ended it already: then nothing is released later.
    if (cancel === undefined || this.#error !== undefined) this.#end()
  }

  /** Runs as an effect: takes the value and records the dependency. */
  #receive(): void {
    try {
      this.#unread = { value: this.#cell.get() }
    } catch (thrown) {
      this.#error = { thrown }
    }
    this.#serve()
  }

  #serve(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (this.#unread !== undefined) {
        const { value } = this.#unread
        this.#unread = undefined
        first.resolve({ done: false, value })
      } else if (this.#error !== undefined) {
        const { thrown } = this.#error
        this.#error = undefined
        first.reject(thrown)
        this.#waiting.shift()
        return this.#end()
      } else if (this.#state === 'ended') {
        first.resolve({ done: true, value: undefined })
      } else return
      this.#waiting.shift()
    }
  }

  #end(): void {
    this.#state = 'ended'
    for (const release of this.#release.splice(0)) release()
    this.#serve()
  }
}

interface Waiting<T> {
  readonly resolve: (result: IteratorResult<T>) => void
  readonly reject: (error: unknown) => void
}

/** A stream that asks for a value only when its reader does: it buffers nothing, and has no options. */
export function streamOf<T>(cell: Values<T>, options: readonly unknown[]): ReadableStream<T> {
  refuseOptions(options)
  const values = cell[Symbol.asyncIterator]()
  return host.makeStream<T>(
    () => values.next(),
    () => void values.return?.(),
  )
}

function refuseOptions([given]: readonly unknown[]): void {
  if (given === undefined) return
  const message = 'is no option: stream() has none, and its reader gets the latest value whenever it asks'
  const names = typeof given === 'object' && given !== null ? Object.keys(given) : ['options']
  if (names.length > 0)
    throw new InvalidOptionsError(
      'stream()',
      names.map((path) => ({ path, message })),
    )
}

const DEFERRED = /^\[object (Async|Generator)/

/** True for async functions and generator functions: a call of one has not run its code, or not all, when it returns. */
export function isDeferredFunction(f: object): boolean {
  return DEFERRED.test(Object.prototype.toString.call(f))
}
