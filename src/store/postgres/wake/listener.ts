import { SingleFlight } from '../../../world/single-flight.js'
import { settledWithin } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import type { LoopShare } from '../../loop-watch.js'
import type { Heartbeat } from '../../workers.js'
import { startHeartbeat } from '../connection/heartbeat.js'
import type { PostgresHeartbeat } from '../connection/heartbeat.js'
import { Listener } from './listen.js'
import type { Direct } from './listen.js'
import { merged, MISSED } from '../connection/session.js'
import type { Target } from '../connection/target.js'

/** Who closes waits so long for what is still to be told. */
const TOLD_MS = 1_000

/**
 * One connection listens and notifies for this process: that of the heartbeat thread while a worker runs, else one of the main
 * thread. Hints that arrive while a notification is being sent are merged into the next one: however fast commits come, one
 * notification at a time is under way.
 */
export class HintListener {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string | null
  readonly #isPast: boolean
  readonly #listener: Listener | undefined
  readonly #tellOtherwise: (news: string) => Promise<unknown>
  #heard: ((news: string) => void) | undefined
  readonly #heartbeats = new Set<PostgresHeartbeat>()
  #isClosed = false
  #news: string | undefined
  readonly #telling = new SingleFlight(() => this.#tellMerged())

  /** `tellOtherwise` serves where this process does not listen; `past` is where to listen past a pooler. */
  constructor(
    target: Target,
    world: World,
    listen: string | null,
    tellOtherwise: (news: string) => Promise<unknown>,
    past?: Direct & { readonly target: Target },
  ) {
    this.#target = target
    this.#world = world
    this.#listen = past === undefined ? listen : null
    this.#isPast = past !== undefined
    this.#tellOtherwise = tellOtherwise
    if (listen !== null)
      this.#listener = new Listener(past?.target ?? target, world, listen, (news) => this.#heard?.(news), past)
  }

  listen(heard: (news: string) => void): void {
    this.#heard = heard
    this.#listenAgain()
  }

  /** Resolves when we hear what callers commit, if we are to. */
  async listening(): Promise<void> {
    await this.#listener?.ready
  }

  tell(news: string): void {
    this.#news = this.#news === undefined ? news : merged(this.#news, news)
    void this.#telling.request()
  }

  /** Resolves when all is told, or soon. */
  async told(): Promise<void> {
    if (this.#telling.isRunning) await settledWithin(this.#world.timers, this.#telling.idle(), TOLD_MS)
  }

  async startHeartbeat(options: {
    readonly worker: string
    readonly everyMs: number
    readonly beat: string
    readonly notify: string
    readonly markBlocking: string
    readonly loop: LoopShare | undefined
    readonly onLost: (why: string) => void
  }): Promise<Heartbeat | undefined> {
    // First the one and then the other: there are never two of them.
    if (!this.#isPast) await this.#listener?.off()
    const heart = await startHeartbeat({
      ...options,
      target: this.#target,
      listen: this.#listen,
      heard: (news) => this.#heard?.(news),
    })
    if (heart !== undefined) this.#heartbeats.add(heart)
    if (this.#isClosed) await heart?.stop()
    if (heart === undefined) this.#listenAgain()
    else this.#heard?.(MISSED)
    return heart === undefined ? undefined : { watchesLoop: heart.watchesLoop, stop: () => this.#stop(heart) }
  }

  /** A heartbeat that was not stopped, because the store could not be written in time, ends here. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#listener?.off(), ...[...this.#heartbeats].map((heart) => heart.stop())])
  }

  async #tellMerged(): Promise<void> {
    const news = this.#news
    if (news === undefined) return
    this.#news = undefined
    // A process that misses a hint finds the work at its next poll.
    await this.#tellOnce(news).catch(() => undefined)
  }

  #tellOnce(news: string): Promise<unknown> {
    const [heart] = this.#heartbeats
    return heart === undefined ? this.#tellOtherwise(news) : heart.tell(news)
  }

  async #stop(heart: PostgresHeartbeat): Promise<void> {
    await heart.stop()
    if (this.#heartbeats.delete(heart)) this.#listenAgain()
  }

  #listenAgain(): void {
    if ((this.#isPast || this.#heartbeats.size === 0) && this.#heard !== undefined && !this.#isClosed)
      this.#listener?.on()
  }
}
