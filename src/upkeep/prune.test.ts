import { describe, expect, test } from 'vitest'
import { chooseLibrary } from '../store/sqlite/connection/library.js'
import { openFile } from '../store/sqlite/connection/open.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import type { Store } from '../store/store.js'
import { ContractFixture } from '../../test/contract/fixture.js'
import { VirtualTime } from '../testing/simulation/virtual-time.js'
import { systemTimers } from '../world/timers.js'
import { systemWorld } from '../world/world.js'
import type { World } from '../world/world.js'
import { budgetOf, PACE_MS, Pruner, QUIET_MS, STEP, waitAfter } from './prune.js'

interface Countable {
  prepare(sql: string): { get(): unknown }
}

/** A real store and a pruner in virtual time, so that the counts do not depend on the machine. */
class House {
  readonly time = new VirtualTime(1_800_000_000_000)
  readonly clock = { now: this.time.now }
  readonly store: Store
  readonly b: ContractFixture
  readonly pruner: Pruner
  readonly #database: Countable
  polls = 0
  #worker = ''

  static async open(): Promise<House> {
    const database = new (chooseLibrary().open)(':memory:')
    const file = await openFile({ target: database, durability: 'process' }, true, systemWorld())
    const house = new House(database, file)
    house.#worker = await house.b.worker()
    house.pruner.start()
    return house
  }

  constructor(database: Countable, file: Awaited<ReturnType<typeof openFile>>) {
    this.#database = database
    const { time } = this
    const world: World = {
      ...systemWorld(),
      clock: { now: () => Math.floor(time.now), monotonic: () => time.now },
      timers: {
        after: (ms, run, options) => time.at(time.now + ms, run, options),
        soon: (run) => systemTimers.soon(run),
      },
    }
    const store = new SqliteStore(file, world, { durability: 'process', now: () => Math.floor(time.now) })
    this.store = store
    this.b = new ContractFixture({ store, clock: this.clock })
    const counted = new Proxy(store, {
      get: (target, name) => {
        if (name === 'jobs') return counted
        if (name === 'pruneJobs') this.polls += 1
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    this.pruner = new Pruner(world, counted, (_, error) => {
      throw error
    })
  }

  async end(count: number, keepMs: number): Promise<void> {
    await this.b.insert(Array.from({ length: count }, () => this.b.job()))
    const { jobs } = await this.b.claim(this.#worker, { max: count })
    await this.store.leases.settleJobs(
      jobs.map((job) => this.b.settled(job, { keepMs, result: null })),
      jobs.slice(0, 1).map((job) => job.fence),
    )
    for (let i = 0; i < jobs.length; i += 1) this.pruner.ended(keepMs)
  }

  async pass(ms: number): Promise<void> {
    await this.time.advanceTo(this.time.now + ms)
    this.clock.now = this.time.now
  }

  rows(): number {
    return (this.#database.prepare('select count(*) as rows from millrace_jobs').get() as { rows: number }).rows
  }

  async close(): Promise<void> {
    await this.pruner.stop()
    await this.store.close()
  }
}

describe('the pruner', () => {
  test('keeps up with 20,000 ends a second that are kept for a second', { timeout: 60_000 }, async () => {
    const house = await House.open()
    const [perTick, tickMs, keepMs] = [500, 25, 1_000]
    const perMs = perTick / tickMs
    let most = 0
    for (let ms = 0; ms < 3_000; ms += tickMs) {
      await house.end(perTick, keepMs)
      await house.pass(tickMs)
      most = Math.max(most, house.rows())
    }
    expect(most).toBeLessThanOrEqual(perMs * (keepMs + 2 * PACE_MS) + perTick)
    // When no more jobs end, the rest is deleted at the pace of a backlog.
    await house.pass(keepMs + (house.rows() / STEP) * PACE_MS + 2 * PACE_MS)
    expect(house.rows()).toBe(0)
    await house.close()
  })

  test('runs when the first short-lived job expires, not at the next quiet round', async () => {
    const house = await House.open()
    await house.pass(5_000)
    await house.end(1, 1_000)
    await house.pass(999)
    expect(house.rows()).toBe(1)
    await house.pass(PACE_MS + 1)
    expect(house.rows()).toBe(0)
    await house.close()
  })

  test('deletes jobs that another process left behind, and polls an idle store rarely', async () => {
    const house = await House.open()
    await house.pass(1_000)
    const before = house.polls
    await house.pass(10 * QUIET_MS)
    expect(house.polls - before).toBeLessThanOrEqual(10)
    await house.close()
  })

  test('runs no additional rounds for jobs that are kept for a week', async () => {
    const house = await House.open()
    await house.pass(1_000)
    const before = house.polls
    for (let i = 0; i < 20; i += 1) {
      await house.end(10, 7 * 86_400_000)
      await house.pass(500)
    }
    expect(house.polls - before).toBeLessThanOrEqual(1)
    expect(house.rows()).toBe(200)
    await house.close()
  })

  test('plans by the number of ended jobs and by when the next job expires', () => {
    expect(budgetOf(5_000)).toBeGreaterThan(5_000)
    expect(budgetOf(0)).toBeGreaterThan(0)
    expect([waitAfter(undefined), waitAfter({ nextInMs: 0 }), waitAfter({ nextInMs: 400 })]).toEqual([
      PACE_MS,
      PACE_MS,
      400,
    ])
    expect([waitAfter({ nextInMs: null }), waitAfter({ nextInMs: 86_400_000 })]).toEqual([QUIET_MS, QUIET_MS])
  })
})
