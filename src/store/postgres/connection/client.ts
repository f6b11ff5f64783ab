import { settledWithin } from '../../../world/timers.js'
import type { Timers } from '../../../world/timers.js'

/** The part of `pg`'s client that we use. */
export interface PgClient {
  connect(): Promise<unknown>
  query(config: { name?: string; text: string; values: readonly (string | null)[] }): Promise<{ rows: unknown[] }>
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  end(): Promise<void>
  /** Whether an idle connection keeps the process alive. */
  ref?(): void
  unref?(): void
  /** The id of the server process, as the connect was answered. */
  readonly processID?: number | null
  readonly secretKey?: number | null
  readonly host?: string
  readonly port?: number
  readonly ssl?: unknown
  readonly sslNegotiation?: string
  readonly connection?: PgLine
}

/** What a client speaks through. The bindings to the C library have none. */
interface PgLine {
  readonly stream?: { destroy(): unknown }
  on?(event: 'connect' | 'sslconnect' | 'error' | 'end', listener: () => void): unknown
  connect?(port: number | string, host?: string): unknown
  requestSsl?(): unknown
  cancel?(processID: number, secretKey: number): unknown
}

/** What the other end is given to say goodbye. */
const END_MS = 1_000

/** Ends a connection in good order; where the server does not answer any more it is cut. */
export async function endClient(client: PgClient, timers: Timers): Promise<void> {
  await settledWithin(timers, client.end(), END_MS)
  client.connection?.stream?.destroy()
}

/** Gives up a connection that is lost or does not answer. What was asked of it rejects. */
export function cutClient(client: PgClient): void {
  void client.end().catch(() => undefined)
  client.connection?.stream?.destroy()
}

/**
 * Connects, or rejects when that takes too long or the client is ended meanwhile. `pg` never settles a connect that its own
 * `end` came between, and a wait for it would keep a process alive that has closed everything.
 */
export function connectWithin(client: PgClient, timers: Timers, ms: number): Promise<unknown> {
  const ended = new Promise<never>((_, reject) => {
    client.on('end', () => reject(new Error('Connection terminated')))
  })
  return answerWithin(client, timers, ms, Promise.race([client.connect(), ended]))
}

export function noAnswer(ms: number): Error {
  return Object.assign(new Error(`there was no answer for ${Math.round(ms / 1_000)} s`), { code: 'ETIMEDOUT' })
}

/** The answer, or an error and the connection cut when it does not come in time. */
export function answerWithin<T>(client: PgClient, timers: Timers, ms: number, asked: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = timers.after(ms, () => {
      reject(noAnswer(ms))
      cutClient(client)
    })
    asked.then(resolve, reject).finally(cancel)
  })
}
