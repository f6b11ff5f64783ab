import { seeded } from '../../src/testing/simulation/random.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import { Archive, runSequences } from '../workload/sequences.js'
import { reportOf, smallFleet } from './small-fleet.js'
import type { FleetReport } from './small-fleet.js'

/** A fleet that works off sequences, commanded at random: one history for each seed, apart from those of the other campaign. */
export async function runSequenceSeed(
  seed: number,
  plants: Plants = {},
  openEngine?: () => Promise<SimEngine>,
): Promise<FleetReport> {
  const config = smallFleet(seed, 'sequence', { workers: 3, concurrency: [1, 2, 5] })
  const archive = new Archive(() => sim)
  const scene = { jobs: (process: Parameters<Archive['jobs']>[0]) => archive.jobs(process), originOf: archive.originOf }
  const sim: Simulation = new Simulation(config, scene, plants, openEngine)
  const random = seeded(seed).fork('sequence steps')
  return reportOf({ sim, config, plants }, (mill, client) =>
    runSequences(sim, mill, client, random, random.int(15, 50)),
  )
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
