import { ClosedError } from '../../../errors.js'
import { settledWithin } from '../../../world/timers.js'
import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { answerWithin, connectWithin, cutClient, endClient } from './client.js'
import type { PgClient } from './client.js'
import { isLost, lostReply, translate } from './faults.js'
import { HandlerClient } from './handler-client.js'
import type { Queries } from '../queries/queries.js'
import type { Shortage } from './shortage.js'
import type { PgPool, Target } from './target.js'

/** Transactions of handlers that are open at once; others wait for their turn. */
const OPEN_MAX = 10
/** A connection that no handler borrowed for so long is closed; sooner where another process cannot ask for it (a pooler). */
const IDLE_MS = 10_000
const IDLE_POOLED_MS = 1_000
/** How often a borrower that waits looks whether its attempt is over. */
const LOOK_MS = 25
/** How long a connect, a begin or a commit may take. */
const ANSWER_MS = 10_000

/** A connection in an open transaction, lent to a handler. */
export interface HandlerConnection {
  readonly client: object
  /** Commits under a receipt (receipts.ts), or rolls back. If the reply to the commit is lost, a ReplyLostError says so. */
  giveBack(end: { readonly commit: string } | 'rollback'): Promise<void>
}

/** What `pg` gives for a while: a pool's client has a release, one of our own is ended. */
type Loan = PgClient & {
  release?: (destroy?: boolean) => void
  removeListener(event: 'error', listener: () => void): unknown
}

export interface HandlerConnectionsParts {
  readonly target: Target
  readonly queries: Queries
  readonly world: World
  /** No pooler stands between us and the server. */
  readonly isDirect: boolean
  readonly shortage: Shortage
  /** Asks other processes to close the connections that they keep idle. A hint: it may be lost. */
  readonly askOthers: () => void
}

/** A pool's client that is lost while a handler has it emits an error, which ends the process where there is no listener. */
const ignore = (): void => undefined

/**
 * Connections for `ctx.transaction`, on top of the engine's own: a handler may take its time, and others must not wait for
 * it. From the user's pool where he gave one, so that `tx` is what he already works with.
 */
export class HandlerConnections {
  readonly #target: Target
  readonly #pool: PgPool | undefined
  readonly #queries: Queries
  readonly #world: World
  readonly #isDirect: boolean
  readonly #shortage: Shortage
  readonly #askOthers: () => void
  /** Borrowers that wait for a connection that another one gives back. */
  readonly #waiting = new Set<() => void>()
  #open = 0
  /** Those that wait to be lent again, each with the end of its time. */
  readonly #idle = new Map<Loan, Cancel>()
  #isClosed = false

  /** `isDirect`: no pooler stands between us and the server. */
  constructor({ target, queries, world, isDirect, shortage, askOthers }: HandlerConnectionsParts) {
    this.#isDirect = isDirect
    this.#shortage = shortage
    this.#askOthers = askOthers
    this.#target = target
    this.#pool = target.pool
    this.#queries = queries
    this.#world = world
  }

  async borrow(stopped: () => unknown): Promise<HandlerConnection> {
    await this.#slot(stopped)
    try {
      // Within the time of the attempt: that there is no connection is not the fault of the job.
      const client = await this.#shortage.past(
        () => this.#begun(stopped),
        (ms) => this.#room(ms, stopped),
      )
      const lent = new HandlerClient(client)
      const giveBack: HandlerConnection['giveBack'] = (end) => {
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
  async #begun(stopped: () => unknown): Promise<Loan> {
    for (;;) {
      const kept = this.#kept()
      const client = kept ?? (await this.#connect(stopped))
      try {
        await this.#ask(client, this.#queries.beginLent)
        return client
      } catch (error) {
        this.#drop(client)
        if (kept === undefined || !isLost(error)) throw error
      }
    }
  }

  /** Closes what is kept idle: another process waits for a connection. */
  giveUpIdle(): void {
    for (const client of this.#idle.keys()) {
      this.#forget(client)
      void endClient(client, this.#world.timers)
    }
  }

  /** Waits so long, or until another borrower has given its connection back. */
  async #room(ms: number, stopped: () => unknown): Promise<void> {
    this.#askOthers()
    const { clock } = this.#world
    for (const end = clock.monotonic() + ms; clock.monotonic() < end && this.#idle.size === 0;) {
      this.#refuseStopped(stopped)
      await new Promise<void>((next) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          cancel()
          next()
        }
        const cancel = this.#world.timers.after(LOOK_MS, wake)
        this.#waiting.add(wake)
      })
    }
    this.#refuseStopped(stopped)
  }

  #refuseStopped(stopped: () => unknown): void {
    if (this.#isClosed) throw new ClosedError()
    const reason = stopped()
    if (reason !== undefined) throw reason
  }

  async #slot(stopped: () => unknown): Promise<void> {
    while (this.#open >= OPEN_MAX) {
      this.#refuseStopped(stopped)
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

  async #connect(stopped: () => unknown): Promise<Loan> {
    if (this.#pool !== undefined) return this.#fromPool(this.#pool, stopped)
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

  /** A pool may have no limit to how long it lets us wait: an attempt that is over stops waiting. */
  async #fromPool(pool: PgPool, stopped: () => unknown): Promise<Loan> {
    const asked = pool.connect() as Promise<Loan>
    let isSettled = false
    const settled = asked.then(
      () => (isSettled = true),
      () => (isSettled = true),
    )
    try {
      for (;;) {
        await settledWithin(this.#world.timers, settled, LOOK_MS)
        if (isSettled) break
        this.#refuseStopped(stopped)
      }
    } catch (error) {
      void asked.then((late) => late.release?.()).catch(() => undefined)
      throw error
    }
    const client = await asked
    client.on('error', ignore)
    return client
  }

  #ask(client: Loan, text: string): Promise<unknown> {
    const asked = client.query({ text, values: [] })
    return answerWithin(client, this.#world.timers, ANSWER_MS, asked)
  }

  async #end(client: Loan, end: Parameters<HandlerConnection['giveBack']>[0]): Promise<void> {
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
    const idleMs = this.#isDirect ? IDLE_MS : IDLE_POOLED_MS
    this.#idle.set(client, this.#world.timers.after(idleMs, end, { idle: true }))
    const [waiting] = this.#waiting
    waiting?.()
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
