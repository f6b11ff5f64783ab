import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { answerWithin, connectWithin, cutClient, endClient } from './client.js'
import type { PgClient } from './client.js'
import { MISSED } from './session.js'
import type { Target } from './target.js'

/** How long after a loss it is tried again. */
const AGAIN_MS = 1_000
/** How often the line is asked whether it still hears, and how long it may take to answer. */
const CHECK_MS = 5_000
const PATIENCE_MS = 5_000

/**
 * Hears what others commit, from the main thread: where no heart does. A line that was lost, or has gone deaf, is made anew
 * and then tells that it missed something; the poll lies under it. It does not keep the process alive.
 */
export class Listener {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string
  readonly #heard: (news: string) => void
  #client: PgClient | undefined
  #next: Cancel | undefined
  #isOn = false
  /** Settles when it hears, or could not for now. */
  ready: Promise<void> = Promise.resolve()
  #wasLost = false

  constructor(target: Target, world: World, listen: string, heard: (news: string) => void) {
    this.#target = target
    this.#world = world
    this.#listen = listen
    this.#heard = heard
  }

  on(): void {
    if (this.#isOn) return
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
      await this.#ask(client, this.#listen)
      if (this.#wasLost) this.#heard(MISSED)
      this.#wasLost = false
      this.#after(CHECK_MS, () => this.#check(client))
    } catch {
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
