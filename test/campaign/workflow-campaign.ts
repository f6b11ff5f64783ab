import { seeded } from '../../src/testing/simulation/random.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import { Orders, runOrders } from '../workload/workflows.js'
import { reportOf, smallFleet } from './small-fleet.js'
import type { FleetReport } from './small-fleet.js'

/** A fleet that runs workflows, commanded at random: one history for each seed. */
export async function runWorkflowSeed(
  seed: number,
  plants: Plants = {},
  openEngine?: () => Promise<SimEngine>,
): Promise<FleetReport> {
  const config = smallFleet(seed, 'workflow', { workers: 3, concurrency: [1, 2, 5] })
  const orders = new Orders(() => sim)
  const scene = { jobs: (process: Parameters<Orders['jobs']>[0]) => orders.jobs(process), sent: orders.sent }
  const sim: Simulation = new Simulation(config, scene, plants, openEngine)
  const random = seeded(seed).fork('workflow steps')
  return reportOf({ sim, config, plants }, (mill, client) =>
    runOrders(sim, mill, client, random, orders, random.int(15, 45)),
  )
}

/** What a campaign must cover: a count of zero means that a case never occurred. */
export const WORKFLOWS_MUST_COVER: readonly string[] = [
  'fault: crash',
  'rescues',
  'processes killed by a handler',
  'stops',
  'workflows: made',
  'workflows: sent',
  'workflows: not sent',
  'workflows: cancel',
  'workflows: end',
  'workflows: pause',
  'workflows: resume',
  'workflows: retry',
  'workflows: cleaned up',
  'workflows: seen blocked',
  'workflows: seen done',
]
