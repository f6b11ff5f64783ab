import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { LoopWatch } from './loop-watch.js'
import type { LoopWatchParts } from './loop-watch.js'
import type { Members } from './indexed-set.js'
import type { Running } from '../attempt/running.js'

/**
 * One timer for all running attempts, set to the next moment at which one of them is slow, times out or ends its grace. A timer
 * for each would cost more than a fast handler does.
 */
export class Watchdog {
  /** Finds handlers that block the event loop, and with it this timer. */
  readonly loop: LoopWatch
  readonly #world: World
  readonly #running: Members<Running>
  readonly #onDue: (running: Running, now: number) => void
  #at = Infinity
  #cancel: Cancel | undefined

  /** `onDue` acts on an overdue attempt and may move its times. */
  constructor(parts: LoopWatchParts, running: Members<Running>, onDue: (running: Running, now: number) => void) {
    this.#world = parts.world
    this.loop = new LoopWatch(parts, running)
    this.#running = running
    this.#onDue = onDue
  }

  /** A job began: the timer is moved only when this one comes sooner. */
  watch(running: Running): void {
    this.loop.began(running)
    const at = nextMoment(running)
    if (at < this.#at) this.#set(at)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#at = Infinity
    this.loop.detach()
  }

  #set(at: number): void {
    this.#cancel?.()
    this.#at = at
    this.#cancel = this.#world.timers.after(Math.max(0, at - this.#world.clock.monotonic()), () => this.#round(), {
      idle: true,
    })
  }

  #round(): void {
    this.#at = Infinity
    this.#cancel = undefined
    const now = this.#world.clock.monotonic()
    for (const running of this.#running) if (nextMoment(running) <= now) this.#onDue(running, now)
    let next = Infinity
    for (const running of this.#running) next = Math.min(next, nextMoment(running))
    if (next !== Infinity) this.#set(Math.max(next, now + 1))
  }
}

function nextMoment(running: Running): number {
  return Math.min(running.alarmAt, running.slowAt)
}
