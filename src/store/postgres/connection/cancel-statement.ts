import type { Timers } from '../../../world/timers.js'
import type { PgClient } from './client.js'

/** Time limit of a cancel request, and of the statement's answer after it. */
export const CANCEL_MS = 2_000

/**
 * Asks the server to cancel the statement that a connection runs. A second connection sends the process id and the
 * secret key, and the server closes it. It needs no login and no free connection slot, and works through PgBouncer too.
 * Only the answer of the statement says whether the request came in time. Resolves when the request was sent or has
 * failed.
 */
export function cancelStatement(client: PgClient, makeClient: () => PgClient, timers: Timers): Promise<void> {
  const { processID, secretKey } = client
  const other = makeClient()
  const { connection } = other
  if (typeof processID !== 'number' || typeof secretKey !== 'number' || typeof connection?.cancel !== 'function')
    return Promise.resolve()
  return new Promise((resolve) => {
    const finish = (): void => {
      stop()
      connection.stream?.destroy()
      resolve()
    }
    const stop = timers.after(CANCEL_MS, finish, { idle: true })
    connection.on?.('error', finish)
    connection.on?.('end', finish)
    const send = (): void => void connection.cancel?.(processID, secretKey)
    const isSecure = other.ssl !== undefined && other.ssl !== false
    connection.on?.('connect', () => {
      if (!isSecure) send()
      else if (other.sslNegotiation !== 'direct') connection.requestSsl?.()
    })
    connection.on?.('sslconnect', send)
    const { host = '', port = 0 } = other
    if (host.startsWith('/')) connection.connect?.(`${host}/.s.PGSQL.${port}`)
    else connection.connect?.(port, host)
  })
}
