import type { World } from '../../world/world.js'
import type { PgClient } from './connection.js'
import type { Target } from './target.js'

/** How long after a loss it is tried again. */
const AGAIN_MS = 1_000

/** Hears what others commit, from the main thread: where no heart does. A lost connection is made anew; the poll lies under it. */
export class Listener {
  readonly #target: Target
  readonly #world: World
  readonly #listen: string
  readonly #heard: (news: string) => void
  #client: PgClient | undefined
  #isOn = false
  /** Settles when it hears, or could not for now. */
  ready: Promise<void> = Promise.resolve()

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
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => undefined)
  }

  async #begin(): Promise<void> {
    if (!this.#isOn) return
    const client = this.#target.makeClient()
    this.#client = client
    const lost = (): void => this.#lost(client)
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', ({ payload }) => this.#heard(payload ?? ''))
    try {
      await client.connect()
      await client.query({ text: this.#listen, values: [] })
    } catch {
      lost()
    }
  }

  #lost(client: PgClient): void {
    if (this.#client !== client) return
    this.#client = undefined
    void client.end().catch(() => undefined)
    this.#world.timers.after(AGAIN_MS, () => void this.#begin(), { idle: true })
  }
}
