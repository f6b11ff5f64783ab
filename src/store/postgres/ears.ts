import type { World } from '../../world/world.js'
import type { Heart } from '../workers.js'
import { startHeart } from './heart.js'
import { Listener } from './listen.js'
import type { Target } from './target.js'

/** One connection hears for this process: the heart's while a worker runs, else one of the main thread's. */
export class Ears {
  readonly #target: Target
  readonly #listen: string | null
  readonly #listener: Listener | undefined
  #heard: ((news: string) => void) | undefined
  #hearts = 0
  #isClosed = false

  constructor(target: Target, world: World, listen: string | null) {
    this.#target = target
    this.#listen = listen
    if (listen !== null) this.#listener = new Listener(target, world, listen, (news) => this.#heard?.(news))
  }

  listen(heard: (news: string) => void): void {
    this.#heard = heard
    if (this.#hearts === 0) this.#listener?.on()
  }

  async startHeart(options: {
    readonly worker: string
    readonly everyMs: number
    readonly beat: string
    readonly onLost: (why: string) => void
  }): Promise<Heart | undefined> {
    const heart = await startHeart({
      ...options,
      target: this.#target,
      listen: this.#listen,
      heard: (news) => this.#heard?.(news),
    })
    if (heart === undefined) return undefined
    this.#hearts += 1
    await this.#listener?.off()
    return { stop: () => this.#stop(heart) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#listener?.off()
  }

  async #stop(heart: Heart): Promise<void> {
    await heart.stop()
    this.#hearts -= 1
    if (this.#hearts === 0 && this.#heard !== undefined && !this.#isClosed) this.#listener?.on()
  }
}
