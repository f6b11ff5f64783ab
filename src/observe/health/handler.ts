import { textHandler } from '../text-handler.js'
import type { TextHandler } from '../text-handler.js'
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
export function healthHandler(mill: Checked): TextHandler {
  return textHandler('healthHandler()', mill, async () => {
    await mill.health().catch(() => undefined)
    const isHealthy = mill.healthy() !== false
    return { text: isHealthy ? 'ok\n' : 'unhealthy\n', status: isHealthy ? 200 : 503 }
  })
}
