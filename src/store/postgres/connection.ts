import { ClosedError } from '../../errors.js'
import type { World } from '../../world/world.js'
import type { Executor } from './executor.js'
import { isTransient, translate } from './faults.js'

/** The part of `pg`'s client that we use. */
export interface PgClient {
  /** That of the server's process, as it was told at login. */
  readonly processID?: number | null
  connect(): Promise<unknown>
  query(config: { name?: string; text: string; values: readonly (string | null)[] }): Promise<{ rows: unknown[] }>
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  end(): Promise<void>
}

export interface ConnectionParts {
  readonly world: World
  /** For errors: where the database is, without its password. */
  readonly name: string
  /** A client that is not connected yet. */
  readonly makeClient: () => PgClient
  /** Statements may be prepared by name: nothing stands between us and the server that hands out other sessions. */
  readonly keepsSession: () => boolean
  /** Run on every new connection. */
  readonly onConnect?: (client: PgClient) => Promise<void>
}

/** A deadlock, or a server that ends: tried again so often before it is told. */
const TRIES = 10
const RETRY_MAX_MS = 200

/**
 * One connection, made when it is first needed and anew when it was lost. What is asked of it is done in turn, each a
 * statement or a whole transaction.
 */
export class Connection implements Executor {
  readonly #parts: ConnectionParts
  #client: Promise<PgClient> | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** What statements are prepared as. */
  readonly #names = new Map<string, string>()
  #closed = false

  constructor(parts: ConnectionParts) {
    this.#parts = parts
  }

  query<R extends object>(text: string, values: readonly (string | null)[]): Promise<R[]> {
    return this.#inTurn(() => this.#again(async () => this.#run<R>(await this.#connected(), text, values)))
  }

  /** All of `work` or nothing of it. It may be run again when others stood in its way, so it must only write by `tx`. */
  transaction<T>(
    begin: { readonly begin: string; readonly commit: string; readonly rollback: string },
    work: (tx: Executor) => Promise<T>,
  ): Promise<T> {
    return this.#inTurn(() =>
      this.#again(async () => {
        const client = await this.#connected()
        const tx: Executor = { query: (text, values) => this.#run(client, text, values) }
        await tx.query(begin.begin, [])
        try {
          const result = await work(tx)
          await tx.query(begin.commit, [])
          return result
        } catch (error) {
          await tx.query(begin.rollback, []).catch(() => this.#drop(client))
          throw error
        }
      }),
    )
  }

  async close(): Promise<void> {
    await this.#turn
    this.#closed = true
    const client = await this.#client?.catch(() => undefined)
    await client?.end().catch(() => undefined)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #again<T>(work: () => Promise<T>): Promise<T> {
    const { timers, random } = this.#parts.world
    for (let left = TRIES; ; left -= 1) {
      try {
        return await work()
      } catch (error) {
        if (left <= 1 || !isTransient(error)) throw translate(error, this.#parts.name)
      }
      await new Promise<void>((next) => timers.after(random() * Math.min(RETRY_MAX_MS, 5 * 2 ** (TRIES - left)), next))
    }
  }

  async #run<R extends object>(client: PgClient, text: string, values: readonly (string | null)[]): Promise<R[]> {
    const name = this.#parts.keepsSession() && !text.includes(';') ? this.#nameOf(text) : undefined
    const { rows } = await client.query(name === undefined ? { text, values } : { name, text, values })
    return rows as R[]
  }

  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) this.#names.set(text, (name = `millrace_${this.#names.size}`))
    return name
  }

  async #connected(): Promise<PgClient> {
    if (this.#closed) throw new ClosedError()
    this.#client ??= this.#connect()
    return this.#client
  }

  async #connect(): Promise<PgClient> {
    const client = this.#parts.makeClient()
    const lost = (): void => this.#drop(client)
    client.on('error', lost)
    client.on('end', lost)
    try {
      await client.connect()
      await this.#parts.onConnect?.(client)
      return client
    } catch (error) {
      this.#client = undefined
      void client.end().catch(() => undefined)
      throw error
    }
  }

  #drop(client: PgClient): void {
    const current = this.#client
    this.#client = undefined
    // Unless it was replaced already.
    void current?.then((one) => (one === client ? undefined : (this.#client ??= current))).catch(() => undefined)
    void client.end().catch(() => undefined)
  }
}
