import { InvalidOptionsError, MillraceError } from '../../errors.js'
import { checkFields } from '../../job/definition/check-fields.js'
import type { Check } from '../../job/definition/check-fields.js'
import { isCount, isFunction, isShare } from '../../job/definition/check-options.js'
import type { AnyJob } from '../../job/definition/define.js'
import { Registry } from '../../job/definition/registry.js'
import { defaultCodec } from '../../codec/codec.js'
import { show } from '../../codec/show.js'
import type { Mill } from '../../mill/mill-type.js'
import { ALL_FAULTS, NO_FAULTS } from './faults.js'
import type { FaultRates } from './faults.js'
import type { Random } from './random.js'
import type { Coverage, SimulationConfig } from './simulation.js'
import { Simulation } from './simulation.js'
import { recordingMill } from './recording-mill.js'

export interface SimulateOptions {
  /** The jobs to run: an array, an object or a module, as for `millrace()`. */
  readonly jobs: object
  /** The seed decides the whole history: the same seed repeats it. Default 1. */
  readonly seed?: number | undefined
  /** Worker processes. Default 3. */
  readonly workers?: number | undefined
  /** Handlers at once in each. Default 5. */
  readonly concurrency?: number | undefined
  /** 'all' (default), 'none', or how likely each fault is at each seam. */
  readonly faults?: 'all' | 'none' | Partial<FaultRates> | undefined
  /** What your app does meanwhile: enqueue, schedule, cancel, look. It ends when the promise does. */
  readonly scenario: (app: SimulatedApp) => Promise<void>
  /** Checked at the end, when faults have stopped and everything has drained. */
  readonly check?: ((app: SimulatedApp) => Promise<void> | void) | undefined
}

/** Your app's side of a simulated fleet. */
export interface SimulatedApp {
  /** A mill that enqueues; its calls may fail as a store's may: catch what your app would. */
  readonly mill: Mill
  /** Seeded randomness of your own. */
  readonly random: Random
  /** Waits in virtual time. */
  readonly sleep: (ms: number) => Promise<void>
  /** Virtual now by the database's clock, in ms since 1970. */
  readonly now: () => number
}

export interface SimulationReport {
  readonly seed: number
  /** What happened, line by line: identical for identical seeds, as long as the handlers use nothing of the real world. */
  readonly trace: readonly string[]
  /** What occurred: crashes, rescues, lost hints, suspects, retries. */
  readonly coverage: Coverage
  /** Handler runs in all. */
  readonly runs: number
}

/** A promise was broken, or the scenario failed; the seed repeats the history. */
export class SimulationError extends MillraceError {
  readonly seed: number
  readonly config: SimulationConfig
  readonly trace: readonly string[]
  constructor(config: SimulationConfig, trace: readonly string[], cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause)
    super(
      'E_SIMULATION',
      `seed ${config.seed}: ${why}\nsimulate({ …, seed: ${config.seed} }) tells it again; configuration: ${JSON.stringify(config)}`,
      { cause },
    )
    this.seed = config.seed
    this.config = config
    this.trace = trace
  }
}

/**
 * Runs your jobs on a simulated fleet that crashes, stalls and loses messages, from one seed, in virtual time; afterwards every
 * acknowledged job must have ended. Throws a SimulationError with the seed when a promise was broken.
 *
 * ```ts
 * import { job } from 'millrace'
 * import { simulate } from 'millrace/testing'
 * const greet = job('greet', async (p: { name: string }) => `hello ${p.name}`)
 * const report = await simulate({
 *   jobs: [greet],
 *   seed: 42,
 *   scenario: async ({ mill, sleep }) => {
 *     await mill.enqueue(greet, { name: 'Ada' }).catch(() => undefined)
 *     await sleep(1_000)
 *   },
 * })
 * console.log(report.coverage)
 * ```
 */
export async function simulate(options: SimulateOptions): Promise<SimulationReport> {
  checkOptions(options)
  const config = configFrom(options)
  const jobs = new Registry(options.jobs, {
    codec: defaultCodec,
    retry: undefined,
    timeoutMs: Infinity,
    keep: undefined,
    unknown: undefined,
  })
  const list: readonly AnyJob[] = jobs.list().map((registered) => registered.job)
  const sim = new Simulation(config, { jobs: () => list })
  let app: SimulatedApp | undefined
  try {
    await sim.run(async (mill, client) => {
      const sleep = (ms: number): Promise<void> => sim.wait(client, ms)
      app = { mill: recordingMill(mill, sim), random: sim.random('app'), sleep, now: () => sim.clock.now }
      await options.scenario(app)
    })
    if (options.check !== undefined && app !== undefined) await sim.finish(Promise.resolve(options.check(app)))
  } catch (error) {
    throw new SimulationError(config, sim.trace, error)
  }
  return { seed: config.seed, trace: sim.trace, coverage: sim.coverage, runs: sim.runs.total }
}

function configFrom(options: SimulateOptions): SimulationConfig {
  const { faults = 'all' } = options
  const rates = faults === 'all' ? ALL_FAULTS : faults === 'none' ? NO_FAULTS : { ...NO_FAULTS, ...faults }
  return {
    seed: options.seed ?? 1,
    workers: options.workers ?? 3,
    concurrency: options.concurrency ?? 5,
    leaseMs: 5_000,
    pollMs: 1_000,
    crashBudget: 3,
    skewMs: 60_000,
    faults: rates,
    faultyMs: 10_000,
    // Retries wait up to an hour and there are 25 of them: virtual time is cheap.
    drainMs: 60 * 60 * 60_000,
  }
}

function checkOptions(options: unknown): void {
  const rates = Object.fromEntries(Object.keys(NO_FAULTS).map((fault) => [fault, isShare]))
  const isFaults: Check = (value) => {
    if (value === 'all' || value === 'none') return undefined
    if (typeof value === 'object' && value !== null) return checkFields(value, '', { fields: rates })
    return `must be "all", "none" or an object of rates, got ${show(value)}`
  }
  const problems = checkFields(options, '', {
    fields: {
      jobs: () => undefined,
      seed: isCount(0, 0xffff_ffff),
      workers: isCount(1, 20),
      concurrency: isCount(1, 1_000),
      faults: isFaults,
      scenario: isFunction,
      check: isFunction,
    },
  })
  if (typeof options === 'object' && options !== null && !('scenario' in options))
    problems.push({ path: 'scenario', message: 'is needed: what your app does' })
  if (problems.length > 0) throw new InvalidOptionsError('simulate()', problems)
}
