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
import type { Seam, SeamFault, SeamGroup, Strike } from './seam.js'
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
  faultyMs: 0,
  scenarioMaxMs: 30_000,
  // A lost lease, the observer's own start, a retry and a poll; nothing waits for longer.
  drainMs: 20_000,
}
/** A start hook that never answers holds its attempt until the timeout and the grace of 30 s are over. */
const CALLBACKS = { timeout: 2_000, drainMs: 80_000, scenarioMaxMs: 80_000 }
/** How long a fleet with nothing to do is observed: each worker polls, sweeps after an end, beats and reads beats meanwhile. */
const IDLE_MS = 2_200
/** How long it goes on after the failed call: what follows from an error at once, and a retry of it. */
const AFTER_MS = 1_000
/** After these, an answer or a callback is still to come, or a worker is taken for dead. */
const HELD_BACK: ReadonlySet<SeamFault> = new Set(['late', 'lease lost', 'never answers'])
const LOOK_EVERY_MS = 100

function configOf(scenario: Scenario, isCallbacks: boolean): SimulationConfig {
  const config = { ...CONFIG, ...scenario.config }
  if (!isCallbacks) return config
  const longest = (name: 'drainMs' | 'scenarioMaxMs'): number => Math.max(config[name] ?? 0, CALLBACKS[name])
  return { ...config, drainMs: longest('drainMs'), scenarioMaxMs: longest('scenarioMaxMs') }
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
  let error: unknown
  const rejected = (reason: unknown): void => sim.fail(reason)
  process.on('unhandledRejection', rejected)
  try {
    let stage: Stage | undefined
    await sim.run(async (mill, client) => {
      stage = new Stage(mill, client, calls, (config.drainMs * 3) / 4)
      await scenario.run(stage)
    })
    if (stage !== undefined) await scenario.check?.(stage)
    await sim.finish(aftermath(calls, () => isCallbacks || settled.find(sim) === undefined))
    if (!isCallbacks) settled.check(sim)
  } catch (thrown) {
    error = thrown
  }
  process.off('unhandledRejection', rejected)
  return { calls: calls.seen, isStruck: calls.isStruck, error, trace: sim.trace }
}

/**
 * The fleet goes on when all has drained: until the call to fail was made, or will not be made any more, and what follows from it has
 * had its time. The answer to the last write may be on its way too.
 */
async function aftermath(calls: SeamCalls, isSettled: () => boolean): Promise<void> {
  const { sim, strike } = calls
  const { leaseMs } = sim.config
  const drainedAt = sim.time.now
  const afterMs = strike !== undefined && HELD_BACK.has(strike.fault) ? leaseMs : AFTER_MS
  const isOver = (): boolean => {
    if (!calls.isStruck) return sim.time.now >= drainedAt + IDLE_MS
    const from = Math.max(drainedAt, calls.struckAt)
    return sim.time.now >= from + leaseMs || (sim.time.now >= from + afterMs && isSettled())
  }
  while (!isOver()) await new Promise<void>((resolve) => sim.time.at(sim.time.now + LOOK_EVERY_MS, resolve))
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
