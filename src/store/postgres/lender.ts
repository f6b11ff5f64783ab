import type { World } from '../../world/world.js'
import type { PgClient } from './connection.js'
import { translate } from './faults.js'
import type { Queries } from './queries.js'
import type { PgPool, Target } from './target.js'

/** Transactions of handlers that are open at once; others wait for their turn. */
const OPEN_MAX = 10

/** A connection in an open transaction, lent to a handler. */
export interface Lent {
  readonly client: object
  giveBack(end: 'commit' | 'rollback'): Promise<void>
}

/** What `pg` gives for a while: a pool's client has a release, one of our own is ended. */
type Loan = PgClient & { release?: (destroy?: boolean) => void }

/**
 * Connections for `ctx.transaction`, on top of the engine's own: a handler may take its time, and others must not wait for
 * it. From the user's pool where he gave one, so that `tx` is what he already works with.
 */
export class Lender {
  readonly #target: Target
  readonly #pool: PgPool | undefined
  readonly #queries: Queries
  readonly #world: World
  #open = 0
  #idle: PgClient[] = []
  #isClosed = false

  constructor(target: Target, pool: PgPool | undefined, queries: Queries, world: World) {
    this.#target = target
    this.#pool = pool
    this.#queries = queries
    this.#world = world
  }

  async borrow(stopped: () => unknown): Promise<Lent> {
    while (this.#open >= OPEN_MAX) {
      const reason = stopped()
      if (reason !== undefined) throw reason
      await new Promise<void>((next) => this.#world.timers.after(5, next))
    }
    this.#open += 1
    try {
      const client = await this.#connect()
      await client.query({ text: this.#queries.begin, values: [] })
      return { client, giveBack: (end) => this.#end(client, end) }
    } catch (error) {
      this.#open -= 1
      throw translate(error, this.#target.name)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#idle.splice(0).map((client) => client.end().catch(() => undefined)))
  }

  async #connect(): Promise<Loan> {
    if (this.#pool !== undefined) return (await this.#pool.connect()) as Loan
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const client = this.#target.makeClient()
    const forget = (): void => void (this.#idle = this.#idle.filter((one) => one !== client))
    client.on('error', forget)
    client.on('end', forget)
    await client.connect()
    return client
  }

  async #end(client: Loan, end: 'commit' | 'rollback'): Promise<void> {
    this.#open -= 1
    try {
      await client.query({ text: this.#queries[end], values: [] })
    } catch (error) {
      this.#drop(client)
      // What could not be rolled back is gone with its connection.
      if (end === 'commit') throw translate(error, this.#target.name)
      return
    }
    if (client.release !== undefined) client.release()
    else if (this.#isClosed || this.#idle.length > 0) await client.end().catch(() => undefined)
    else this.#idle.push(client)
  }

  #drop(client: Loan): void {
    if (client.release !== undefined) client.release(true)
    else void client.end().catch(() => undefined)
  }
}
