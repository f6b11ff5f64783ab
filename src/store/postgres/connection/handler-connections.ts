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

/** Limit of open transactions of handlers; further ones wait. */
const OPEN_MAX = 10
/**
 * A connection that stays idle for longer is closed; sooner behind a pooler, where another process cannot request that
 * it be closed.
 */
const IDLE_MS = 10_000
const IDLE_POOLED_MS = 1_000
/** How often a waiting borrower checks whether its attempt has ended. */
const POLL_MS = 25
/** Time limit of a connect, a begin or a commit. */
const ANSWER_MS = 10_000

/** A connection in an open transaction that a handler uses. */
export interface HandlerConnection {
  readonly client: object
  /**
   * Commits with a receipt (receipts.ts), or rolls back. If the reply to the commit is lost, a ReplyLostError is
   * thrown.
   */
  finish(end: { readonly commit: string } | 'rollback'): Promise<void>
}

/** A client of the user's pool has a `release`; a client of our own is ended. */
type BorrowedClient = PgClient & {
  release?: (destroy?: boolean) => void
  removeListener(event: 'error', listener: () => void): unknown
}

export interface HandlerConnectionsParts {
  readonly target: Target
  readonly queries: Queries
  readonly world: World
  /** No pooler is between this process and the server. */
  readonly isDirect: boolean
  readonly shortage: Shortage
  /** Requests that other processes close their idle connections. A hint: it may be lost. */
  readonly requestConnections: () => void
}

/**
 * A pool's client that loses its connection while a handler uses it emits an error, which ends the process if there is
 * no listener.
 */
const ignore = (): void => undefined

/**
 * Connections for `ctx.transaction`, besides the engine's own: a handler's transaction may be long, and must not delay
 * other verbs. If the user passed a pool, they come from it, so that `tx` is the client that the app already uses.
 */
export class HandlerConnections {
  readonly #target: Target
  readonly #pool: PgPool | undefined
  readonly #queries: Queries
  readonly #world: World
  readonly #isDirect: boolean
  readonly #shortage: Shortage
  readonly #requestConnections: () => void
  /** Borrowers that wait until another borrower returns its connection. */
  readonly #waiting = new Set<() => void>()
  #open = 0
  /** Idle connections, each with the cancel of its idle timer. */
  readonly #idle = new Map<BorrowedClient, Cancel>()
  #isClosed = false

  /** `isDirect`: no pooler is between this process and the server. */
  constructor({ target, queries, world, isDirect, shortage, requestConnections }: HandlerConnectionsParts) {
    this.#isDirect = isDirect
    this.#shortage = shortage
    this.#requestConnections = requestConnections
    this.#target = target
    this.#pool = target.pool
    this.#queries = queries
    this.#world = world
  }

  async borrow(stopped: () => unknown): Promise<HandlerConnection> {
    await this.#slot(stopped)
    try {
      // Within the time limit of the attempt: a lack of connections is not a failure of the job.
      const client = await this.#shortage.untilConnected(
        () => this.#begun(stopped),
        (ms) => this.#room(ms, stopped),
      )
      const revocable = new HandlerClient(client)
      const finish: HandlerConnection['finish'] = (end) => {
        revocable.revoke()
        return this.#end(client, end)
      }
      return { client: revocable.client, finish }
    } catch (error) {
      this.#open -= 1
      throw translate(error, this.#target.name)
    }
  }

  /** An idle connection may have been lost unnoticed: then the next one is tried, and finally a new one. */
  async #begun(stopped: () => unknown): Promise<BorrowedClient> {
    for (;;) {
      const kept = this.#kept()
      const client = kept ?? (await this.#connect(stopped))
      try {
        await this.#query(client, this.#queries.beginForHandler)
        return client
      } catch (error) {
        this.#drop(client)
        if (kept === undefined || !isLost(error)) throw error
      }
    }
  }

  /** Closes the idle connections: another process waits for one. */
  closeIdle(): void {
    for (const client of this.#idle.keys()) {
      this.#forget(client)
      void endClient(client, this.#world.timers)
    }
  }

  /** Waits for `ms`, or until another borrower returns its connection. */
  async #room(ms: number, stopped: () => unknown): Promise<void> {
    this.#requestConnections()
    const { clock } = this.#world
    for (const end = clock.monotonic() + ms; clock.monotonic() < end && this.#idle.size === 0;) {
      this.#refuseStopped(stopped)
      await new Promise<void>((next) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          cancel()
          next()
        }
        const cancel = this.#world.timers.after(POLL_MS, wake)
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

  /** An idle connection is taken before a new one is made, so that both together do not exceed the limit. */
  #kept(): BorrowedClient | undefined {
    const [client] = this.#idle.keys()
    if (client === undefined) return undefined
    this.#forget(client)
    client.ref?.()
    return client
  }

  async #connect(stopped: () => unknown): Promise<BorrowedClient> {
    if (this.#pool !== undefined) return this.#fromPool(this.#pool, stopped)
    const client = this.#target.makeHandlerClient() as BorrowedClient
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

  /** A pool may have no time limit of its own, so a borrower whose attempt has ended stops waiting. */
  async #fromPool(pool: PgPool, stopped: () => unknown): Promise<BorrowedClient> {
    const connecting = pool.connect() as Promise<BorrowedClient>
    let isSettled = false
    const settled = connecting.then(
      () => (isSettled = true),
      () => (isSettled = true),
    )
    try {
      for (;;) {
        await settledWithin(this.#world.timers, settled, POLL_MS)
        if (isSettled) break
        this.#refuseStopped(stopped)
      }
    } catch (error) {
      void connecting.then((late) => late.release?.()).catch(() => undefined)
      throw error
    }
    const client = await connecting
    client.on('error', ignore)
    return client
  }

  #query(client: BorrowedClient, text: string): Promise<unknown> {
    const answer = client.query({ text, values: [] })
    return answerWithin(client, this.#world.timers, ANSWER_MS, answer)
  }

  async #end(client: BorrowedClient, end: Parameters<HandlerConnection['finish']>[0]): Promise<void> {
    const { rollback, commitWith } = this.#queries
    try {
      await this.#query(client, end === 'rollback' ? rollback : commitWith(end.commit, 'null'))
      if (client.release !== undefined) this.#release(client)
      else this.#keep(client)
    } catch (error) {
      this.#drop(client)
      // A transaction that could not be rolled back ends with its connection.
      if (end !== 'rollback') throw lostReply(error, this.#target.name, this.#isDirect)
    } finally {
      this.#open -= 1
    }
  }

  #keep(client: BorrowedClient): void {
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

  #forget(client: BorrowedClient): void {
    this.#idle.get(client)?.()
    this.#idle.delete(client)
  }

  #drop(client: BorrowedClient): void {
    this.#forget(client)
    cutClient(client)
    this.#release(client, true)
  }

  #release(client: BorrowedClient, destroy = false): void {
    client.release?.(destroy)
    if (!destroy) client.removeListener('error', ignore)
  }
}
