import { settledWithin } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import type { Heart } from '../workers.js'
import { startHeart } from './heart.js'
import type { PostgresHeart } from './heart.js'
import { Listener } from './listen.js'
import { merged } from './session.js'
import type { Target } from './target.js'

/** Who closes waits so long for what is still to be told. */
const TOLD_MS = 1_000

/**
 * One connection hears and tells for this process: the heart's while a worker runs, else one of the main thread's. What is
 * to be told while something is being told is told together: however fast commits come, news is one at a time.
 */
export class Ears {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string | null
  readonly #listener: Listener | undefined
  readonly #tellOtherwise: (news: string) => Promise<unknown>
  #heard: ((news: string) => void) | undefined
  #hearts: PostgresHeart[] = []
  #isClosed = false
  #news: string | undefined
  #telling: Promise<void> | undefined

  /** `tellOtherwise` serves where nobody listens here. */
  constructor(target: Target, world: World, listen: string | null, tellOtherwise: (news: string) => Promise<unknown>) {
    this.#target = target
    this.#world = world
    this.#listen = listen
    this.#tellOtherwise = tellOtherwise
    if (listen !== null) this.#listener = new Listener(target, world, listen, (news) => this.#heard?.(news))
  }

  listen(heard: (news: string) => void): void {
    this.#heard = heard
    if (this.#hearts.length === 0) this.#listener?.on()
  }

  /** Resolves when we hear what callers commit, if we are to. */
  async listening(): Promise<void> {
    await this.#listener?.ready
  }

  tell(news: string): void {
    this.#news = this.#news === undefined ? news : merged(this.#news, news)
    this.#telling ??= this.#tellAll()
  }

  /** Resolves when all is told, or soon. */
  async told(): Promise<void> {
    if (this.#telling !== undefined) await settledWithin(this.#world.timers, this.#telling, TOLD_MS)
  }

  async startHeart(options: {
    readonly worker: string
    readonly everyMs: number
    readonly beat: string
    readonly notify: string
    readonly onLost: (why: string) => void
  }): Promise<Heart | undefined> {
    const heart = await startHeart({
      ...options,
      target: this.#target,
      listen: this.#listen,
      heard: (news) => this.#heard?.(news),
    })
    if (heart === undefined) return undefined
    this.#hearts.push(heart)
    await this.#listener?.off()
    return { stop: () => this.#stop(heart) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#listener?.off()
  }

  async #tellAll(): Promise<void> {
    while (this.#news !== undefined) {
      const news = this.#news
      this.#news = undefined
      // A hint that is lost costs somebody a poll.
      await this.#tellOnce(news).catch(() => undefined)
    }
    this.#telling = undefined
  }

  #tellOnce(news: string): Promise<unknown> {
    const [heart] = this.#hearts
    return heart === undefined ? this.#tellOtherwise(news) : heart.tell(news)
  }

  async #stop(heart: PostgresHeart): Promise<void> {
    this.#hearts = this.#hearts.filter((one) => one !== heart)
    await heart.stop()
    if (this.#hearts.length === 0 && this.#heard !== undefined && !this.#isClosed) this.#listener?.on()
  }
}
