import { ALL_FAULTS, NO_FAULTS } from '../../src/testing/simulation/faults.js'
import type { FaultRates } from '../../src/testing/simulation/faults.js'
import { seeded } from '../../src/testing/simulation/random.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import type { Coverage, SimulationConfig } from '../../src/testing/simulation/simulation.js'
import { Archive, runSequences } from '../workload/sequences.js'

/** A fleet that works off sequences, commanded at random: one history for each seed, apart from those of the other campaign. */
export interface SequenceReport {
  readonly seed: number
  readonly config: SimulationConfig
  readonly error: unknown
  readonly coverage: Coverage
  readonly trace: readonly string[]
}

function configOf(seed: number): SimulationConfig {
  const random = seeded(seed).fork('sequence config')
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

export async function runSequenceSeed(
  seed: number,
  plants: Plants = {},
  openEngine?: () => Promise<SimEngine>,
): Promise<SequenceReport> {
  const config = configOf(seed)
  const archive = new Archive(() => sim)
  const scene = { jobs: (process: Parameters<Archive['jobs']>[0]) => archive.jobs(process), originOf: archive.originOf }
  const sim: Simulation = new Simulation(config, scene, plants, openEngine)
  const random = seeded(seed).fork('sequence steps')
  let error: unknown
  try {
    await sim.run((mill, client) =>
      runSequences(sim, plants.wrapMill?.(mill) ?? mill, client, random, random.int(15, 50)),
    )
  } catch (thrown) {
    error = thrown
  }
  return { seed, config, error, coverage: sim.coverage, trace: sim.trace }
}

/** What a campaign must cover: a count of zero means that a case never occurred. */
export const SEQUENCES_MUST_COVER: readonly string[] = [
  'fault: crash',
  'rescues',
  'processes killed by a handler',
  'stops',
  'sequences: made',
  'sequences: held key',
  'sequences: start',
  'sequences: pause',
  'sequences: resume',
  'sequences: cancel',
  'sequences: reset',
  'sequences: seen waiting',
  'sequences: seen running',
  'sequences: seen paused',
  'sequences: seen done',
  'sequences: seen failed',
  'sequences: seen cancelled',
  'sequences: a result in spite of the signal',
]
