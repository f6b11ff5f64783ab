import { ALL_FAULTS, NO_FAULTS } from '../../src/testing/simulation/faults.js'
import type { FaultRates } from '../../src/testing/simulation/faults.js'
import { seeded } from '../../src/testing/simulation/random.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import type { Coverage, SimulationConfig } from '../../src/testing/simulation/simulation.js'
import { Orders, runOrders } from '../workload/workflows.js'

/** A fleet that runs workflows, commanded at random: one history for each seed. */
export interface WorkflowReport {
  readonly seed: number
  readonly config: SimulationConfig
  readonly error: unknown
  readonly coverage: Coverage
  readonly trace: readonly string[]
}

function configOf(seed: number): SimulationConfig {
  const random = seeded(seed).fork('workflow config')
  const storm = random.next() * 1.5
  const rates = Object.entries(ALL_FAULTS).map(([kind, rate]) => [kind, (rate as number) * storm])
  const faults = { ...(Object.fromEntries(rates) as unknown as FaultRates), clockStep: 0 }
  return {
    seed,
    workers: random.int(1, 3),
    concurrency: random.pick([1, 2, 5]),
    leaseMs: random.pick([1_500, 3_000]),
    pollMs: random.pick([200, 1_000]),
    crashBudget: 3,
    skewMs: random.pick([0, 5_000]),
    faults: random.chance(0.15) ? NO_FAULTS : faults,
    faultyMs: random.int(4_000, 12_000),
    drainMs: 120_000,
  }
}

export async function runWorkflowSeed(
  seed: number,
  plants: Plants = {},
  openEngine?: () => Promise<SimEngine>,
): Promise<WorkflowReport> {
  const config = configOf(seed)
  const orders = new Orders(() => sim)
  const scene = { jobs: (process: Parameters<Orders['jobs']>[0]) => orders.jobs(process), sent: orders.sent }
  const sim: Simulation = new Simulation(config, scene, plants, openEngine)
  const random = seeded(seed).fork('workflow steps')
  let error: unknown
  try {
    await sim.run((mill, client) =>
      runOrders(sim, plants.wrapMill?.(mill) ?? mill, client, random, orders, random.int(15, 45)),
    )
  } catch (thrown) {
    error = thrown
  }
  return { seed, config, error, coverage: sim.coverage, trace: sim.trace }
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
