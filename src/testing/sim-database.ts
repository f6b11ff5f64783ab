import { STORE_CHOICE } from '../store/choice.js'
import type { StoreChoice } from '../store/choice.js'
import { countChanges, readCensus } from '../store/sqlite/census.js'
import type { Census } from '../store/sqlite/census.js'
import { Statements } from '../store/sqlite/driver.js'
import { chooseLibrary } from '../store/sqlite/library.js'
import { openFile } from '../store/sqlite/open.js'
import type { OpenedFile } from '../store/sqlite/open.js'
import { queries as ownQueries } from '../store/sqlite/queries.js'
import type { Queries } from '../store/sqlite/queries.js'
import { SqliteStore } from '../store/sqlite/sqlite-store.js'
import type { Store } from '../store/store.js'
import type { Heart } from '../store/workers.js'
import type { World } from '../world/world.js'
import { systemWorld } from '../world/world.js'
import type { Faults } from './faults.js'
import { faultyStore } from './faults.js'
import type { SimProcess } from './sim-process.js'
import type { VirtualTime } from './virtual-time.js'

/** Parts a test may replace by wrong ones, to see that they are found. */
export interface Plants {
  readonly queries?: ((right: Queries) => Queries) | undefined
  /** The clock the database of a process goes by. */
  readonly databaseClock?: ((time: VirtualTime, process: SimProcess) => number) | undefined
  readonly wrapStore?: ((store: Store, process: SimProcess) => Store) | undefined
  readonly wrapWorld?: ((world: World) => World) | undefined
}

/** The one database of a simulated fleet: in memory, on one connection, which every process reaches through a store of its own. */
export class SimDatabase {
  readonly #time: VirtualTime
  readonly #plants: Plants
  readonly #file: OpenedFile
  readonly #statements: Statements
  #beats = 0
  /** When each worker's last beat went through: the truth that a rescuer must not contradict. */
  readonly lastBeats = new Map<string, number>()

  private constructor(time: VirtualTime, plants: Plants, file: OpenedFile) {
    this.#time = time
    this.#plants = plants
    this.#file = file
    this.#statements = new Statements(file.database)
  }

  static async open(time: VirtualTime, plants: Plants): Promise<SimDatabase> {
    const database = new (chooseLibrary().open)(':memory:')
    return new SimDatabase(
      time,
      plants,
      await openFile({ target: database, durability: 'process' }, true, systemWorld()),
    )
  }

  census(): Census {
    return readCensus(this.#statements)
  }

  /** Beats change one row each and nothing that is promised: they are not worth a look. */
  countChanges(): number {
    return countChanges(this.#statements) - this.#beats
  }

  #beaten(worker: string): void {
    this.#beats += 1
    this.lastBeats.set(worker, this.#time.now)
  }

  storeFor(process: SimProcess, faults: Faults, leaseMs: number): StoreChoice {
    const right: Queries = { ...ownQueries, dataVersion: SHARED_DATA_VERSION }
    const queries = this.#plants.queries?.(right) ?? right
    const clock = this.#plants.databaseClock
    const now = (): number => Math.floor(clock === undefined ? this.#time.now : clock(this.#time, process))
    const on = (world: World): SqliteStore =>
      new SqliteStore(this.#file, world, { durability: 'process', queries, now, statements: this.#statements })
    return {
      [STORE_CHOICE]: true,
      open: () => {
        const hearted = withHeart(on(process.world), on(process.heart), process, (worker) => this.#beaten(worker))
        const planted = this.#plants.wrapStore?.(hearted, process) ?? hearted
        return Promise.resolve(faultyStore(planted, process, faults, leaseMs))
      },
    }
  }
}

/** All simulated processes share a connection, where `data_version` stands still: what it has changed serves instead. */
const SHARED_DATA_VERSION = 'select total_changes() as data_version'

/** The heart beats from its own thread, with its own connection: it goes on while the loop is blocked. */
function withHeart(
  store: SqliteStore,
  heartStore: SqliteStore,
  process: SimProcess,
  beaten: (worker: string) => void,
): Store {
  const startHeart = (worker: string, everyMs: number, onLost: (why: string) => void): Promise<Heart> => {
    let ended = false
    const beat = async (): Promise<void> => {
      if (ended) return
      if (await heartStore.beat(worker)) beaten(worker)
      else if (!ended) return process.world.timers.soon(() => onLost('it was taken for dead'))
      process.heart.timers.after(everyMs, () => void beat(), { idle: true })
    }
    void beat()
    return Promise.resolve({
      stop: () => {
        ended = true
        return Promise.resolve()
      },
    })
  }
  return new Proxy(store, {
    get(target, name, proxy: Store) {
      if (name === 'leases' || name === 'jobs' || name === 'queues' || name === 'changes') return proxy
      if (name === 'startHeart') return startHeart
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
