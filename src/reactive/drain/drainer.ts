import { Fifo } from './fifo.js'

/**
 * One drainer for one queue.
 *
 * Every cause of work puts an event in the queue and triggers a session. At most one session is scheduled and at most
 * one runs, however often it is triggered, so events are handled one after another in the order of arrival:
 *
 *     enqueue ──▶ queue ──▶ session: lock ▸ take, handle, take, handle … ▸ unlock ▸ queue not empty? trigger again
 *        └── triggers a session, unless one is scheduled already
 *
 * The last step closes the gap between the final `take` and the unlock: an event that arrives there would otherwise
 * wait for the next enqueue. `session` decides how events are handled. The reactive engine handles them one by one and
 * isolates their errors (`handleEach`). A group commit takes all queued events and returns a promise; events that arrive
 * during the commit go into the next one. The lock is held until that promise has settled.
 */
export interface DrainerOptions<E> {
  /** Calls `session` later. `afterPause` is true when the last session stopped because its budget was spent. */
  readonly schedule: (session: () => void, afterPause: boolean) => void
  /** Handles events until `take()` returns undefined, or stops earlier. The lock is held until a returned promise settles. */
  readonly session: (take: () => E | undefined) => SessionResult | Promise<SessionResult>
  /** Checked before each session and each take; while it is false no event is taken. Default: always true. */
  readonly mayRun?: () => boolean
  /** Gets the error of a session that threw or rejected; the scheduler never sees it. */
  readonly failed: (error: unknown) => void
  /** Called after the lock was released and the queue is empty. */
  readonly emptied?: () => void
  /** For tests: called between the last take and the release of the lock. */
  readonly beforeRelease?: () => void
}

/** The result of a session: how many events it handled, and whether it stopped before the queue was empty. */
export interface SessionResult {
  readonly count: number
  readonly paused: boolean
}

export class Drainer<E> {
  readonly #queue = new Fifo<E>()
  readonly #options: DrainerOptions<E>
  #isScheduled = false
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

  /** Adds an event. No user code runs before this returns; the caller calls `trigger()` next. */
  enqueue(event: E): void {
    this.#queue.push(event)
  }

  /** The queued events, in order. */
  queued(): E[] {
    return this.#queue.toArray()
  }

  /** Drops all queued events. */
  clear(): void {
    while (this.#queue.shift() !== undefined);
  }

  /** Schedules a session, unless one is scheduled or running. */
  trigger(afterPause = false): void {
    if (this.#isScheduled || this.#isLocked || this.#queue.length === 0 || !this.#mayRun()) return
    this.#isScheduled = true
    try {
      this.#options.schedule(this.#runScheduled, afterPause)
    } catch (error) {
      this.#isScheduled = false // The executor refused the session, so the next trigger schedules one.
      throw error
    }
  }

  /** Runs a session now; returns 0 when one is running or sessions are not allowed. */
  drain(): number | Promise<number> {
    if (!this.#mayRun() || this.#isLocked) return 0
    this.#isLocked = true
    let handled: SessionResult | Promise<SessionResult>
    try {
      handled = this.#options.session(this.#take)
    } catch (error) {
      this.#isLocked = false // Released before any call: after a stack overflow the next call could throw too.
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

  /** Takes the lock when no session is due or running and the queue is empty. The caller then handles one event itself. */
  lockIfIdle(): boolean {
    if (this.#isLocked || this.#isScheduled || this.#queue.length > 0 || !this.#mayRun()) return false
    this.#isLocked = true
    return true
  }

  /** Ends what `lockIfIdle` began. */
  unlock(): void {
    this.#isLocked = false
    this.#continue(false)
  }

  readonly #runScheduled = (): void => {
    this.#isScheduled = false
    void this.drain()
  }

  readonly #take = (): E | undefined => (this.#mayRun() ? this.#queue.shift() : undefined)

  #release(handled: SessionResult): number {
    this.#options.beforeRelease?.()
    this.#isLocked = false
    this.#continue(handled.paused)
    return handled.count
  }

  #fail(error: unknown): number {
    try {
      this.#options.failed(error)
    } finally {
      this.#continue(false)
    }
    return 0
  }

  #continue(afterPause: boolean): void {
    if (this.#queue.length > 0) this.trigger(afterPause)
    else this.#options.emptied?.()
  }

  #mayRun(): boolean {
    return this.#options.mayRun?.() ?? true
  }
}

/** The limits of one session; beyond them it yields to timers and I/O. */
export interface Budget {
  readonly events: number
  readonly ms: number
}

/** What `handleEach` does with an event, and with the error of one. */
export interface EventHandler<E> {
  handle(event: E): void
  failed(event: E, error: unknown): void
}

/** Handles events one by one. An error of one event goes to `failed`, and the next event is taken. */
export function handleEach<E>(
  take: () => E | undefined,
  handler: EventHandler<E>,
  budget?: Budget & { readonly monotonic: () => number },
): SessionResult {
  let count = 0
  const startedAt = budget?.monotonic() ?? 0
  for (let event = take(); event !== undefined; event = take()) {
    try {
      handler.handle(event)
    } catch (error) {
      handler.failed(event, error)
    }
    count++
    if (budget !== undefined && isSpent(budget, count, startedAt)) return { count, paused: true }
  }
  return { count, paused: false }
}

/** Reading the clock costs more than a small event, so it is read for every eighth event. */
function isSpent(budget: Budget & { readonly monotonic: () => number }, count: number, startedAt: number): boolean {
  return count >= budget.events || (count % 8 === 0 && budget.monotonic() - startedAt >= budget.ms)
}
