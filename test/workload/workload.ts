import { AsyncLocalStorage } from 'node:async_hooks'
import type { AnyJob } from '../../src/job/definition/define.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { SimulationConfig } from '../../src/testing/simulation/simulation.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import { cancellableJobs } from './cancellable-jobs.js'
import { BANKING, bankingJobs } from './banking-jobs.js'
import { linkedJobs } from './linked-jobs.js'
import { plainJobs } from './plain-jobs.js'
import type { ProcessState, SharedState } from './shared-state.js'
import { UNIQUE_RULES, uniqueJobs } from './unique-jobs.js'

/** Creates the campaign's own workload: a simulated fleet with every kind of job. */
export function createWorkload(
  config: SimulationConfig,
  plants: Plants,
  openEngine?: () => Promise<SimEngine>,
): SharedState {
  const tenant = new AsyncLocalStorage<string>()
  const scene = {
    jobs: (process: SimProcess) => jobsOf({ ...state, process, wait: (ms) => state.sim.wait(process, ms) }),
    capture: { tenant },
    banking: BANKING,
    uniques: UNIQUE_RULES,
  }
  const sim = new Simulation(config, scene, plants, openEngine)
  const state: SharedState = { sim, tenant, dozed: new Map(), newest: new Map(), seen: new Map() }
  return state
}

function jobsOf(state: ProcessState): AnyJob[] {
  return [
    ...plainJobs(state),
    ...cancellableJobs(state),
    ...uniqueJobs(state),
    ...bankingJobs(state),
    ...linkedJobs(state),
  ]
}

/** What must hold when all jobs have drained, beyond the promises for every fleet. */
export function checkWorkload({ sim, newest, seen }: SharedState): void {
  const { jobs, pauses } = sim.census()
  if (jobs.some((job) => job.state === 'blocked')) sim.count('blocked at the end by a parent that failed')
  const paused = pauses.filter(({ until }) => until === null)
  if (paused.length > 0)
    throw new BrokenPromise(`X14: queue ${paused[0]?.queue} is still paused, though it was resumed`)
  for (const { id, state } of jobs) {
    const [wanted, run] = [newest.get(id), seen.get(id) ?? -1]
    if (state === 'done' && wanted !== undefined && run < wanted)
      throw new BrokenPromise(
        `E6, T2: job ${id} was rescheduled or scheduled with payload ${wanted}, and is done with ${run}`,
      )
  }
}
