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
  /** The id of the server process, which the server sent in answer to the connect. */
  readonly processID?: number | null
  readonly secretKey?: number | null
  readonly host?: string
  readonly port?: number
  readonly ssl?: unknown
  readonly sslNegotiation?: string
  readonly connection?: PgConnection
}

/** The socket and protocol layer of a client. The bindings to the C library (`pg-native`) have none. */
interface PgConnection {
  readonly stream?: { destroy(): unknown }
  on?(event: 'connect' | 'sslconnect' | 'error' | 'end', listener: () => void): unknown
  connect?(port: number | string, host?: string): unknown
  requestSsl?(): unknown
  cancel?(processID: number, secretKey: number): unknown
}

/** Time limit for the server to close the connection. */
const END_MS = 1_000

/** Ends a connection in order, and destroys its socket when the server does not answer. */
export async function endClient(client: PgClient, timers: Timers): Promise<void> {
  await settledWithin(timers, client.end(), END_MS)
  client.connection?.stream?.destroy()
}

/** Closes a connection that is lost or does not answer. Its pending queries reject. */
export function cutClient(client: PgClient): void {
  void client.end().catch(() => undefined)
  client.connection?.stream?.destroy()
}

/**
 * Connects; rejects when that takes too long or the client is ended meanwhile. `pg` never settles a connect that is
 * interrupted by `end`, and a wait for it would keep alive a process that has closed everything.
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

/** The answer; after `ms` without one, an error, and the connection is closed. */
export function answerWithin<T>(client: PgClient, timers: Timers, ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = timers.after(ms, () => {
      reject(noAnswer(ms))
      cutClient(client)
    })
    answer.then(resolve, reject).finally(cancel)
  })
}
