import type { Timers } from '../../../world/timers.js'
import type { PgClient } from './client.js'

/** How long the server is given to hear that a statement is called off, and to answer it. */
export const CANCEL_MS = 2_000

/**
 * Has the server give up what a connection is at: a second connection is made, says only which, and is closed by the
 * server. Needs no login and no free place, and reaches the server through PgBouncer too. A request: whether it came in time
 * only the answer of the statement tells. Resolves when it was said, or could not be.
 */
export function cancelStatement(client: PgClient, makeClient: () => PgClient, timers: Timers): Promise<void> {
  const { processID, secretKey } = client
  const other = makeClient()
  const line = other.connection
  if (typeof processID !== 'number' || typeof secretKey !== 'number' || typeof line?.cancel !== 'function')
    return Promise.resolve()
  return new Promise((resolve) => {
    const over = (): void => {
      stop()
      line.stream?.destroy()
      resolve()
    }
    const stop = timers.after(CANCEL_MS, over, { idle: true })
    line.on?.('error', over)
    line.on?.('end', over)
    const say = (): void => void line.cancel?.(processID, secretKey)
    const isSecure = other.ssl !== undefined && other.ssl !== false
    line.on?.('connect', () => {
      if (!isSecure) say()
      else if (other.sslNegotiation !== 'direct') line.requestSsl?.()
    })
    line.on?.('sslconnect', say)
    const { host = '', port = 0 } = other
    if (host.startsWith('/')) line.connect?.(`${host}/.s.PGSQL.${port}`)
    else line.connect?.(port, host)
  })
}
