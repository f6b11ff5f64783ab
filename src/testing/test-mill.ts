import { AsyncLocalStorage } from 'node:async_hooks'
import { buildMill } from '../mill.js'
import type { Instant } from '../job/duration/duration.js'
import { parseInstant } from '../job/duration/duration.js'
import type { MillOptions } from '../mill/options.js'
import { STORE_CHOICE } from '../store/choice.js'
import { chooseLibrary } from '../store/sqlite/connection/library.js'
import { openFile } from '../store/sqlite/connection/open.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import type { SqliteHandle } from '../store/sqlite/connection/driver.js'
import type { Store } from '../store/store.js'
import type { Running } from '../worker/running.js'
import { makeIds } from '../world/ids.js'
import { UNKNOWN_PROCESSES } from '../world/processes.js'
import { systemTimers } from '../world/timers.js'
import type { World } from '../world/world.js'
import { systemWorld } from '../world/world.js'
import { seeded } from './simulation/random.js'
import { VirtualTime } from './simulation/virtual-time.js'
import { Bench } from './bench.js'
import type { TestMill } from './bench.js'

/** Noon on a day that every test shares. */
const START = Date.UTC(2030, 0, 1, 12)

/** What a mill under test takes: all that any mill does, but for its store, which is in memory unless you have a handle. */
export type TestOptions = Omit<MillOptions, 'store'> & {
  /** A handle that the code under test works with; its transactions are the store's. Default: a store in memory. */
  readonly store?: SqliteHandle | undefined
  /** When the virtual clock begins. Default '2030-01-01T12:00:00Z'. */
  readonly now?: Instant | undefined
}

/** Opens the store of a mill under test: it lives in the mill's world, and its clock is the test's. */
export type OpenTestStore = (world: World, now: () => number) => Promise<Store>

export async function buildTestMill(
  { store: given, now, ...options }: TestOptions,
  openStore: OpenTestStore = onSqlite(given),
): Promise<TestMill> {
  const begin = now === undefined ? undefined : parseInstant(now)
  const time = new VirtualTime(begin?.ok === true ? begin.atMs : START)
  const world = testWorld(time)
  const store = await openStore(world, () => Math.floor(time.now))
  const choice = { [STORE_CHOICE]: true as const, open: () => Promise.resolve(store) }
  const inside = new AsyncLocalStorage<Running>()
  const mill = await buildMill({ ...options, logger: options.logger ?? false }, { world, store: choice, inside })
  const worker = world.ids.workerId()
  await store.leases.addWorker({ id: worker, host: 'test', pid: 0 })
  // Code under test may start and stop its mill, also on signals, as in production: here that changes nothing.
  const nothing = {
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    stopOnSignals: () => () => undefined,
  }
  Object.assign(mill, nothing)
  const bench = new Bench(mill, store, world, time, options, worker, inside)
  return bench
}

function onSqlite(given: SqliteHandle | undefined): OpenTestStore {
  return async (world, now) => {
    const target = given ?? new (chooseLibrary().open)(':memory:')
    const file = await openFile({ target, durability: 'process' }, true, systemWorld())
    return new SqliteStore(file, world, { durability: 'process', now })
  }
}

/** Turns of the loop are real, so that what is awaited goes on; timers wait for time to be moved. */
function testWorld(time: VirtualTime): World {
  const random = seeded(1)
  return {
    clock: { now: () => Math.floor(time.now), monotonic: () => time.now },
    timers: {
      after: (ms, run, o) => time.at(time.now + Math.max(0, ms), run, o),
      soon: (run) => systemTimers.soon(run),
    },
    ids: makeIds(() => random.word()),
    random: () => random.next(),
    processes: UNKNOWN_PROCESSES,
  }
}
