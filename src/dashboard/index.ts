/** The public names of millrace/dashboard. */
export { dashboard } from './server/dashboard.js'
export type { Dashboard } from './server/dashboard.js'
export { listen } from './server/listen.js'
export { toNodeHandler } from './server/node.js'
export type { FetchHandler } from './server/node.js'
export type { RequestEnvironment } from './server/app.js'
export type {
  DashboardColours,
  DashboardListenOptions,
  DashboardOptions,
  DashboardRole,
  DashboardUser,
  ServedDashboard,
} from '../mill/dashboard-options.js'
