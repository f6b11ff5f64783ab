/** `millrace/testing`: for your tests and ours. */
export { testing, startPostgres } from './kit.js'
export type { TestKit, Drained } from './kit.js'
export { startMill, restart, waitFor } from './fixtures.js'
export { simulate, SimulationError } from './simulate.js'
export type { SimulateOptions, SimulatedApp, SimulationReport } from './simulate.js'
export type { FaultRates } from './faults.js'
export type { Random } from './random.js'
export type { Coverage, SimulationConfig } from './simulation.js'
