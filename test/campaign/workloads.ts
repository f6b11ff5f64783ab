import type { SimEngine } from '../../src/testing/simulation/sim-database.js'
import { MUST_COVER, runSeed } from './campaign.js'
import { onPostgres } from './postgres.js'
import { LIMITS_MUST_COVER, runLimitSeed } from './limit-campaign.js'
import { runSequenceSeed, SEQUENCES_MUST_COVER } from './sequence-campaign.js'
import type { FleetReport } from './small-fleet.js'
import { runWorkflowSeed, WORKFLOWS_MUST_COVER } from './workflow-campaign.js'

/** What a simulated fleet works on, for `npm run simulate -- --workload NAME`. */
export interface Workload {
  /** Runs a seed on SQLite, or on the PostgreSQL store that `openEngine` opens. */
  readonly run: (seed: number, openEngine?: () => Promise<SimEngine>) => Promise<Omit<FleetReport, 'seed'>>
  /** What a campaign must cover: a count of zero means that a case never occurred. */
  readonly mustCover: readonly string[]
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
  workflows: {
    run: (seed, openEngine) => runWorkflowSeed(seed, {}, openEngine),
    mustCover: WORKFLOWS_MUST_COVER,
  },
  limits: {
    run: (seed, openEngine) => runLimitSeed(seed, {}, openEngine),
    mustCover: LIMITS_MUST_COVER,
  },
}
