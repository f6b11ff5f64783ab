import { ClosedError, StoreError } from '../../../errors.js'
import { settledWithin } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { cancelStatement, CANCEL_MS } from './cancel-statement.js'
import { answerWithin, connectWithin, cutClient, endClient, noAnswer } from './client.js'
import type { PgClient } from './client.js'
import type { SqlExecutor } from './sql-executor.js'
import { codeOf, isLost, isTransient, lostReply, translate } from './faults.js'
import type { Shortage } from './shortage.js'
import { isLocked, LOCK_PATIENCE_MS, whileLocked } from './while-locked.js'

export interface ConnectionParts {
  readonly world: World
  /** For errors: where the database is, without its password. */
  readonly name: string
  /** A client that is not connected yet. */
  readonly makeClient: () => PgClient
  /** Whether statements may be prepared by name: no pooler gives this connection another session in between. */
  readonly keepsSession: () => boolean
  /** Run on every new connection. */
  readonly onConnect?: (client: PgClient) => Promise<unknown>
  /** The lost connection was replaced by a new one, perhaps to another server. */
  readonly onReconnect?: () => void
  /** Waits while the server accepts no more connections; without it, that is an error like any other. */
  readonly shortage?: Shortage
}

/** Attempts of a statement that ends in a deadlock or on a server that shuts down, before the error is thrown. */
const TRIES = 10
const RETRY_MAX_MS = 200

/**
 * Time limit of a statement, and the bytes of its values that extend it by a millisecond: a slow network is not a dead
 * one.
 */
const ANSWER_MS = 10_000
const BYTES_PER_MS = 100
/** SQLSTATE of a statement that was cancelled by request. */
const QUERY_CANCELED = '57014'
/** How long a call waits for a free connection slot. */
const ROOM_MS = 10_000
/** Time limit of a close for the statements in flight. */
const CLOSE_MS = 2_000
/** A prepared statement that takes longer is planned again, at most once in this interval. */
const SLOW_MS = 250
const REPLAN_EVERY_MS = 10_000

/**
 * One connection, made when it is first needed, and made again after it was lost. Its statements run one after the
 * other; each is a single statement or a whole transaction. A statement whose answer does not come in time ends the
 * connection: a broken network path may report an error to neither side. While no statement is in flight it does not
 * keep the process alive.
 */
export class Connection implements SqlExecutor {
  readonly #parts: ConnectionParts
  /** Names of prepared statements by their text. */
  readonly #names = new Map<string, string>()
  #client: PgClient | undefined
  #wasConnected = false
  #turn: Promise<unknown> = Promise.resolve()
  #queued = 0
  #isClosed = false
  /** A prepared statement was slow: its plan may have been made when the tables were small. */
  #wasSlow = false
  #replannedAt = -Infinity
  /** When a statement last failed on a lock of another transaction. */
  #lockedAt = -Infinity

  constructor(parts: ConnectionParts) {
    this.#parts = parts
  }

  /** A statement that commits by itself. On a lock conflict it is retried for `patienceMs`. */
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
   * Commits all of `work` or nothing of it. `work` may run again after a conflict with another transaction, so it must
   * write only through `tx`. If the reply to the commit is lost, a ReplyLostError is thrown. `until` is that of
   * `whileLocked`.
   */
  transaction<T>(
    bounds: { readonly begin: string; readonly commit: string | ((result: T) => string); readonly rollback: string },
    work: (tx: SqlExecutor) => Promise<T>,
    answerMs = ANSWER_MS,
    until?: number,
  ): Promise<T> {
    const once = async (): Promise<T> => {
      const client = await this.#connected()
      const tx: SqlExecutor = { query: (text, values) => this.#run(client, text, values, answerMs) }
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

  /** Waits `CLOSE_MS` for the statements in flight, then cancels them; the cancelled ones reject. */
  async close(): Promise<void> {
    const { world, makeClient } = this.#parts
    const { timers } = world
    await settledWithin(timers, this.#turn, CLOSE_MS)
    this.#isClosed = true
    const client = this.#client
    this.#client = undefined
    if (client !== undefined && this.#queued > 0) await cancelStatement(client, makeClient, timers)
    if (client !== undefined) await endClient(client, timers)
  }

  #inTurn<T>(work: () => Promise<T>, until?: number): Promise<T> {
    const queuedAt = this.#parts.world.clock.monotonic()
    const inTime = (): Promise<T> => {
      this.#refuseLate(queuedAt, until)
      return work()
    }
    this.#queued += 1
    const done = this.#turn.then(inTime).finally(() => {
      this.#queued -= 1
      if (this.#queued === 0) this.#client?.unref?.()
    })
    this.#turn = done.catch(() => undefined)
    return done
  }

  /**
   * Each queued call waits for a lock for a moment, so in a long queue a call could wait many times its limit. A queue
   * that is slow for another reason refuses no call.
   */
  #refuseLate(queuedAt: number, until: number | undefined): void {
    if (until === undefined || this.#lockedAt < queuedAt || this.#parts.world.clock.monotonic() < until) return
    const message = `${this.#parts.name}: another transaction holds what calls before this one need, so its turn did not come in time`
    throw new StoreError('E_STORE_LOCKED', `${message}; nothing was written; end it, and keep such transactions short`)
  }

  /** Runs a statement that commits. If the connection was lost before the statement was sent, nothing was written. */
  async #committing<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      // `#again` retries a transient error, so it is thrown unchanged.
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
    const sentAt = clock.monotonic()
    const answer = client.query(name === undefined ? { text, values } : { name, text, values })
    try {
      const { rows } = await this.#answer(client, answerMs + bytes / BYTES_PER_MS, answer)
      if (name !== undefined && clock.monotonic() - sentAt > SLOW_MS) this.#wasSlow = true
      return rows as R[]
    } catch (error) {
      if (isLost(error)) this.#drop(client)
      throw error
    }
  }

  /**
   * Cancels a statement that is not answered in time. Otherwise the server would finish and commit it after its caller
   * got an error. The connection is closed as well: a late cancel request could hit its next statement.
   */
  async #answer<T>(client: PgClient, ms: number, answer: Promise<T>): Promise<T> {
    const { world, makeClient, name } = this.#parts
    let isAnswered = false
    const answered = answer.finally(() => (isAnswered = true))
    await settledWithin(world.timers, answered, ms)
    if (isAnswered) return answered
    void cancelStatement(client, makeClient, world.timers)
    try {
      return await answerWithin(client, world.timers, CANCEL_MS, answered)
    } catch (error) {
      if (codeOf(error) !== QUERY_CANCELED) throw noAnswer(ms)
      const message = `${name}: the statement took longer than ${Math.round(ms / 1_000)} s and was cancelled, so nothing was written`
      throw new StoreError(
        'E_STORE_LOCKED',
        `${message}; another transaction holds what it needs, or the server is overloaded`,
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
    return shortage.untilConnected(
      () => this.#connect(),
      async (ms, error) => {
        if (clock.monotonic() + ms > end) throw error
        await new Promise<void>((next) => timers.after(ms, next))
        if (this.#isClosed) throw new ClosedError()
      },
    )
  }

  /**
   * The server keeps the plan of a prepared statement until the tables are analysed again; they may grow a thousandfold
   * before.
   */
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
    // Assigned before it is connected, so that `close` also ends a connect in progress.
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
