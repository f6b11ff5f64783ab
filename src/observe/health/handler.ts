import { show } from '../../codec/show.js'
import { InvalidOptionsError } from '../../errors.js'
import type { HealthReport } from './health.js'

/** The part of a mill that the handler calls. */
interface Checked {
  healthy(): boolean | null
  health(): Promise<HealthReport>
}

/**
 * A Fetch handler for health checks: 503 when the system is unhealthy, else 200 (also when it is not known yet). It gives no data.
 *
 * ```ts
 * import { healthHandler, millrace } from 'millrace'
 * const mill = await millrace({ store: ':memory:' })
 * const { fetch } = healthHandler(mill)
 * const response = await fetch(new Request('http://localhost/health'))
 * console.log(response.status)
 * await mill.close()
 * ```
 */
export function healthHandler(mill: Checked): { readonly fetch: (request: Request) => Promise<Response> } {
  if (typeof (mill as Partial<Checked> | undefined)?.health !== 'function') {
    const isPromise = typeof (mill as { then?: unknown } | undefined)?.then === 'function'
    const message = `must be a mill, got ${show(mill)}${isPromise ? '; await millrace() first' : ''}`
    throw new InvalidOptionsError('healthHandler()', [{ path: 'mill', message }])
  }
  return {
    fetch: async (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD')
        return new Response(null, { status: 405, headers: { allow: 'GET, HEAD' } })
      await mill.health().catch(() => undefined)
      const isHealthy = mill.healthy() !== false
      return new Response(request.method === 'HEAD' ? null : isHealthy ? 'ok\n' : 'unhealthy\n', {
        status: isHealthy ? 200 : 503,
        headers: { 'cache-control': 'no-store', 'content-type': 'text/plain; charset=utf-8' },
      })
    },
  }
}
