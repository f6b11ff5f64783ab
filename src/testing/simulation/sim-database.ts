import type { Mill } from '../../mill/mill-type.js'
import { STORE_CHOICE } from '../../store/choice.js'
import type { StoreChoice } from '../../store/choice.js'
import type { SimulatedCensus } from '../checkers/checks.js'
import type { SqliteDatabase } from '../../store/sqlite/connection/driver.js'
import type { Queries } from '../../store/sqlite/queries/queries.js'
import type { QueueStore } from '../../store/queues.js'
import type { ChangeStore, Hint, JobStore, LeaseStore, Store } from '../../store/store.js'
import type { Heartbeat, WorkerInfo } from '../../store/workers.js'
import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
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
  readonly wrapWorld?: ((world: World, process: SimProcess) => World) | undefined
}

/** A store whose roles are one object, as both stores are. */
export type WholeStore = Store & JobStore & LeaseStore & QueueStore & ChangeStore

/** The database engine of a simulated fleet. */
export interface SimEngine {
  /** The store of one process. `now` is the database's clock, `isHeld` whether no process can write at this moment. */
  openStore(opening: SimOpening): Promise<{ readonly store: WholeStore; readonly heartbeatStore: WholeStore }>
  /** What is in the database, as of the last `refresh`, or of this moment where the engine can be read at once. */
  census(): SimulatedCensus
  /** Grows with every change of what is promised; beats do not count, as far as the engine can tell. */
  countChanges(): number
  /** See `StoreInfo`. */
  readonly heldUnconfirmedMs: number
  /** Reads the census again; undefined where that is not needed. */
  refresh?: (() => Promise<void>) | undefined
  /** Waits until every statement in flight has its answer: virtual time does not pass meanwhile. */
  rest(): Promise<void>
  /** A transaction cannot end in the turn in which it began: `transact` is not possible, and `inTransaction` is. */
  readonly answersLater: boolean
  /** A transaction of an app's own, ended in the turn in which it began. */
  transact(work: (tx: SqliteDatabase) => void): void
  /** A transaction of an app's own. What `work` throws or rejects with rolls it back. */
  inTransaction<T>(rollsBack: boolean, work: (tx: unknown) => Promise<T>): Promise<T>
  /** Records the work of a job in a transaction of the app. */
  writeWork(tx: unknown, id: string): void | Promise<void>
  /** Called with the worker of each beat that was written. */
  beaten?: (() => void) | undefined
}

export interface SimOpening {
  readonly process: SimProcess
  readonly now: () => number
  readonly isHeld: () => boolean
  readonly queries: Plants['queries']
}

/** The one database of a simulated fleet, which every process reaches through a store of its own. */
export class SimDatabase {
  readonly #time: VirtualTime
  readonly #plants: Plants
  readonly #clock: SimClock
  readonly #engine: SimEngine
  readonly #listeners = new Set<Listener>()
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

  /** `provable`: whether processes of one machine can prove each other's end. */
  constructor(time: VirtualTime, clock: SimClock, plants: Plants, engine: SimEngine, provable = true) {
    this.#time = time
    this.#clock = clock
    this.#plants = plants
    this.#engine = engine
    this.machines.provable = provable
  }

  get engine(): SimEngine {
    return this.#engine
  }

  census(): SimulatedCensus {
    return this.#engine.census()
  }

  /** A transaction of an app's own on the jobs' database, ended in the turn in which it began. */
  transact(work: (tx: SqliteDatabase) => void): void {
    this.#engine.transact(work)
  }

  /** Beats change one row each and nothing that is promised: they cause no check. */
  countChanges(): number {
    return this.#engine.countChanges()
  }

  #beaten(worker: string): void {
    this.#engine.beaten?.()
    this.lastBeats.set(worker, this.#time.now)
  }

  storeFor(process: SimProcess, faults: Faults, leaseMs: number): StoreChoice {
    const clock = this.#plants.databaseClock
    const now = (): number => Math.floor(clock === undefined ? this.#clock.now : clock(this.#time, process))
    const isHeld = (): boolean => this.#time.now < this.heldUntil
    return {
      [STORE_CHOICE]: true,
      open: async () => {
        const opening = { process, now, isHeld, queries: this.#plants.queries }
        const { store, heartbeatStore } = await this.#engine.openStore(opening)
        store.onHint((hint) => this.#notifyOthers(process, hint))
        const beating = withHeartbeat(store, heartbeatStore, {
          process,
          beaten: (worker) => this.#beaten(worker),
          added: (worker) => void this.processes.set(worker, process),
          stopped: (worker) => void this.stopped.add(worker),
          leaves: (worker) => void this.leaving.add(worker),
          onHint: (callback) => this.#listen(store, { process, callback }),
        })
        const planted = this.#plants.wrapStore?.(beating, process) ?? beating
        return faultyStore(planted, process, faults, leaseMs, (ms) => this.#hold(ms))
      },
    }
  }

  #hold(ms: number): void {
    this.heldUntil = Math.max(this.heldUntil, this.#time.now + ms)
  }

  #listen(store: ChangeStore, listener: Listener): Cancel {
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

interface Listener {
  readonly process: SimProcess
  readonly callback: (hint: Hint) => void
}

/** How soon a beat is tried again that failed. */
const BEAT_AGAIN_MS = 250

interface HeartbeatParts {
  readonly process: SimProcess
  readonly beaten: (worker: string) => void
  readonly added: (worker: string) => void
  readonly stopped: (worker: string) => void
  readonly leaves: (worker: string) => void
  readonly onHint: (callback: (hint: Hint) => void) => Cancel
}

/** The heartbeat comes from a thread with a connection of its own: it goes on while the event loop is blocked. */
function withHeartbeat(store: WholeStore, heartbeatStore: LeaseStore, around: HeartbeatParts): Store {
  const { process, beaten, added, stopped, leaves, onHint } = around
  const startHeartbeat = (worker: string, everyMs: number, onLost: (why: string) => void): Promise<Heartbeat> => {
    let ended = false
    const beat = async (): Promise<void> => {
      if (ended) return
      const again = (ms: number): unknown => process.heartbeatWorld.timers.after(ms, () => void beat(), { idle: true })
      try {
        if (await heartbeatStore.beat(worker)) beaten(worker)
        else if (!ended) return process.world.timers.soon(() => onLost('it was taken for dead'))
        again(everyMs)
      } catch {
        again(BEAT_AGAIN_MS) // As the thread of a real store does.
      }
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
      if (name === 'beat')
        return async (worker: string) => {
          const isAlive = await target.beat(worker)
          if (isAlive) beaten(worker)
          return isAlive
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
