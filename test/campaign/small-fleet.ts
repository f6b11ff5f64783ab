import type { Mill } from '../../src/mill/mill-type.js'
import { ALL_FAULTS, NO_FAULTS } from '../../src/testing/simulation/faults.js'
import type { FaultRates } from '../../src/testing/simulation/faults.js'
import { seeded } from '../../src/testing/simulation/random.js'
import type { Plants } from '../../src/testing/simulation/sim-database.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Coverage, Simulation, SimulationConfig } from '../../src/testing/simulation/simulation.js'

/** The campaigns of one feature each: a small fleet, a history of its own for each seed. */
export interface FleetReport {
  readonly seed: number
  readonly config: SimulationConfig
  /** Undefined when every promise held. */
  readonly error: unknown
  readonly coverage: Coverage
  readonly trace: readonly string[]
}

/** The fleet and its faults, drawn from the seed and the name of the campaign. */
export function smallFleet(
  seed: number,
  campaign: string,
  most: { readonly workers: number; readonly concurrency: readonly number[] },
): SimulationConfig {
  const random = seeded(seed).fork(`${campaign} config`)
  const storm = random.next() * 1.5
  const rates = Object.entries(ALL_FAULTS).map(([kind, rate]) => [kind, (rate as number) * storm])
  const faults = { ...(Object.fromEntries(rates) as unknown as FaultRates), clockStep: 0 }
  return {
    seed,
    workers: random.int(1, most.workers),
    concurrency: random.pick(most.concurrency),
    leaseMs: random.pick([1_500, 3_000]),
    pollMs: random.pick([200, 1_000]),
    crashBudget: 3,
    skewMs: random.pick([0, 5_000]),
    faults: random.chance(0.15) ? NO_FAULTS : faults,
    faultyMs: random.int(4_000, 12_000),
    drainMs: 120_000,
  }
}

/** Runs a scenario; a broken promise is in the report, not thrown. `after` sees the mill of the app once the fleet has ended. */
export async function reportOf(
  { sim, config, plants }: { readonly sim: Simulation; readonly config: SimulationConfig; readonly plants: Plants },
  scenario: (mill: Mill, client: SimProcess) => Promise<void>,
  after?: (mill: Mill) => Promise<void>,
): Promise<FleetReport> {
  let error: unknown
  try {
    let app: Mill | undefined
    await sim.run((mill, client) => {
      app = plants.wrapMill?.(mill) ?? mill
      return scenario(app, client)
    })
    if (app !== undefined && after !== undefined) await sim.finish(after(app))
  } catch (thrown) {
    error = thrown
  }
  return { seed: config.seed, config, error, coverage: sim.coverage, trace: sim.trace }
}
