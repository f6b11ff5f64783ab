import type { World } from '../../world/world.js'
import type { Heart } from '../workers.js'
import { startHeart } from './heart.js'
import { Listener } from './listen.js'
import { MISSED } from './session.js'
import type { Target } from './target.js'

/** One connection hears for this process: the heart's while a worker runs, else one of the main thread's. */
export class Ears {
  readonly #target: Target
  readonly #listen: string | null
  readonly #listener: Listener | undefined
  #heard: ((news: string) => void) | undefined
  readonly #hearts = new Set<Heart>()
  #isClosed = false

  constructor(target: Target, world: World, listen: string | null) {
    this.#target = target
    this.#listen = listen
    if (listen !== null) this.#listener = new Listener(target, world, listen, (news) => this.#heard?.(news))
  }

  listen(heard: (news: string) => void): void {
    this.#heard = heard
    this.#listenAgain()
  }

  async startHeart(options: {
    readonly worker: string
    readonly everyMs: number
    readonly beat: string
    readonly onLost: (why: string) => void
  }): Promise<Heart | undefined> {
    // First the one and then the other: there are never two of them.
    await this.#listener?.off()
    const heart = await startHeart({
      ...options,
      target: this.#target,
      listen: this.#listen,
      heard: (news) => this.#heard?.(news),
    })
    if (heart !== undefined) this.#hearts.add(heart)
    if (this.#isClosed) await heart?.stop()
    if (heart === undefined) this.#listenAgain()
    else this.#heard?.(MISSED)
    return heart === undefined ? undefined : { stop: () => this.#stop(heart) }
  }

  /** A heart that nobody stopped, because the store could not be written in time, ends here. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#listener?.off(), ...[...this.#hearts].map((heart) => heart.stop())])
  }

  async #stop(heart: Heart): Promise<void> {
    await heart.stop()
    if (this.#hearts.delete(heart)) this.#listenAgain()
  }

  #listenAgain(): void {
    if (this.#hearts.size === 0 && this.#heard !== undefined && !this.#isClosed) this.#listener?.on()
  }
}
