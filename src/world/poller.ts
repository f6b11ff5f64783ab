import { SingleFlight } from './single-flight.js'
import type { Cancel } from './timers.js'
import type { World } from './world.js'

/**
 * Runs a poll repeatedly: one at a time, at the earliest requested moment. Each poll returns the number of milliseconds until
 * the next one; it must not throw.
 */
export class Poller {
  readonly #world: Pick<World, 'clock' | 'timers'>
  readonly #poll: () => Promise<number>
  readonly #options: { readonly idle?: boolean }
  #isOn = false
  #timer: Cancel | undefined
  #dueAt = Infinity
  readonly #polls = new SingleFlight(() => this.#runOnce())

  /** With `idle` its timer does not keep the process alive. */
  constructor(
    world: Pick<World, 'clock' | 'timers'>,
    poll: () => Promise<number>,
    options: { readonly idle?: boolean } = {},
  ) {
    this.#world = world
    this.#poll = poll
    this.#options = options
  }

  start(firstInMs = 0): void {
    this.#isOn = true
    this.pollIn(firstInMs)
  }

  async stop(): Promise<void> {
    this.#isOn = false
    this.#timer?.()
    await this.#polls.idle()
  }

  /** Sets the timer, unless it is already set to an earlier moment. */
  pollIn(ms: number): void {
    const at = this.#world.clock.monotonic() + ms
    if (at >= this.#dueAt) return
    this.#timer?.()
    this.#dueAt = at
    const run = (): void => {
      this.#dueAt = Infinity
      void this.#polls.request()
    }
    this.#timer = this.#world.timers.after(ms, run, this.#options)
  }

  async #runOnce(): Promise<void> {
    if (!this.#isOn) return
    const waitMs = await this.#poll()
    if (this.#isOn) this.pollIn(waitMs)
  }
}
