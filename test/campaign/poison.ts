import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { Mill } from '../../src/mill/mill-type.js'
import { CrashChecker } from './crash-checks.js'
import { NO_FAULTS } from '../../src/testing/simulation/faults.js'
import { seeded } from '../../src/testing/simulation/random.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { Plants } from '../../src/testing/simulation/sim-database.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import type { Coverage, SimulationConfig } from '../../src/testing/simulation/simulation.js'
import { recordingMill } from '../../src/testing/simulation/recording-mill.js'

/** The result of one seed. */
export interface PoisonReport {
  readonly seed: number
  readonly error: unknown
  readonly coverage: Coverage
  readonly trace: readonly string[]
}

const JOBS = 90
/** The quarantine's minute, in virtual ms: heartbeats and polls continue meanwhile, and a shorter one makes as many quarantines. */
const MINUTE_MS = 2_000

function configOf(seed: number): SimulationConfig {
  const random = seeded(seed).fork('config')
  return {
    seed,
    workers: random.int(1, 3),
    concurrency: random.pick([1, 3, 10, 20]),
    leaseMs: 1_500,
    pollMs: 500,
    crashBudget: random.pick([1, 2, 3]),
    quarantineMs: MINUTE_MS,
    skewMs: 0,
    faults: NO_FAULTS,
    faultyMs: random.int(2_000, 20_000),
    drainMs: 600_000,
  }
}

/**
 * One seeded history of a fleet with poison jobs, each of a random position, priority and time until it kills its process,
 * among others that are quick, long or fail, and with plain kills of workers. There are no other faults, so that the crash
 * rule can be checked exactly.
 */
export async function runPoisonSeed(seed: number, plants: Plants = {}): Promise<PoisonReport> {
  const config = configOf(seed)
  const poison = new Map<string, number>()
  const workers: SimProcess[] = []
  const checker = new CrashChecker({
    now: () => sim.time.now,
    census: () => sim.census(),
    firstMs: MINUTE_MS,
    crashBudget: config.crashBudget,
    poison,
    count: (what) => sim.count(what),
  })
  const jobs = (process: SimProcess): AnyJob[] => {
    if (process.mayCrash) workers.push(process)
    return poisonJobs(sim, process, checker)
  }
  const sim: Simulation = new Simulation(config, { jobs, checks: checker }, plants)
  let error: unknown
  try {
    await sim.run((mill, client) => tell(sim, recordingMill(mill, sim), client, poison, workers))
  } catch (thrown) {
    error = thrown
  }
  return { seed, error, coverage: sim.coverage, trace: sim.trace }
}

function poisonJobs(sim: Simulation, process: SimProcess, checker: CrashChecker): AnyJob[] {
  const good = job('good', (p: { ms: number }) => (p.ms === 0 ? undefined : sim.wait(process, p.ms)))
  const flaky = job('flaky', {
    run: async (p: { ms: number }, ctx) => {
      await sim.wait(process, p.ms)
      if (ctx.attempt === 1) throw new Error('the first attempt fails')
    },
    retry: { limit: 3, backoff: { start: 200 } },
  })
  const poison = job('poison', (p: { ms: number }, ctx) => {
    const kill = (): Promise<never> => {
      try {
        checker.killed(ctx.id)
      } catch (error) {
        sim.fail(error)
      }
      return sim.kill(process)
    }
    return p.ms === 0 ? kill() : sim.wait(process, p.ms).then(kill)
  })
  return [good, flaky, poison] as AnyJob[]
}

async function tell(
  sim: Simulation,
  mill: Mill,
  client: SimProcess,
  poison: Map<string, number>,
  workers: readonly SimProcess[],
): Promise<void> {
  const random = sim.random('story')
  const poisonAt = new Set(Array.from({ length: random.int(1, 3) }, () => random.int(0, JOBS - 1)))
  for (let place = 0; place < JOBS; place += 1) {
    const priority = random.int(-2, 2)
    const [name, ms] = poisonAt.has(place) ? ['poison', poisonMs(random)] : otherJob(random)
    const { id } = await mill.enqueue(name, { ms }, { priority })
    if (name === 'poison') poison.set(id, ms)
    if (random.chance(0.1)) await sim.wait(client, random.next() * 3_000)
    if (random.chance(0.05)) killOne(sim, random, workers)
  }
}

/** At once, soon, or after up to ten minutes; never close to the end of a quarantine, where both results are right. */
function poisonMs(random: Random): number {
  if (random.chance(0.3)) return 0
  if (random.chance(0.4)) return random.int(1, MINUTE_MS * 0.9)
  return Math.round(MINUTE_MS * 2 ** random.int(0, 3) * (1.1 + random.next() * 0.8))
}

function otherJob(random: Random): [string, number] {
  if (random.chance(0.15)) return ['flaky', random.int(0, 3_000)]
  if (random.chance(0.5)) return ['good', 0]
  return ['good', random.chance(0.6) ? random.int(1, 1_000) : random.int(1_000, MINUTE_MS * 4)]
}

/** A plain kill -9 of a worker. */
function killOne(sim: Simulation, random: Random, workers: readonly SimProcess[]): void {
  const alive = workers.filter((process) => process.alive)
  if (alive.length > 0) void sim.kill(random.pick(alive))
}
