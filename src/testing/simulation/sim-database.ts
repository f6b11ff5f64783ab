import type { Mill } from '../../mill/mill-type.js'
import { STORE_CHOICE } from '../../store/choice.js'
import type { StoreChoice } from '../../store/choice.js'
import { countChanges, makeWork, readCensusWithWork, transact } from '../../store/sqlite/verbs/census.js'
import type { SimulatedCensus } from '../checkers/checks.js'
import { SQLITE, Statements } from '../../store/sqlite/connection/driver.js'
import type { SqliteDatabase, SqliteStatement } from '../../store/sqlite/connection/driver.js'
import { chooseLibrary } from '../../store/sqlite/connection/library.js'
import { openFile } from '../../store/sqlite/connection/open.js'
import type { OpenedFile } from '../../store/sqlite/connection/open.js'
import { queries as ownQueries } from '../../store/sqlite/queries/queries.js'
import type { Queries } from '../../store/sqlite/queries/queries.js'
import { SqliteStore } from '../../store/sqlite/sqlite-store.js'
import type { Hint, Store } from '../../store/store.js'
import type { Heartbeat, WorkerInfo } from '../../store/workers.js'
import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import { systemWorld } from '../../world/world.js'
import type { Faults } from './faults.js'
import { faultyStore, START_HEARTBEAT } from './faults.js'
import type { SimClock } from './sim-clock.js'
import { SimMachines } from './sim-machines.js'
import type { SimProcess } from './sim-process.js'
import type { VirtualTime } from './virtual-time.js'

/** Parts a test may replace by wrong ones, to see that they are found. */
export interface Plants {
  readonly queries?: ((right: Queries) => Queries) | undefined
  /** The clock of the database as one process sees it. */
  readonly databaseClock?: ((time: VirtualTime, process: SimProcess) => number) | undefined
  readonly wrapStore?: ((store: Store, process: SimProcess) => Store) | undefined
  /** The mill that the scenario's client is given. */
  readonly wrapMill?: ((mill: Mill) => Mill) | undefined
  readonly wrapWorld?: ((world: World) => World) | undefined
}

/** The one database of a simulated fleet: in memory, on one connection, which every process reaches through a store of its own. */
export class SimDatabase {
  readonly #time: VirtualTime
  readonly #plants: Plants
  readonly #clock: SimClock
  readonly #file: OpenedFile
  readonly #statements: Statements
  readonly #listeners = new Set<Listener>()
  #beats = 0
  readonly machines = new SimMachines()
  /** No process can write until then. */
  heldUntil = -Infinity
  /** Workers whose heartbeats were stopped by their own processes. */
  readonly stopped = new Set<string>()
  /** Which process each worker is of. */
  readonly processes = new Map<string, SimProcess>()
  /** When each worker's last beat went through: the truth that a rescuer must not contradict. */
  readonly lastBeats = new Map<string, number>()
  /** Workers that delete their own row as they stop, and so were not declared dead. */
  readonly leaving = new Set<string>()

  private constructor(time: VirtualTime, clock: SimClock, plants: Plants, file: OpenedFile) {
    this.#time = time
    this.#clock = clock
    this.#plants = plants
    this.#file = file
    this.#statements = new HeldStatements(file.database, () => time.now < this.heldUntil)
  }

  /** `provable`: whether processes of one machine can prove each other's end. */
  static async open(time: VirtualTime, clock: SimClock, plants: Plants, provable = true): Promise<SimDatabase> {
    const database = new (chooseLibrary().open)(':memory:')
    makeWork(database)
    const made = new SimDatabase(
      time,
      clock,
      plants,
      await openFile({ target: database, durability: 'process' }, true, systemWorld()),
    )
    made.machines.provable = provable
    return made
  }

  census(): SimulatedCensus {
    return readCensusWithWork(this.#statements)
  }

  /** A transaction of an app's own on the jobs' database, ended in the turn in which it began. */
  transact(work: (tx: SqliteDatabase) => void): void {
    transact(this.#file.database, work)
  }

  /** Beats change one row each and nothing that is promised: they cause no check. */
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
    const now = (): number => Math.floor(clock === undefined ? this.#clock.now : clock(this.#time, process))
    const on = (world: World): SqliteStore =>
      new SqliteStore(this.#file, world, {
        durability: 'process',
        queries,
        now,
        statements: this.#statements,
      })
    return {
      [STORE_CHOICE]: true,
      open: () => {
        const store = on(process.world)
        store.onHint((hint) => this.#notifyOthers(process, hint))
        const beating = withHeartbeat(store, on(process.heartbeatWorld), {
          process,
          beaten: (worker) => this.#beaten(worker),
          added: (worker) => void this.processes.set(worker, process),
          stopped: (worker) => void this.stopped.add(worker),
          leaves: (worker) => void this.leaving.add(worker),
          onHint: (callback) => this.#listen(store, { process, callback }),
        })
        const planted = this.#plants.wrapStore?.(beating, process) ?? beating
        return Promise.resolve(faultyStore(planted, process, faults, leaseMs, (ms) => this.#hold(ms)))
      },
    }
  }

  #hold(ms: number): void {
    this.heldUntil = Math.max(this.heldUntil, this.#time.now + ms)
  }

  #listen(store: SqliteStore, listener: Listener): Cancel {
    const leave = store.onHint(listener.callback)
    this.#listeners.add(listener)
    return () => {
      leave()
      this.#listeners.delete(listener)
    }
  }

  /** Processes on one file wake each other; when something is due, only its own process knows. */
  #notifyOthers(sender: SimProcess, hint: Hint): void {
    const heard = { ...hint, dueInMs: hint.dueInMs === null ? null : 0 }
    for (const { process, callback } of this.#listeners)
      if (process !== sender && process.alive) process.world.timers.soon(() => callback(heard))
  }
}

/** Statements on a file that another process may hold: then no transaction begins. */
class HeldStatements extends Statements {
  readonly #isHeld: () => boolean

  constructor(database: SqliteDatabase, isHeld: () => boolean) {
    super(database)
    this.#isHeld = isHeld
  }

  override of(sql: string): SqliteStatement {
    if (sql === ownQueries.begin && this.#isHeld())
      throw Object.assign(new Error('another process holds the file'), { errcode: SQLITE.busy })
    return super.of(sql)
  }
}

interface Listener {
  readonly process: SimProcess
  readonly callback: (hint: Hint) => void
}

/** All simulated processes share a connection, on which `data_version` never changes: its count of changes is used instead. */
const SHARED_DATA_VERSION = 'select total_changes() as data_version'

interface HeartbeatParts {
  readonly process: SimProcess
  readonly beaten: (worker: string) => void
  readonly added: (worker: string) => void
  readonly stopped: (worker: string) => void
  readonly leaves: (worker: string) => void
  readonly onHint: (callback: (hint: Hint) => void) => Cancel
}

/** The heartbeat comes from a thread with a connection of its own: it goes on while the event loop is blocked. */
function withHeartbeat(store: SqliteStore, heartbeatStore: SqliteStore, around: HeartbeatParts): Store {
  const { process, beaten, added, stopped, leaves, onHint } = around
  const startHeartbeat = (worker: string, everyMs: number, onLost: (why: string) => void): Promise<Heartbeat> => {
    let ended = false
    const beat = async (): Promise<void> => {
      if (ended) return
      if (await heartbeatStore.beat(worker)) beaten(worker)
      else if (!ended) return process.world.timers.soon(() => onLost('it was taken for dead'))
      process.heartbeatWorld.timers.after(everyMs, () => void beat(), { idle: true })
    }
    void beat()
    return Promise.resolve({
      stop: () => {
        ended = true
        stopped(worker)
        return Promise.resolve()
      },
    })
  }
  return new Proxy(store, {
    get(target, name, proxy: Store) {
      if (name === 'leases' || name === 'jobs' || name === 'queues' || name === 'changes') return proxy
      if (name === START_HEARTBEAT) return startHeartbeat
      if (name === 'onHint') return onHint
      if (name === 'addWorker')
        return (worker: WorkerInfo) => {
          added(worker.id)
          return target.addWorker(worker)
        }
      if (name === 'dropWorker')
        return (worker: string) => {
          leaves(worker)
          return target.dropWorker(worker)
        }
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
