import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import type { Members } from './indexed-set.js'

/** Something that acts, and by the monotonic clock when it is slow, times out or ends its grace. */
export interface Alarmed {
  readonly alarmAt: number
  readonly slowAt: number
}

/**
 * One timer for all that acts, set to the next moment at which one of them is due. A timer for each would cost more than a fast
 * handler does.
 */
export class Alarms<Item extends Alarmed> {
  readonly #world: World
  readonly #acting: Members<Item>
  readonly #onDue: (item: Item, now: number) => void
  #at = Infinity
  #cancel: Cancel | undefined

  /** `onDue` acts on one that is due and may move its times. */
  constructor(world: World, acting: Members<Item>, onDue: (item: Item, now: number) => void) {
    this.#world = world
    this.#acting = acting
    this.#onDue = onDue
  }

  /** One of them began, or its times were moved: the timer is moved only when it comes sooner. */
  watch(item: Item): void {
    const at = nextMoment(item)
    if (at < this.#at) this.#set(at)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#at = Infinity
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
    for (const item of this.#acting) if (nextMoment(item) <= now) this.#onDue(item, now)
    let next = Infinity
    for (const item of this.#acting) next = Math.min(next, nextMoment(item))
    if (next !== Infinity) this.#set(Math.max(next, now + 1))
  }
}

function nextMoment({ alarmAt, slowAt }: Alarmed): number {
  return Math.min(alarmAt, slowAt)
}
