import { InvalidOptionsError } from '../errors.js'
import { checkFields } from '../job/definition/check-fields.js'
import { printLine } from '../world/process.js'
import { DASHBOARD_LISTEN } from './dashboard-options.js'
import type { DashboardListenOptions, ServedDashboard } from './dashboard-options.js'
import type { Mill } from './mill-type.js'

/**
 * Serves the dashboard of a mill. It is loaded by the first call: a process without one has none of its code in memory.
 */
export async function serveDashboard(mill: Mill, options: DashboardListenOptions = {}): Promise<ServedDashboard> {
  const problems = checkFields(options, '', DASHBOARD_LISTEN)
  if (problems.length > 0) throw new InvalidOptionsError('mill.dashboard()', problems)
  const { listen } = await import('../dashboard/index.js')
  return listen(mill, options)
}

/** For the option `dashboard`: prints the link once, since only it has the token. */
export async function servePrinted(mill: Mill, given: true | DashboardListenOptions): Promise<void> {
  const { url } = await serveDashboard(mill, given === true ? {} : given)
  printLine(`dashboard: ${url}`)
}
