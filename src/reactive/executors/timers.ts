import { LazySet } from '../drain/lazy-collections.js'
import { ClockModeError, DerefInDrainError, describe } from '../errors.js'
import type { Executor, TimerHandle } from './executors.js'
import { checkDelay } from './executors.js'
import { outsideContext } from '../context/ambient.js'
import type { CancelTimer } from '../host.js'
import * as host from '../host.js'

/** The time of a context and its timers. Every wait for time uses it. */
export interface Timers {
  now(): number
  /** How many timers are armed, without those that forks have armed on this clock. */
  readonly count: number
  /** How many timers forks have armed on this clock. */
  lent: number
  /** Calls `fire` once after `ms`. */
  arm(ms: number, fire: () => void): CancelTimer
  cancelAll(): void
}

/**
 * Real time. A timer that fires is not compared with the clock, which may be a millisecond behind. A timer that keeps the
 * process alive also keeps its context reachable: a sleeping job is not garbage. Another one refers to it weakly, so that a
 * context without other references can be collected.
 */
export class RealTimers implements Timers {
  readonly #executor: Executor
  readonly #keepAlive: boolean
  readonly #armed = new LazySet<ArmedTimer>()
  /** The handles of weak timers: what to cancel when the context was collected. */
  readonly handles = new Set<TimerHandle>()
  lent = 0

  constructor(executor: Executor, keepAlive: boolean) {
    this.#executor = executor
    this.#keepAlive = keepAlive
  }

  get count(): number {
    return this.#armed.size - this.lent
  }

  now(): number {
    return host.wallClock()
  }

  arm(ms: number, fire: () => void): CancelTimer {
    checkDelay(ms)
    const timer: ArmedTimer = { fire, timers: this, handle: undefined }
    this.#armed.add(timer)
    timer.handle = this.#keepAlive
      ? this.#executor.executeAfter(ms, () => ended(timer), { keepAlive: true })
      : this.#armWeakly(ms, timer)
    return () => this.#cancel(timer)
  }

  /** Called when a timer has fired: calls what it was armed for, unless it was cancelled. */
  ended(timer: ArmedTimer): void {
    if (!this.#forget(timer)) return
    timer.fire()
  }

  cancelAll(): void {
    for (const timer of Array.from(this.#armed)) this.#cancel(timer)
  }

  /** The timer of the host must not capture the context: also not as the current one of the async-local store. */
  #armWeakly(ms: number, timer: ArmedTimer): TimerHandle {
    const ref = new WeakRef(timer)
    const handle = outsideContext(() => executeWeakly(this.#executor, ms, ref))
    this.handles.add(handle)
    return handle
  }

  #cancel(timer: ArmedTimer): void {
    if (this.#forget(timer)) timer.handle?.cancel()
  }

  #forget(timer: ArmedTimer): boolean {
    if (timer.handle !== undefined) this.handles.delete(timer.handle)
    return this.#armed.delete(timer)
  }
}

interface ArmedTimer {
  readonly fire: () => void
  readonly timers: RealTimers
  handle: TimerHandle | undefined
}

function ended(timer: ArmedTimer): void {
  timer.timers.ended(timer)
}

/** A function of its own: a closure inside a method would hold everything that the method's other closures use. */
function executeWeakly(executor: Executor, ms: number, ref: WeakRef<ArmedTimer>): TimerHandle {
  const fire = (): void => {
    const timer = ref.deref()
    if (timer !== undefined) ended(timer)
  }
  return executor.executeAfter(ms, fire, { keepAlive: false })
}

/**
 * Time that moves only by `advanceTo`. Timers fire in the order of their due times; equal due times fire in the order in
 * which they were armed. After each timer the queue is drained, so its effects are complete before the next one fires.
 */
export class VirtualTimers implements Timers {
  #now: number
  #armings = 0
  readonly #heap: VirtualTimer[] = []
  #cancelled = 0
  lent = 0

  constructor(now = 0) {
    this.#now = now
  }

  get count(): number {
    return this.#heap.length - this.#cancelled - this.lent
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

  /** Moves time to `t` and fires every timer due on the way; returns the number of timers fired. */
  advanceTo(t: number, settle: () => void): number {
    if (typeof t !== 'number' || !Number.isFinite(t) || t < this.#now) {
      throw new RangeError(
        `advanceTo: time only moves forward: expected a finite time of ${this.#now} or later, got ${describe(t)}`,
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

  /** Cancelled timers stay in the heap until they are more than half of it. */
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

/** Below this many cancelled timers, a sweep costs more than it saves. */
const SWEEP_AT = 64

interface VirtualTimer {
  readonly dueAt: number
  readonly order: number
  readonly fire: () => void
  isDone: boolean
}

/** Returns the virtual timers of a context; throws an error that says how to get them. */
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
