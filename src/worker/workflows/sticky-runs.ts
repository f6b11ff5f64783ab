import type { World } from '../../world/world.js'
import type { Driver } from '../../workflow/driver.js'
import type { Cancel } from '../../world/timers.js'

/** A frozen run is kept no longer than this. */
const KEPT_MAX_MS = 300_000

export interface KeptRun {
  readonly driver: Driver
  /** The fence of the claim that suspended it. */
  readonly fence: number
  readonly at: number
}

/**
 * Frozen runs that go on without a replay, if no other claim has read the log since: the store compares the fence. The
 * least recently used are removed first.
 */
export class StickyRuns {
  readonly #world: World
  readonly #max: () => number
  readonly #kept = new Map<string, KeptRun>()
  #timer: Cancel | undefined

  constructor(world: World, max: () => number) {
    this.#world = world
    this.#max = max
  }

  keep(id: string, driver: Driver, fence: number): void {
    this.#kept.delete(id)
    if (this.#max() <= 0) return
    this.#kept.set(id, { driver, fence, at: this.#world.clock.monotonic() })
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#max()) break
      this.#kept.delete(oldest)
    }
    this.#timer ??= this.#world.timers.after(KEPT_MAX_MS, () => this.#expire(), { idle: true })
  }

  take(id: string): KeptRun | undefined {
    const kept = this.#kept.get(id)
    this.#kept.delete(id)
    return kept
  }

  clear(): void {
    this.#kept.clear()
    this.#timer?.()
    this.#timer = undefined
  }

  #expire(): void {
    this.#timer = undefined
    const now = this.#world.clock.monotonic()
    for (const [id, { at }] of this.#kept) if (now - at >= KEPT_MAX_MS) this.#kept.delete(id)
    const [oldest] = this.#kept.values()
    if (oldest !== undefined)
      this.#timer = this.#world.timers.after(Math.max(1, oldest.at + KEPT_MAX_MS - now), () => this.#expire(), {
        idle: true,
      })
  }
}
