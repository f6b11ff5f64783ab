import { InvalidOptionsError } from '../../errors.js'
import { DASHBOARD } from '../../mill/dashboard-options.js'
import type { DashboardOptions } from '../../mill/dashboard-options.js'
import type { Mill } from '../../mill/mill-type.js'
import type { RequestEnvironment } from './app.js'
import { checkGiven, makeApp } from './make.js'

/** The dashboard as a Fetch handler. */
export interface Dashboard {
  readonly fetch: (request: Request, environment?: RequestEnvironment) => Promise<Response>
  /** Ends its streams. The close of the mill does that too. */
  readonly close: () => void
}

/**
 * The dashboard as a handler of Fetch requests, to mount in a server of yours. It needs `authorize` or `token`, and the names of your
 * hosts.
 *
 * ```ts
 * import { createServer } from 'node:http'
 * import { millrace } from 'millrace'
 * import { dashboard, toNodeHandler } from 'millrace/dashboard'
 * const mill = await millrace({ store: ':memory:' })
 * const pages = dashboard(mill, {
 *   authorize: (request) => (request.headers.get('x-user') === 'ada' ? { role: 'operator', actor: 'ada' } : null),
 *   hosts: ['jobs.example.com'],
 * })
 * const server = createServer(toNodeHandler(pages))
 * console.log(server.listening)
 * await mill.close()
 * ```
 */
export function dashboard(mill: Mill, options: DashboardOptions = {}): Dashboard {
  const internals = checkGiven('dashboard()', mill, options, DASHBOARD)
  const { authorize, token } = options
  if (authorize === undefined && token === undefined)
    throw new InvalidOptionsError('dashboard()', [
      {
        path: 'authorize',
        message: 'is missing: a function that says who sends a request, or a token of 32 characters or more',
      },
    ])
  const app = makeApp(mill, options, { token: authorize === undefined ? token : undefined, port: () => undefined })
  const forget = internals.onClose(() => app.end())
  const close = (): void => {
    forget()
    app.end()
  }
  return { fetch: (request, environment) => app.fetch(request, environment), close }
}
