import { ClockModeError, DerefInDrainError, describe } from '../errors.js'
import type { Executor, TimerHandle } from './executors.js'
import { checkDelay } from './executors.js'
import type { CancelTimer } from '../host.js'
import * as host from '../host.js'

/** The time of a context and its timers. All that waits for time goes through here. */
export interface Timers {
  now(): number
  /** How many timers are armed. */
  readonly count: number
  /** Calls back once after `ms`. */
  arm(ms: number, fire: () => void): CancelTimer
  cancelAll(): void
}

/** Real time. The timer that fires is believed: no second look at the clock, which may be a millisecond behind. */
export class RealTimers implements Timers {
  readonly #executor: Executor
  readonly #keepAlive: boolean
  readonly #armed = new Set<CancelTimer>()

  constructor(executor: Executor, keepAlive: boolean) {
    this.#executor = executor
    this.#keepAlive = keepAlive
  }

  get count(): number {
    return this.#armed.size
  }

  now(): number {
    return host.wallClock()
  }

  arm(ms: number, fire: () => void): CancelTimer {
    checkDelay(ms)
    let handle: TimerHandle | undefined = undefined
    const cancel = (): void => {
      this.#armed.delete(cancel)
      handle?.cancel()
    }
    this.#armed.add(cancel)
    handle = this.#executor.executeAfter(
      ms,
      () => {
        if (this.#armed.delete(cancel)) fire()
      },
      { keepAlive: this.#keepAlive },
    )
    return cancel
  }

  cancelAll(): void {
    for (const cancel of Array.from(this.#armed)) cancel()
  }
}

/**
 * Time that stands still until it is moved. Timers fire in the order of their due times, and of arming where those
 * are equal; after each the drain runs dry, so what a timer causes is done before the next one fires.
 */
export class VirtualTimers implements Timers {
  #now = 0
  #armings = 0
  readonly #heap: VirtualTimer[] = []
  #cancelled = 0

  get count(): number {
    return this.#heap.length - this.#cancelled
  }

  now(): number {
    return this.#now
  }

  arm(ms: number, fire: () => void): CancelTimer {
    checkDelay(ms)
    const timer: VirtualTimer = { dueAt: this.#now + ms, order: this.#armings++, fire, isDone: false }
    push(this.#heap, timer)
    return () => {
      if (timer.isDone) return
      timer.isDone = true
      this.#cancelled++
      if (this.#cancelled > SWEEP_AT && this.#cancelled * 2 > this.#heap.length) this.#sweep()
    }
  }

  cancelAll(): void {
    this.#heap.length = 0
    this.#cancelled = 0
  }

  /** Moves time to `t`, firing all that is due on the way; gives how many fired. */
  advanceTo(t: number, settle: () => void): number {
    if (typeof t !== 'number' || !Number.isFinite(t) || t < this.#now) {
      throw new RangeError(
        `advanceTo: time only goes forward: expected a finite time of ${this.#now} or later, got ${describe(t)}`,
      )
    }
    let fired = 0
    for (let timer = this.#takeDue(t); timer !== undefined; timer = this.#takeDue(t)) {
      this.#now = timer.dueAt
      timer.fire()
      fired++
      settle()
    }
    this.#now = t
    return fired
  }

  /** Cancelled timers stay where they are until they are the larger half. */
  #sweep(): void {
    const armed = this.#heap.filter((timer) => !timer.isDone)
    this.#heap.length = 0
    this.#cancelled = 0
    for (const timer of armed) push(this.#heap, timer)
  }

  #takeDue(t: number): VirtualTimer | undefined {
    for (let first = this.#heap[0]; first !== undefined && first.dueAt <= t; first = this.#heap[0]) {
      pop(this.#heap)
      if (!first.isDone) {
        first.isDone = true
        return first
      }
      this.#cancelled--
    }
    return undefined
  }
}

/** Below this many cancelled timers, sweeping costs more than they do. */
const SWEEP_AT = 64

interface VirtualTimer {
  readonly dueAt: number
  readonly order: number
  readonly fire: () => void
  isDone: boolean
}

/** The virtual clock of a context, or the error that says how to get one. */
export function requireVirtual(timers: Timers, what: string, isDraining: boolean): VirtualTimers {
  if (!(timers instanceof VirtualTimers)) throw new ClockModeError(what)
  if (isDraining) throw new DerefInDrainError(what)
  return timers
}

function isBefore(a: VirtualTimer, b: VirtualTimer): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order)
}

/** A binary heap: the earliest timer is the first. */
function push(heap: VirtualTimer[], timer: VirtualTimer): void {
  let at = heap.push(timer) - 1
  while (at > 0) {
    const up = (at - 1) >> 1
    const parent = heap[up] as VirtualTimer
    if (!isBefore(timer, parent)) break
    heap[at] = parent
    at = up
  }
  heap[at] = timer
}

function pop(heap: VirtualTimer[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    let down = 2 * at + 1
    if (down >= heap.length) break
    if (down + 1 < heap.length && isBefore(heap[down + 1] as VirtualTimer, heap[down] as VirtualTimer)) down++
    if (!isBefore(heap[down] as VirtualTimer, last)) break
    heap[at] = heap[down] as VirtualTimer
    at = down
  }
  heap[at] = last
}
