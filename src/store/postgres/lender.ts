import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { answerWithin, connectWithin, cutClient, endClient } from './client.js'
import type { PgClient } from './client.js'
import { isLost, lostReply, translate } from './faults.js'
import { LentClient } from './lent-client.js'
import type { Queries } from './queries.js'
import type { PgPool, Target } from './target.js'

/** Transactions of handlers that are open at once; others wait for their turn. */
const OPEN_MAX = 10
/** A connection that nobody borrowed for so long is closed. */
const IDLE_MS = 10_000
/** How long a connect, a begin or a commit may take. */
const ANSWER_MS = 10_000

/** A connection in an open transaction, lent to a handler. */
export interface Lent {
  readonly client: object
  /** Commits under a receipt (receipts.ts), or rolls back. If the reply to the commit is lost, a ReplyLostError says so. */
  giveBack(end: { readonly commit: string } | 'rollback'): Promise<void>
}

/** What `pg` gives for a while: a pool's client has a release, one of our own is ended. */
type Loan = PgClient & {
  release?: (destroy?: boolean) => void
  removeListener(event: 'error', listener: () => void): unknown
}

/** A pool's client that is lost while it is lent tells nobody but its listeners, and ends the process without any. */
const ignore = (): void => undefined

/**
 * Connections for `ctx.transaction`, on top of the engine's own: a handler may take its time, and others must not wait for
 * it. From the user's pool where he gave one, so that `tx` is what he already works with.
 */
export class Lender {
  readonly #target: Target
  readonly #pool: PgPool | undefined
  readonly #queries: Queries
  readonly #world: World
  readonly #isDirect: boolean
  #open = 0
  /** Those that wait to be lent again, each with the end of its time. */
  readonly #idle = new Map<Loan, Cancel>()
  #isClosed = false

  /** `isDirect`: no pooler stands between us and the server. */
  constructor(target: Target, pool: PgPool | undefined, queries: Queries, world: World, isDirect: boolean) {
    this.#isDirect = isDirect
    this.#target = target
    this.#pool = pool
    this.#queries = queries
    this.#world = world
  }

  async borrow(stopped: () => unknown): Promise<Lent> {
    await this.#slot(stopped)
    try {
      const client = await this.#begun()
      const lent = new LentClient(client)
      const giveBack: Lent['giveBack'] = (end) => {
        lent.takeBack()
        return this.#end(client, end)
      }
      return { client: lent.client, giveBack }
    } catch (error) {
      this.#open -= 1
      throw translate(error, this.#target.name)
    }
  }

  /** One that was kept may have been lost without telling: then the next is asked, and at last a new one. */
  async #begun(): Promise<Loan> {
    for (;;) {
      const kept = this.#kept()
      const client = kept ?? (await this.#connect())
      try {
        await this.#ask(client, this.#queries.beginLent)
        return client
      } catch (error) {
        this.#drop(client)
        if (kept === undefined || !isLost(error)) throw error
      }
    }
  }

  async #slot(stopped: () => unknown): Promise<void> {
    while (this.#open >= OPEN_MAX) {
      const reason = stopped()
      if (reason !== undefined) throw reason
      await new Promise<void>((next) => this.#world.timers.after(5, next))
    }
    this.#open += 1
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const idle = [...this.#idle.keys()]
    for (const client of idle) this.#forget(client)
    await Promise.all(idle.map((client) => endClient(client, this.#world.timers)))
  }

  /** Taken before a new one is made, so that there are never more of both than may be open. */
  #kept(): Loan | undefined {
    const [client] = this.#idle.keys()
    if (client === undefined) return undefined
    this.#forget(client)
    client.ref?.()
    return client
  }

  async #connect(): Promise<Loan> {
    if (this.#pool !== undefined) return this.#fromPool(this.#pool)
    const client = this.#target.makeLoan() as Loan
    client.on('error', () => this.#forget(client))
    client.on('end', () => this.#forget(client))
    try {
      await connectWithin(client, this.#world.timers, ANSWER_MS)
    } catch (error) {
      this.#drop(client)
      throw error
    }
    return client
  }

  async #fromPool(pool: PgPool): Promise<Loan> {
    const client = (await pool.connect()) as Loan
    client.on('error', ignore)
    return client
  }

  #ask(client: Loan, text: string): Promise<unknown> {
    const asked = client.query({ text, values: [] })
    return answerWithin(client, this.#world.timers, ANSWER_MS, asked)
  }

  async #end(client: Loan, end: Parameters<Lent['giveBack']>[0]): Promise<void> {
    const { rollback, commitWith } = this.#queries
    try {
      await this.#ask(client, end === 'rollback' ? rollback : commitWith(end.commit, 'null'))
      if (client.release !== undefined) this.#release(client)
      else this.#keep(client)
    } catch (error) {
      this.#drop(client)
      // What could not be rolled back is gone with its connection.
      if (end !== 'rollback') throw lostReply(error, this.#target.name, this.#isDirect)
    } finally {
      this.#open -= 1
    }
  }

  #keep(client: Loan): void {
    const end = (): void => {
      this.#forget(client)
      void endClient(client, this.#world.timers)
    }
    if (this.#isClosed) return end()
    client.unref?.()
    this.#idle.set(client, this.#world.timers.after(IDLE_MS, end, { idle: true }))
  }

  #forget(client: Loan): void {
    this.#idle.get(client)?.()
    this.#idle.delete(client)
  }

  #drop(client: Loan): void {
    this.#forget(client)
    cutClient(client)
    this.#release(client, true)
  }

  #release(client: Loan, destroy = false): void {
    client.release?.(destroy)
    if (!destroy) client.removeListener('error', ignore)
  }
}
