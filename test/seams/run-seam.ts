import { NO_FAULTS } from '../../src/testing/simulation/faults.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import type { Scene } from '../../src/testing/simulation/scene.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import type { SimulationConfig } from '../../src/testing/simulation/simulation.js'
import type { PostgresEngine } from '../campaign/postgres-engine.js'
import { failingHints, failingHooks, failingLogger, failingTimers } from './failing-callbacks.js'
import { failingStatements } from './failing-statements.js'
import { failingStore } from './failing-store.js'
import { BANKING, sharedJobs } from './jobs.js'
import { SeamCalls } from './seam-calls.js'
import type { Seam, SeamGroup, Strike } from './seam.js'
import { SettleHookChecker } from './settle-hooks.js'
import { Stage } from './stage.js'
import type { Scenario } from './stage.js'

/** What came of one run of a scenario. */
export interface SeamReport {
  /** Every call that was made. */
  readonly calls: readonly Seam[]
  /** Whether the call to fail was made. */
  readonly isStruck: boolean
  /** The broken promise; undefined when all were kept. */
  readonly error: unknown
  readonly trace: readonly string[]
  /** How long it took to drain after the scenario had ended, in virtual ms. */
  readonly drainedMs: number
  readonly rescues: number
}

export interface SeamRun {
  readonly scenario: Scenario
  readonly group: SeamGroup
  /** Undefined: no call fails. */
  readonly strike?: Strike | undefined
  readonly openEngine?: (() => Promise<SimEngine>) | undefined
}

const CONFIG: SimulationConfig = {
  seed: 1,
  workers: 2,
  concurrency: 5,
  leaseMs: 3_000,
  pollMs: 2_000,
  crashBudget: 3,
  skewMs: 0,
  faults: NO_FAULTS,
  faultyMs: 1_500,
  // A lost lease, the observer's own start, a retry and a poll; nothing waits for longer.
  drainMs: 20_000,
}
/** A start hook that never answers holds its attempt until the timeout and the grace of 30 s are over. */
const CALLBACKS = { timeout: 2_000, drainMs: 80_000, faultyMs: 4_000 }

function configOf(scenario: Scenario, isCallbacks: boolean): SimulationConfig {
  const config = { ...CONFIG, ...scenario.config }
  if (!isCallbacks) return config
  const longest = (name: 'drainMs' | 'faultyMs'): number => Math.max(config[name], CALLBACKS[name])
  return { ...config, drainMs: longest('drainMs'), faultyMs: longest('faultyMs') }
}

/** Runs a scenario, with one of its calls failing. */
export async function runSeam({ scenario, group, strike, openEngine }: SeamRun): Promise<SeamReport> {
  const calls = new SeamCalls(() => sim, strike)
  const settled = new SettleHookChecker()
  const isCallbacks = group === 'callbacks'
  const config = configOf(scenario, isCallbacks)
  const opening = openEngine === undefined ? undefined : () => withStatements(openEngine, group, calls)
  const sim: Simulation = new Simulation(config, sceneOf(), plantsOf(group, calls), opening)
  function sceneOf(): Scene {
    const jobs = (process: SimProcess) => sharedJobs(sim, process)
    const options = (process: SimProcess) =>
      isCallbacks
        ? { hooks: failingHooks(process, calls), logger: failingLogger(process, calls), timeout: CALLBACKS.timeout }
        : { hooks: settled.hooks }
    return { jobs, banking: BANKING, options }
  }
  const failedStarts = (): number => (calls.isStruck && strike?.seam.call === 'hook:start' ? 1 : 0)
  let endedAt = sim.time.now
  let drainedMs = 0
  let error: unknown
  const rejected = (reason: unknown): void => sim.fail(reason)
  process.on('unhandledRejection', rejected)
  try {
    let stage: Stage | undefined
    await sim.run(async (mill, client) => {
      stage = new Stage(sim, mill, client, (config.drainMs * 3) / 4, failedStarts)
      await scenario.run(stage)
      endedAt = sim.time.now
    })
    drainedMs = sim.time.now - endedAt
    if (stage !== undefined) await scenario.check?.(stage)
    // The answer to the last write may be on its way.
    await sim.finish(new Promise((resolve) => sim.time.at(sim.time.now + config.leaseMs, resolve)))
    if (!isCallbacks) settled.check(sim)
  } catch (thrown) {
    error = thrown
  }
  process.off('unhandledRejection', rejected)
  return {
    calls: calls.seen,
    isStruck: calls.isStruck,
    error,
    trace: sim.trace,
    drainedMs,
    rescues: sim.coverage['rescues'] ?? 0,
  }
}

async function withStatements(open: () => Promise<SimEngine>, group: SeamGroup, calls: SeamCalls): Promise<SimEngine> {
  const engine = await open()
  if (group === 'statements') (engine as PostgresEngine).intercept = failingStatements(calls)
  return engine
}

function plantsOf(group: SeamGroup, calls: SeamCalls): Plants {
  if (group === 'store') return { wrapStore: (store, process) => failingStore(store, process, calls) }
  if (group === 'statements') return {}
  return {
    wrapStore: (store, process) => failingHints(store, process, calls),
    wrapWorld: (world, process) => failingTimers(world, process, calls),
  }
}
