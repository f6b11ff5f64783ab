import { ClosedError, StoreError } from '../../../errors.js'
import { settledWithin } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { cancelStatement, CANCEL_MS } from './cancel-statement.js'
import { answerWithin, connectWithin, cutClient, endClient, noAnswer } from './client.js'
import type { PgClient } from './client.js'
import type { Executor } from './executor.js'
import { codeOf, isLost, isTransient, lostReply, translate } from './faults.js'
import type { Shortage } from './shortage.js'
import { isLocked, LOCK_PATIENCE_MS, whileLocked } from './while-locked.js'

export interface ConnectionParts {
  readonly world: World
  /** For errors: where the database is, without its password. */
  readonly name: string
  /** A client that is not connected yet. */
  readonly makeClient: () => PgClient
  /** Statements may be prepared by name: nothing stands between us and the server that hands out other sessions. */
  readonly keepsSession: () => boolean
  /** Run on every new connection. */
  readonly onConnect?: (client: PgClient) => Promise<unknown>
  /** The connection was lost and is made again: perhaps to another server. */
  readonly onReconnect?: () => void
  /** Waits while the server takes no more connections; without it, that is an error like any other. */
  readonly shortage?: Shortage
}

/** A deadlock, or a server that ends: tried again so often before the error is thrown. */
const TRIES = 10
const RETRY_MAX_MS = 200

/** How long a statement may take, and for how many bytes of it a millisecond more: a slow line is not a dead one. */
const ANSWER_MS = 10_000
const BYTES_PER_MS = 100
/** The server's code of a statement that was ended by request. */
const CALLED_OFF = '57014'
/** How long a call waits for a connection while there is none to be had. */
const ROOM_MS = 10_000
/** What the statements under way are given at the end. */
const CLOSE_MS = 2_000
/** A prepared statement that takes longer has its plan made again, at most so often. */
const SLOW_MS = 250
const REPLAN_EVERY_MS = 10_000

/**
 * One connection, made when it is first needed, and again when it was lost. Its statements run in turn, each a
 * statement or a whole transaction. A statement whose answer does not come in time ends the connection: a line can be dead
 * without telling either side. While nothing is asked it does not keep the process alive.
 */
export class Connection implements Executor {
  readonly #parts: ConnectionParts
  /** Of statements, as the server is to know them. */
  readonly #names = new Map<string, string>()
  #client: PgClient | undefined
  #wasConnected = false
  #turn: Promise<unknown> = Promise.resolve()
  #asked = 0
  #isClosed = false
  /** A prepared statement was slow: perhaps its plan is from when the tables were small. */
  #wasSlow = false
  #replannedAt = -Infinity
  /** When a lock of another transaction was last met. */
  #lockedAt = -Infinity

  constructor(parts: ConnectionParts) {
    this.#parts = parts
  }

  /** A statement that commits by itself. What others have locked is tried again for so long. */
  query<R extends object>(
    text: string,
    values: readonly (string | null)[],
    patienceMs = LOCK_PATIENCE_MS,
  ): Promise<R[]> {
    return whileLocked(this.#parts.world, patienceMs, (until) =>
      this.#inTurn(
        () =>
          this.#again(async () => {
            const client = await this.#connected()
            return this.#committing(() => this.#run<R>(client, text, values))
          }),
        until,
      ),
    )
  }

  /**
   * All of `work` or nothing of it. It may be run again when others stood in its way, so it must only write by `tx`. If the
   * reply to the commit is lost, a ReplyLostError says so. `until` is that of `whileLocked`.
   */
  transaction<T>(
    bounds: { readonly begin: string; readonly commit: string | ((result: T) => string); readonly rollback: string },
    work: (tx: Executor) => Promise<T>,
    answerMs = ANSWER_MS,
    until?: number,
  ): Promise<T> {
    const once = async (): Promise<T> => {
      const client = await this.#connected()
      const tx: Executor = { query: (text, values) => this.#run(client, text, values, answerMs) }
      await tx.query(bounds.begin, [])
      try {
        const result = await work(tx)
        const commit = typeof bounds.commit === 'string' ? bounds.commit : bounds.commit(result)
        await this.#committing(() => tx.query(commit, []))
        return result
      } catch (error) {
        await tx.query(bounds.rollback, []).catch(() => this.#drop(client))
        throw error
      }
    }
    return this.#inTurn(() => this.#again(once), until)
  }

  /** Waits a little for what was asked; whatever is left of it then is called off, and rejects. */
  async close(): Promise<void> {
    const { world, makeClient } = this.#parts
    const { timers } = world
    await settledWithin(timers, this.#turn, CLOSE_MS)
    this.#isClosed = true
    const client = this.#client
    this.#client = undefined
    if (client !== undefined && this.#asked > 0) await cancelStatement(client, makeClient, timers)
    if (client !== undefined) await endClient(client, timers)
  }

  #inTurn<T>(work: () => Promise<T>, until?: number): Promise<T> {
    const askedAt = this.#parts.world.clock.monotonic()
    const inTime = (): Promise<T> => {
      this.#refuseLate(askedAt, until)
      return work()
    }
    this.#asked += 1
    const done = this.#turn.then(inTime).finally(() => {
      this.#asked -= 1
      if (this.#asked === 0) this.#client?.unref?.()
    })
    this.#turn = done.catch(() => undefined)
    return done
  }

  /**
   * Each call in the line waits for a lock for a moment, so a long line would make each of them wait many times as long as it
   * may. A line that is only slow refuses none.
   */
  #refuseLate(askedAt: number, until: number | undefined): void {
    if (until === undefined || this.#lockedAt < askedAt || this.#parts.world.clock.monotonic() < until) return
    const told = `${this.#parts.name}: another transaction holds what calls before this one need, so its turn did not come in time`
    throw new StoreError('E_STORE_LOCKED', `${told}; nothing was written; end it, and keep such transactions short`)
  }

  /** Runs what commits. Before it was sent, a lost connection means that nothing was written. */
  async #committing<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      // What may be tried again is left as it is.
      throw isTransient(error) ? error : lostReply(error, this.#parts.name, this.#parts.keepsSession())
    }
  }

  async #again<T>(work: () => Promise<T>): Promise<T> {
    const { timers, random, clock } = this.#parts.world
    for (let left = TRIES; ; left -= 1) {
      try {
        return await work()
      } catch (error) {
        if (left <= 1 || !isTransient(error)) {
          const fault = translate(error, this.#parts.name)
          if (isLocked(fault)) this.#lockedAt = clock.monotonic()
          throw fault
        }
      }
      await new Promise<void>((next) => timers.after(random() * Math.min(RETRY_MAX_MS, 5 * 2 ** (TRIES - left)), next))
    }
  }

  async #run<R extends object>(
    client: PgClient,
    text: string,
    values: readonly (string | null)[],
    answerMs = ANSWER_MS,
  ): Promise<R[]> {
    const name = this.#parts.keepsSession() && !text.includes(';') ? this.#nameOf(text) : undefined
    const bytes = values.reduce((sum, value) => sum + (value?.length ?? 0), 0)
    const { clock } = this.#parts.world
    const askedAt = clock.monotonic()
    const asked = client.query(name === undefined ? { text, values } : { name, text, values })
    try {
      const { rows } = await this.#answer(client, answerMs + bytes / BYTES_PER_MS, asked)
      if (name !== undefined && clock.monotonic() - askedAt > SLOW_MS) this.#wasSlow = true
      return rows as R[]
    } catch (error) {
      if (isLost(error)) this.#drop(client)
      throw error
    }
  }

  /**
   * What is not answered in time is called off: else the server would go on with it, and write it when its caller was told
   * that it failed. The connection ends with it, since what called it off might come late and meet the next statement.
   */
  async #answer<T>(client: PgClient, ms: number, asked: Promise<T>): Promise<T> {
    const { world, makeClient, name } = this.#parts
    let isAnswered = false
    const answered = asked.finally(() => (isAnswered = true))
    await settledWithin(world.timers, answered, ms)
    if (isAnswered) return answered
    void cancelStatement(client, makeClient, world.timers)
    try {
      return await answerWithin(client, world.timers, CANCEL_MS, answered)
    } catch (error) {
      if (codeOf(error) !== CALLED_OFF) throw noAnswer(ms)
      const told = `${name}: it was not done in ${Math.round(ms / 1_000)} s and was called off, so nothing was written`
      throw new StoreError(
        'E_STORE_LOCKED',
        `${told}; another transaction holds what it needs, or the server is overloaded`,
        { cause: error },
      )
    } finally {
      this.#drop(client)
    }
  }

  async #connected(): Promise<PgClient> {
    if (this.#isClosed) throw new ClosedError()
    const client = this.#client ?? (await this.#connectPatiently())
    client.ref?.()
    await this.#replan(client)
    return client
  }

  #connectPatiently(): Promise<PgClient> {
    const { world, shortage } = this.#parts
    const { timers, clock } = world
    const end = clock.monotonic() + ROOM_MS
    if (shortage === undefined) return this.#connect()
    return shortage.past(
      () => this.#connect(),
      async (ms, error) => {
        if (clock.monotonic() + ms > end) throw error
        await new Promise<void>((next) => timers.after(ms, next))
        if (this.#isClosed) throw new ClosedError()
      },
    )
  }

  /** The server keeps the plan of a prepared statement until the tables are analysed again; they may grow a thousandfold before. */
  async #replan(client: PgClient): Promise<void> {
    const now = this.#parts.world.clock.monotonic()
    if (!this.#wasSlow || now - this.#replannedAt < REPLAN_EVERY_MS) return
    this.#wasSlow = false
    this.#replannedAt = now
    await this.#run(client, 'discard plans;', [])
  }

  async #connect(): Promise<PgClient> {
    const { makeClient, onConnect, onReconnect, world } = this.#parts
    const client = makeClient()
    const lost = (): void => this.#drop(client)
    client.on('error', lost)
    client.on('end', lost)
    // Known from here on, so that a close cuts it while it is still on its way.
    this.#client = client
    try {
      await connectWithin(client, world.timers, ANSWER_MS)
      if (onConnect !== undefined) await answerWithin(client, world.timers, ANSWER_MS, onConnect(client))
    } catch (error) {
      this.#drop(client)
      throw this.#isClosed ? new ClosedError() : error
    }
    if (this.#wasConnected) onReconnect?.()
    this.#wasConnected = true
    return client
  }

  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) this.#names.set(text, (name = `millrace_${this.#names.size}`))
    return name
  }

  #drop(client: PgClient): void {
    if (this.#client === client) this.#client = undefined
    cutClient(client)
  }
}
