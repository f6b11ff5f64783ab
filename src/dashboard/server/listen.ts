import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidOptionsError, StoreError } from '../../errors.js'
import { DASHBOARD_LISTEN, DASHBOARD_PORT } from '../../mill/dashboard-options.js'
import type { DashboardListenOptions, ServedDashboard } from '../../mill/dashboard-options.js'
import type { Mill } from '../../mill/mill-type.js'
import { checkGiven, makeApp, newSecret } from './make.js'
import { toNodeHandler } from './node.js'

const LOOPBACK = ['127.0.0.1', '::1', 'localhost']
const HEADERS_TIMEOUT_MS = 10_000

/** Serves the dashboard on a port of its own. */
export async function listen(mill: Mill, options: DashboardListenOptions = {}): Promise<ServedDashboard> {
  const internals = checkGiven('dashboard', mill, options, DASHBOARD_LISTEN)
  const { host = '127.0.0.1', port = DASHBOARD_PORT, authorize } = options
  if (!LOOPBACK.includes(host) && authorize === undefined && options.token === undefined)
    throw new InvalidOptionsError('dashboard', [
      {
        path: 'host',
        message: `must be 127.0.0.1 unless authorize or token is given, got ${JSON.stringify(host)}: other machines could open the dashboard`,
      },
    ])
  const token = authorize === undefined ? (options.token ?? newSecret(internals)) : undefined
  const bound: { port?: number } = {}
  const app = makeApp(mill, options, { token, port: () => bound.port })
  const handle = toNodeHandler(app)
  const server = createServer(
    { headersTimeout: HEADERS_TIMEOUT_MS },
    (request, response) => void handle(request, response),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, { host, port })))
    server.listen(port, host, resolve)
  })
  const { port: taken } = server.address() as AddressInfo
  bound.port = taken
  let closing: Promise<void> | undefined
  let forget: () => void = () => undefined
  const close = (): Promise<void> =>
    (closing ??= new Promise((resolve) => {
      forget()
      app.end()
      server.close(() => resolve())
      server.closeAllConnections()
    }))
  forget = internals.onClose(close)
  const shown = host.includes(':') ? `[${host}]` : host
  const url = `http://${shown}:${taken}/${token === undefined || options.token !== undefined ? '' : `#token=${token}`}`
  internals.log.write('info', {}, `dashboard on http://${shown}:${taken}/`)
  return { url, port: taken, close, [Symbol.asyncDispose]: close }
}

function listenError(
  error: NodeJS.ErrnoException,
  { host, port }: { readonly host: string; readonly port: number },
): Error {
  const why =
    error.code === 'EADDRINUSE'
      ? 'another program uses this port; give another one, or 0 for any that is free'
      : error.message
  return new StoreError('E_DASHBOARD_PORT', `dashboard: cannot listen on ${host}:${port}: ${why}`, { cause: error })
}
