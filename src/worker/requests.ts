import type { Store } from '../store/store.js'
import { SingleFlight } from '../world/single-flight.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'
import type { Members } from './roster.js'
import type { Running } from './running.js'

export interface ListenerParts {
  readonly world: World
  readonly store: Store
  /** How often requests are read without a hint. */
  readonly everyMs: () => number
  /** What runs here now. */
  readonly running: Members<Running>
  /** Something was asked, or a look is due: held jobs may have been taken or their queue paused. */
  readonly doubt: () => void
  readonly cancelled: (running: Running, reason: string) => void
  readonly troubled: (what: string, error: unknown) => void
}

/**
 * Hears what others want of the jobs in hand: at once when a hint says that something was asked, else at the next look.
 * Only a cancel is told to a handler; a pause is the store's to honour when the attempt ends.
 */
export class Listener {
  readonly #parts: ListenerParts
  #timer: Cancel | undefined
  #unhint: Cancel | undefined
  readonly #reads: SingleFlight

  constructor(parts: ListenerParts) {
    this.#parts = parts
    this.#reads = new SingleFlight(() => this.#look())
  }

  get isReading(): boolean {
    return this.#reads.isRunning
  }

  start(): void {
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.requested) this.#hear()
    })
    this.#next()
  }

  stop(): void {
    this.#unhint?.()
    this.#timer?.()
  }

  #next(): void {
    const look = (): void => {
      this.#hear()
      this.#next()
    }
    this.#timer = this.#parts.world.timers.after(this.#parts.everyMs(), look, { idle: true })
  }

  #hear(): void {
    this.#parts.doubt()
    if (this.#reads.isRunning || this.#parts.running.size > 0) void this.#reads.request()
  }

  async #look(): Promise<void> {
    try {
      await tellWishes(this.#parts)
    } catch (error) {
      this.#parts.troubled('read wishes', error)
    }
  }
}

/** Tells every handler here whose job was cancelled. */
export async function tellWishes(parts: Pick<ListenerParts, 'store' | 'running' | 'cancelled'>): Promise<void> {
  const wishes = await parts.store.leases.readRequests()
  if (wishes.length === 0) return
  const cancels = new Map(wishes.filter(({ kind }) => kind === 'cancel').map((wish) => [wish.ref, wish]))
  for (const running of parts.running) {
    const wish = cancels.get(running.claimed.ref)
    if (wish?.fence === running.claimed.fence && !running.settled) parts.cancelled(running, wish.reason)
  }
}
