import { Fifo } from './fifo.js'

/**
 * One drainer for one queue.
 *
 * Whatever causes work puts an event in the queue and asks for a session. However many ask, at most one session is
 * outstanding and at most one is at work, so events are handled one after another in the order they came:
 *
 *     enqueue ──▶ queue ──▶ session: lock ▸ take, handle, take, handle … ▸ unlock ▸ something came meanwhile? ask again
 *        └── asks for a session, unless one is asked for already
 *
 * The last step closes the gap between the final `take` and the unlock: an event that arrives there would otherwise
 * lie until somebody else enqueues. What a session does with the events is the caller's affair: the reactive engine
 * handles them one by one, each alone (`eachAlone`), while a group commit takes all there are and returns a promise,
 * and what arrives during the commit rides in the next one. The lock is held until that promise has settled.
 */
export interface DrainerOptions<E> {
  /** Arranges for `session` to be called later. `afterPause` is set when the last session stopped for fairness. */
  readonly schedule: (session: () => void, afterPause: boolean) => void
  /** Handles events until `take()` gives undefined, or for as long as it likes. A promise holds the lock. */
  readonly session: (take: () => E | undefined) => Handled | Promise<Handled>
  /** Asked before each session and each take; when false nothing is taken. Default: always. */
  readonly mayRun?: () => boolean
  /** Called with what a session threw or rejected with; it never reaches the scheduler. */
  readonly failed: (error: unknown) => void
  /** Called after the lock was released and no event is left. */
  readonly emptied?: () => void
  /** For tests: called between the last take and the release of the lock. */
  readonly beforeRelease?: () => void
}

/** What a session did: how many events it handled, and whether it paused with more to do. */
export interface Handled {
  readonly count: number
  readonly paused: boolean
}

export class Drainer<E> {
  readonly #queue = new Fifo<E>()
  readonly #options: DrainerOptions<E>
  #isAsked = false
  #isLocked = false

  constructor(options: DrainerOptions<E>) {
    this.#options = options
  }

  get pending(): number {
    return this.#queue.length
  }

  get isDraining(): boolean {
    return this.#isLocked
  }

  /** Adds an event. No user code runs before this returns; `trigger()` asks for the session. */
  enqueue(event: E): void {
    this.#queue.push(event)
  }

  /** Forgets what is queued. */
  clear(): void {
    while (this.#queue.shift() !== undefined);
  }

  /** Asks for a session, at most once until it has begun. */
  trigger(afterPause = false): void {
    if (this.#isAsked || this.#isLocked || this.#queue.length === 0 || !this.#mayRun()) return
    this.#isAsked = true
    try {
      this.#options.schedule(this.#scheduled, afterPause)
    } catch (error) {
      this.#isAsked = false // Nobody will come; the next one who asks tries again.
      throw error
    }
  }

  /** Runs a session now; 0 at once when one is at work or nothing may run. */
  drain(): number | Promise<number> {
    if (!this.#mayRun() || this.#isLocked) return 0
    this.#isLocked = true
    let handled: Handled | Promise<Handled>
    try {
      handled = this.#options.session(this.#take)
    } catch (error) {
      this.#isLocked = false // Before any call: after a stack overflow that could fail too.
      return this.#fail(error)
    }
    if (!(handled instanceof Promise)) return this.#release(handled)
    return handled.then(
      (result) => this.#release(result),
      (error: unknown) => {
        this.#isLocked = false
        return this.#fail(error)
      },
    )
  }

  readonly #scheduled = (): void => {
    this.#isAsked = false
    void this.drain()
  }

  readonly #take = (): E | undefined => (this.#mayRun() ? this.#queue.shift() : undefined)

  #release(handled: Handled): number {
    this.#options.beforeRelease?.()
    this.#isLocked = false
    this.#goOn(handled.paused)
    return handled.count
  }

  #fail(error: unknown): number {
    try {
      this.#options.failed(error)
    } finally {
      this.#goOn(false)
    }
    return 0
  }

  #goOn(afterPause: boolean): void {
    if (this.#queue.length > 0) this.trigger(afterPause)
    else this.#options.emptied?.()
  }

  #mayRun(): boolean {
    return this.#options.mayRun?.() ?? true
  }
}

/** How long one session may go on before others get their turn. */
export interface Budget {
  readonly events: number
  readonly ms: number
}

/** Handles events one by one, each in its own try: what one throws is given to `failed` and the next is taken. */
export function eachAlone<E>(
  take: () => E | undefined,
  handle: (event: E) => void,
  failed: (event: E, error: unknown) => void,
  budget?: Budget & { readonly monotonic: () => number },
): Handled {
  let count = 0
  const startedAt = budget?.monotonic() ?? 0
  for (let event = take(); event !== undefined; event = take()) {
    try {
      handle(event)
    } catch (error) {
      failed(event, error)
    }
    count++
    if (budget !== undefined && isSpent(budget, count, startedAt)) return { count, paused: true }
  }
  return { count, paused: false }
}

/** Reading the clock costs more than a small event, so it is read every eighth time. */
function isSpent(budget: Budget & { readonly monotonic: () => number }, count: number, startedAt: number): boolean {
  return count >= budget.events || (count % 8 === 0 && budget.monotonic() - startedAt >= budget.ms)
}
