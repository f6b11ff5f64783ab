import { reason } from '../../../codec/show.js'
import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { answerWithin, connectWithin, cutClient, endClient } from '../connection/client.js'
import type { PgClient } from '../connection/client.js'
import { MISSED } from '../connection/session.js'
import type { Target } from '../connection/target.js'

/** How long after a loss it is tried again. */
const AGAIN_MS = 1_000
/** How often the line is asked whether it still hears, and how long it may take to answer. */
const CHECK_MS = 5_000
const PATIENCE_MS = 5_000

/** Where we listen past a pooler: whether this is the right server, and to whom it is reported that it cannot be listened to. */
export interface Direct {
  check(client: PgClient): Promise<string | undefined>
  report(wrong: string): void
}

/**
 * Listens for commits of other processes, from the main thread, where no heartbeat thread does. A connection that was lost, or
 * no longer delivers, is made again and then reports that hints may be missing; the poll finds those. It does not keep the
 * process alive.
 */
export class Listener {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string
  readonly #heard: (news: string) => void
  #client: PgClient | undefined
  #next: Cancel | undefined
  #isOn = false
  /** Settles when it listens, or could not for now. */
  ready: Promise<void> = Promise.resolve()
  #wasLost = false
  readonly #direct: Direct | undefined
  /** That it does not listen was reported, and it has not listened since. */
  #isReported = false
  /** What `direct` names was wrong: no more is tried. */
  #isGivenUp = false

  constructor(target: Target, world: World, listen: string, heard: (news: string) => void, direct?: Direct) {
    this.#direct = direct
    // A worker does not wait for this one: what came before it listens was missed.
    this.#wasLost = direct !== undefined
    this.#target = target
    this.#world = world
    this.#listen = listen
    this.#heard = heard
  }

  on(): void {
    if (this.#isOn || this.#isGivenUp) return
    this.#isOn = true
    this.ready = this.#begin()
  }

  async off(): Promise<void> {
    this.#isOn = false
    this.#next?.()
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) await endClient(client, this.#world.timers)
  }

  async #begin(): Promise<void> {
    const client = this.#target.makeClient()
    this.#client = client
    const lost = (): void => this.#lost(client)
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', ({ payload }) => this.#heard(payload ?? ''))
    try {
      await connectWithin(client, this.#world.timers, PATIENCE_MS)
      client.unref?.()
      const wrong = await this.#direct?.check(client)
      if (wrong !== undefined) return await this.#giveUp(wrong)
      await this.#ask(client, this.#listen)
      if (this.#wasLost) this.#heard(MISSED)
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
      const { rows } = await this.#ask(client, 'select 1 from pg_listening_channels()')
      if (rows.length === 0) await this.#ask(client, this.#listen)
      this.#after(CHECK_MS, () => this.#check(client))
    } catch {
      this.#lost(client)
    }
  }

  /** It leads elsewhere: to try again would not help, also not when the next caller wants to hear. */
  async #giveUp(wrong: string): Promise<void> {
    this.#isGivenUp = true
    this.#direct?.report(wrong)
    await this.off()
  }

  #reportOnce(error: unknown): void {
    if (this.#isReported) return
    this.#isReported = true
    this.#direct?.report(`cannot be reached: ${reason(error)}`)
  }

  #ask(client: PgClient, text: string): Promise<{ rows: unknown[] }> {
    return answerWithin(client, this.#world.timers, PATIENCE_MS, client.query({ text, values: [] }))
  }

  #lost(client: PgClient): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#wasLost = true
    cutClient(client)
    this.#after(AGAIN_MS, () => this.#begin())
  }

  #after(ms: number, then: () => Promise<void>): void {
    this.#next?.()
    if (this.#isOn) this.#next = this.#world.timers.after(ms, () => void then(), { idle: true })
  }
}
