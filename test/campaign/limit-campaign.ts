import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { Mill } from '../../src/mill/mill-type.js'
import { checkRate, LimitChecker } from '../../src/testing/checkers/limit-checks.js'
import { seeded } from '../../src/testing/simulation/random.js'
import type { Random } from '../../src/testing/simulation/random.js'
import { recordingMill } from '../../src/testing/simulation/recording-mill.js'
import type { Plants, SimEngine } from '../../src/testing/simulation/sim-database.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import { Simulation } from '../../src/testing/simulation/simulation.js'
import { reportOf, smallFleet } from './small-fleet.js'
import type { FleetReport } from './small-fleet.js'

const RATE = { max: 4, perMs: 1_000 }

interface Payload {
  /** Its key. */
  readonly n: number
  readonly ms: number
  readonly kills?: boolean
}

/** The jobs of every process, and whether the service that they call is down. */
class Shop {
  readonly #sim: () => Simulation
  readonly #killed = new Set<string>()
  isDown = false

  constructor(sim: () => Simulation) {
    this.#sim = sim
  }

  jobs(process: SimProcess): readonly AnyJob[] {
    const sim = this.#sim
    const killed = this.#killed
    const run = async ({ ms, kills }: Payload, ctx: { readonly id: string }): Promise<void> => {
      await sim().wait(process, ms)
      if (kills !== true || killed.has(ctx.id)) return
      killed.add(ctx.id)
      await sim().kill(process)
    }
    const call = async (payload: Payload, ctx: { readonly id: string }): Promise<void> => {
      await run(payload, ctx)
      if (this.isDown) throw new Error('the service is down')
    }
    return [
      job('plain', { run }),
      job('gated', { run, limit: { max: 2 } }),
      job('tenant', { run, limit: { max: 3, key: (p) => (p as Payload).n } }),
      job('paced', { run, rate: { max: RATE.max, per: RATE.perMs }, retry: { backoff: { start: 100, factor: 1 } } }),
      job('narrow', { run, queue: 'narrow' }),
      job('call', {
        run: call,
        queue: 'calls',
        retry: { limit: Infinity, backoff: { start: 100, factor: 1, max: 100 } },
      }),
    ]
  }
}

const NAMES = ['plain', 'gated', 'tenant', 'tenant', 'paced', 'narrow', 'call'] as const

async function runShop(
  sim: Simulation,
  shop: Shop,
  given: Mill,
  client: SimProcess,
  random: Random,
  steps: number,
): Promise<void> {
  const mill = recordingMill(given, sim)
  for (let step = 0; step < steps; step += 1) {
    const name = random.pick([...NAMES])
    const payloads = Array.from({ length: random.int(1, name === 'tenant' ? 14 : 5) }, () => ({
      n: random.chance(0.6) ? 0 : random.int(1, 6),
      ms: random.int(0, 150),
      ...(random.chance(0.03) ? { kills: true } : {}),
    }))
    await mill.enqueueMany(name, payloads).catch(() => sim.count('limits: refused enqueues'))
    if (random.chance(0.25)) shop.isDown = !shop.isDown
    if (shop.isDown) sim.count('outages: down')
    await sim.wait(client, random.int(0, 600))
  }
  shop.isDown = false
}

async function checkStarts(mill: Mill): Promise<void> {
  checkRate(await startsOf(mill, 'paced'), RATE.max, RATE.perMs)
}

async function startsOf(mill: Mill, name: string): Promise<number[]> {
  const starts: number[] = []
  for await (const record of mill.find({ job: name })) {
    const all = [
      ...record.attempts.map(({ startedAt }) => startedAt),
      ...(record.startedAt === undefined ? [] : [record.startedAt]),
    ]
    starts.push(...new Set(all.map((at) => at.getTime())))
  }
  return starts
}

/** A fleet under limits, rates and outages: one history for each seed, apart from those of the other campaigns. */
export async function runLimitSeed(
  seed: number,
  plants: Plants = {},
  openEngine?: () => Promise<SimEngine>,
): Promise<FleetReport> {
  const config = smallFleet(seed, 'limit', { workers: 4, concurrency: [1, 2, 5, 10] })
  const shop = new Shop(() => sim)
  const checker = new LimitChecker({
    limits: [
      { name: 'gated', max: 2 },
      { name: 'tenant', max: 3, isKeyed: true },
      { queue: 'narrow', max: 2 },
    ],
    turns: 'tenant',
    claimedMax: config.workers * config.concurrency,
    pollMs: config.pollMs,
    databaseNow: () => sim.clock.now,
    count: (what) => sim.count(what),
  })
  const scene = {
    jobs: (process: SimProcess) => shop.jobs(process),
    options: () => ({ queues: { narrow: { limit: { max: 2 } } } }),
    checks: { check: checker.check.bind(checker), begins: () => undefined },
  }
  const sim: Simulation = new Simulation(config, scene, plants, openEngine)
  const random = seeded(seed).fork('limit steps')
  return reportOf(
    { sim, config, plants },
    (mill, client) => runShop(sim, shop, mill, client, random, random.int(8, 20)),
    checkStarts,
  )
}

/** What a campaign must cover: a count of zero means that a case never occurred. */
export const LIMITS_MUST_COVER: readonly string[] = [
  'fault: crash',
  'rescues',
  'processes killed by a handler',
  'limits: full',
  'limits: turns',
  'outages: down',
  'outages: probes',
]
