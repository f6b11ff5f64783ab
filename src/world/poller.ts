import type { Cancel } from './timers.js'
import type { World } from './world.js'

/**
 * Looks after something, one look at a time and at the earliest moment that was asked for. Each look says how long it may be
 * until the next one; it must not throw.
 */
export class Poller {
  readonly #world: Pick<World, 'clock' | 'timers'>
  readonly #look: () => Promise<number>
  readonly #options: { readonly idle?: boolean }
  #isOn = false
  #timer: Cancel | undefined
  #dueAt = Infinity
  #working: Promise<void> | undefined
  #again = false

  /** With `idle` its timer does not keep the process alive. */
  constructor(
    world: Pick<World, 'clock' | 'timers'>,
    look: () => Promise<number>,
    options: { readonly idle?: boolean } = {},
  ) {
    this.#world = world
    this.#look = look
    this.#options = options
  }

  start(firstInMs = 0): void {
    this.#isOn = true
    this.pollIn(firstInMs)
  }

  async stop(): Promise<void> {
    this.#isOn = false
    this.#timer?.()
    await this.#working
  }

  /** Sets the timer, unless it is set to an earlier moment already. */
  pollIn(ms: number): void {
    const at = this.#world.clock.monotonic() + ms
    if (at >= this.#dueAt) return
    this.#timer?.()
    this.#dueAt = at
    const look = (): void => {
      this.#dueAt = Infinity
      // A look under way may have read before what this one is to see was written.
      if (this.#working !== undefined) this.#again = true
      else this.#working = this.#once().finally(() => (this.#working = undefined))
    }
    this.#timer = this.#world.timers.after(ms, look, this.#options)
  }

  async #once(): Promise<void> {
    const waitMs = await this.#look()
    if (this.#isOn) this.pollIn(this.#again ? 0 : waitMs)
    this.#again = false
  }
}
