import type { SimEngine } from '../../src/testing/simulation/sim-database.js'
import type { Coverage, SimulationConfig } from '../../src/testing/simulation/simulation.js'
import { MUST_COVER, runSeed } from './campaign.js'
import { onPostgres } from './postgres.js'
import { runSequenceSeed, SEQUENCES_MUST_COVER } from './sequence-campaign.js'

/** What a simulated fleet works on, for `npm run simulate -- --workload NAME`. */
export interface Workload {
  /** Runs a seed on SQLite, or on the PostgreSQL store that `openEngine` opens. */
  readonly run: (seed: number, openEngine?: () => Promise<SimEngine>) => Promise<WorkloadReport>
  /** What a campaign must cover: a count of zero means that a case never occurred. */
  readonly mustCover: readonly string[]
}

interface WorkloadReport {
  readonly config: SimulationConfig
  /** Undefined when every promise held. */
  readonly error: unknown
  readonly coverage: Coverage
  readonly trace: readonly string[]
}

export const WORKLOADS: Readonly<Record<string, Workload>> = {
  jobs: {
    run: (seed, openEngine) => runSeed(seed, {}, openEngine === undefined ? {} : onPostgres(seed), openEngine),
    mustCover: MUST_COVER,
  },
  sequences: {
    run: (seed, openEngine) => runSequenceSeed(seed, {}, openEngine),
    mustCover: SEQUENCES_MUST_COVER,
  },
}
