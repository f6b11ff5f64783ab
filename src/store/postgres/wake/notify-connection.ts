import { reason } from '../../../codec/show.js'
import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { answerWithin, connectWithin, cutClient, endClient } from '../connection/client.js'
import type { PgClient } from '../connection/client.js'
import { HINTS_MISSED } from '../connection/session.js'
import type { Target } from '../connection/target.js'

/** Delay before a lost connection is made again. */
const RECONNECT_MS = 1_000
/** Interval between checks that the connection still listens, and the time limit of each answer. */
const CHECK_MS = 5_000
const ANSWER_MS = 5_000

/**
 * For `postgres(url, { listen })`, a connection that bypasses the pooler: checks that it reaches the same server, and
 * reports why it cannot listen.
 */
export interface Direct {
  check(client: PgClient): Promise<string | undefined>
  report(wrong: string): void
}

/**
 * Listens for commits of other processes on the main thread, while no heartbeat thread does. When the connection is
 * lost or no longer delivers, it reconnects and then reports that hints may be missing; the poll finds their work. It
 * does not keep the process alive.
 */
export class NotifyConnection {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string
  readonly #onPayload: (payload: string) => void
  #client: PgClient | undefined
  #next: Cancel | undefined
  #isOn = false
  /** Settles when the connection listens, or the attempt to has failed. */
  ready: Promise<void> = Promise.resolve()
  #wasLost = false
  readonly #direct: Direct | undefined
  /** A failure to listen was reported, and the connection has not listened since. */
  #isReported = false
  /** The server named by `listen` is the wrong one: no further attempt is made. */
  #isStoppedForGood = false

  constructor(target: Target, world: World, listen: string, onPayload: (payload: string) => void, direct?: Direct) {
    this.#direct = direct
    // A worker does not wait for a direct connection, so hints may be missed before it listens.
    this.#wasLost = direct !== undefined
    this.#target = target
    this.#world = world
    this.#listen = listen
    this.#onPayload = onPayload
  }

  on(): void {
    if (this.#isOn || this.#isStoppedForGood) return
    this.#isOn = true
    this.ready = this.#connect()
  }

  async off(): Promise<void> {
    this.#isOn = false
    this.#next?.()
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) await endClient(client, this.#world.timers)
  }

  async #connect(): Promise<void> {
    const client = this.#target.makeClient()
    this.#client = client
    const lost = (): void => this.#lost(client)
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', ({ payload }) => this.#onPayload(payload ?? ''))
    try {
      await connectWithin(client, this.#world.timers, ANSWER_MS)
      client.unref?.()
      const wrong = await this.#direct?.check(client)
      if (wrong !== undefined) return await this.#stopForGood(wrong)
      await this.#query(client, this.#listen)
      if (this.#wasLost) this.#onPayload(HINTS_MISSED)
      this.#wasLost = false
      this.#isReported = false
      this.#after(CHECK_MS, () => this.#check(client))
    } catch (error) {
      if (this.#client === client) this.#reportOnce(error)
      lost()
    }
  }

  async #check(client: PgClient): Promise<void> {
    try {
      const { rows } = await this.#query(client, 'select 1 from pg_listening_channels()')
      if (rows.length === 0) await this.#query(client, this.#listen)
      this.#after(CHECK_MS, () => this.#check(client))
    } catch {
      this.#lost(client)
    }
  }

  /** The address reaches another server. A retry would not help, also not when the next caller starts to listen. */
  async #stopForGood(wrong: string): Promise<void> {
    this.#isStoppedForGood = true
    this.#direct?.report(wrong)
    await this.off()
  }

  #reportOnce(error: unknown): void {
    if (this.#isReported) return
    this.#isReported = true
    this.#direct?.report(`cannot be reached: ${reason(error)}`)
  }

  #query(client: PgClient, text: string): Promise<{ rows: unknown[] }> {
    return answerWithin(client, this.#world.timers, ANSWER_MS, client.query({ text, values: [] }))
  }

  #lost(client: PgClient): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#wasLost = true
    cutClient(client)
    this.#after(RECONNECT_MS, () => this.#connect())
  }

  #after(ms: number, then: () => Promise<void>): void {
    this.#next?.()
    if (this.#isOn) this.#next = this.#world.timers.after(ms, () => void then(), { idle: true })
  }
}
