import { SingleFlight } from '../../../world/single-flight.js'
import { settledWithin } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import type { LoopShare } from '../../loop-watch.js'
import type { Heartbeat } from '../../workers.js'
import { startHeartbeat } from '../connection/heartbeat.js'
import type { PostgresHeartbeat } from '../connection/heartbeat.js'
import { NotifyConnection } from './notify-connection.js'
import type { Direct } from './notify-connection.js'
import { mergePayloads, HINTS_MISSED } from '../connection/session.js'
import type { Target } from '../connection/target.js'

/** Time limit of a probe: a notification that takes longer is no use. */
const PROBE_MS = 2_000
/** Time limit of a close for hints that are not sent yet. */
const FLUSH_MS = 1_000

/**
 * One connection listens and notifies for this process: that of the heartbeat thread while a worker runs, else one of
 * the main thread. Hints that arrive while a notification is being sent are merged into the next one, so at most one
 * notification is in flight.
 */
export class HintChannel {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string | null
  readonly #isDirect: boolean
  readonly #connection: NotifyConnection | undefined
  readonly #notifyFallback: (payload: string) => Promise<unknown>
  #onPayload: ((payload: string) => void) | undefined
  readonly #heartbeats = new Set<PostgresHeartbeat>()
  #isClosed = false
  /** The probe that is awaited. */
  #probed: { readonly payload: string; readonly resolve: () => void } | undefined
  #payload: string | undefined
  readonly #sending = new SingleFlight(() => this.#sendMerged())

  /** `notifyFallback` sends a notification while no heartbeat runs. `direct` is the connection that bypasses a pooler. */
  constructor(
    target: Target,
    world: World,
    listen: string | null,
    notifyFallback: (payload: string) => Promise<unknown>,
    direct?: Direct & { readonly target: Target },
  ) {
    this.#target = target
    this.#world = world
    this.#listen = direct === undefined ? listen : null
    this.#isDirect = direct !== undefined
    this.#notifyFallback = notifyFallback
    if (listen !== null)
      this.#connection = new NotifyConnection(
        direct?.target ?? target,
        world,
        listen,
        (payload) => this.#receive(payload),
        direct,
      )
  }

  listen(onPayload: (payload: string) => void): void {
    this.#onPayload = onPayload
    this.#resumeListening()
  }

  /** Resolves when this process listens, if it is configured to. */
  async listening(): Promise<void> {
    await this.#connection?.ready
  }

  notify(payload: string): void {
    this.#payload = this.#payload === undefined ? payload : mergePayloads(this.#payload, payload)
    void this.#sending.request()
  }

  /**
   * Whether a notification of this process comes back to it; true where it does not listen. The payload says nothing that
   * a listener acts on.
   */
  async isHeard(payload: string): Promise<boolean> {
    if (this.#connection === undefined || this.#onPayload === undefined) return true
    const heard = new Promise<void>((resolve) => (this.#probed = { payload, resolve }))
    await this.#notifyFallback(payload)
    await settledWithin(this.#world.timers, heard, PROBE_MS)
    const isHeard = this.#probed === undefined
    this.#probed = undefined
    return isHeard
  }

  /** Resolves when all hints are sent, or after `FLUSH_MS`. */
  async flushed(): Promise<void> {
    if (this.#sending.isRunning) await settledWithin(this.#world.timers, this.#sending.idle(), FLUSH_MS)
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
    // The main thread's connection ends before the heartbeat's starts, so that a process never has two of them.
    if (!this.#isDirect) await this.#connection?.off()
    const heartbeat = await startHeartbeat({
      ...options,
      target: this.#target,
      listen: this.#listen,
      onPayload: (payload) => this.#receive(payload),
    })
    if (heartbeat !== undefined) this.#heartbeats.add(heartbeat)
    if (this.#isClosed) await heartbeat?.stop()
    if (heartbeat === undefined) this.#resumeListening()
    else this.#onPayload?.(HINTS_MISSED)
    return heartbeat === undefined
      ? undefined
      : { watchesLoop: heartbeat.watchesLoop, stop: () => this.#stop(heartbeat) }
  }

  /** Also stops a heartbeat that its worker did not stop because the store could not be written in time. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#connection?.off(), ...[...this.#heartbeats].map((heartbeat) => heartbeat.stop())])
  }

  #receive(payload: string): void {
    if (payload === this.#probed?.payload) {
      this.#probed.resolve()
      this.#probed = undefined
    } else this.#onPayload?.(payload)
  }

  async #sendMerged(): Promise<void> {
    const payload = this.#payload
    if (payload === undefined) return
    this.#payload = undefined
    // A process that misses a hint finds the work at its next poll.
    await this.#send(payload).catch(() => undefined)
  }

  #send(payload: string): Promise<unknown> {
    const [heartbeat] = this.#heartbeats
    return heartbeat === undefined ? this.#notifyFallback(payload) : heartbeat.notify(payload)
  }

  async #stop(heartbeat: PostgresHeartbeat): Promise<void> {
    await heartbeat.stop()
    if (this.#heartbeats.delete(heartbeat)) this.#resumeListening()
  }

  #resumeListening(): void {
    if ((this.#isDirect || this.#heartbeats.size === 0) && this.#onPayload !== undefined && !this.#isClosed)
      this.#connection?.on()
  }
}
