import { makeIds } from '../../world/ids.js'
import type { Processes } from '../../world/processes.js'
import type { World } from '../../world/world.js'
import { SimMachines } from './sim-machines.js'
import type { Random } from './random.js'
import type { VirtualTime } from './virtual-time.js'

/**
 * A process in the simulated world: its own wall clock (which may be wrong), its own timers, its own randomness. It can die,
 * and then none of its code runs again; it can freeze as a whole, as on a suspended machine; and its event loop alone can be
 * blocked, while its heartbeat thread goes on.
 */
export class SimProcess {
  readonly name: string
  readonly world: World
  /** The world of its heartbeat thread. */
  readonly heartbeatWorld: World
  alive = true
  /** When it died, and since when its worker has been started. */
  diedAt = Infinity
  readyAt = Infinity
  /** Whether faults may end or stall it. The client of a scenario is exempt: the scenario must run to its end. */
  readonly mayCrash: boolean
  frozenUntil = -Infinity
  blockedUntil = -Infinity
  /** When a fault last onFault it that was more than a lost or late hint. */
  storeFailedAt = -Infinity
  /** When an answer of the store last came late: the process acts on it although it is outdated. */
  lateAt = -Infinity
  /** Until when a late answer of the store is on its way to it. */
  waitsUntil = -Infinity
  /** An outdated read is acted on at once, or within the time for which held jobs begin without another confirmation. */
  behindMs = 10
  readonly #time: VirtualTime
  readonly #random: Random
  readonly #processes: Processes
  #soonAt = -Infinity

  constructor(
    name: string,
    time: VirtualTime,
    random: Random,
    skewMs: number,
    mayCrash = true,
    machines = new SimMachines(),
  ) {
    this.name = name
    this.mayCrash = mayCrash
    this.#time = time
    this.#random = random
    this.#processes = machines.enter(this)
    this.world = this.#makeWorld(skewMs, () => Math.max(this.frozenUntil, this.blockedUntil))
    this.heartbeatWorld = this.#makeWorld(skewMs, () => this.frozenUntil)
  }

  /** Frozen or blocked right now. */
  get isHeld(): boolean {
    return Math.max(this.frozenUntil, this.blockedUntil) > this.#time.now
  }

  /** It may act now on what it read before it slept, or on an answer that came late. */
  get isBehind(): boolean {
    return this.#time.now - Math.max(this.frozenUntil, this.blockedUntil, this.lateAt) < this.behindMs
  }

  /** Since when nothing has kept it from its work. */
  get healthySince(): number {
    return Math.max(this.readyAt, this.storeFailedAt, this.lateAt, this.frozenUntil, this.blockedUntil, this.waitsUntil)
  }

  noteReady(): this {
    this.readyAt = this.#time.now
    return this
  }

  noteStoreFailure(): void {
    this.storeFailedAt = this.#time.now
  }

  noteWait(ms: number): void {
    this.waitsUntil = Math.max(this.waitsUntil, this.#time.now + ms)
  }

  noteLate(): void {
    this.lateAt = this.#time.now
  }

  die(): void {
    if (this.alive) this.diedAt = this.#time.now
    this.alive = false
  }

  freeze(ms: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.#time.now + ms)
  }

  block(ms: number): void {
    this.blockedUntil = Math.max(this.blockedUntil, this.#time.now + ms)
  }

  #makeWorld(skewMs: number, heldUntil: () => number): World {
    const time = this.#time
    const born = time.now
    // A dead process does nothing more; a held one does it later.
    const deliver = (run: () => void, idle: boolean): void => {
      if (!this.alive) return
      if (time.now < heldUntil()) time.at(heldUntil(), () => deliver(run, idle), { idle })
      else run()
    }
    return {
      clock: { now: () => Math.floor(time.now + skewMs), monotonic: () => time.now - born },
      timers: {
        after: (ms, run, options) => {
          const idle = options?.idle === true
          const late = this.#random.next() * 2
          return time.at(time.now + Math.max(0, ms) + late, () => deliver(run, idle), { idle })
        },
        soon: (run) => {
          // Turns of one process keep their order; between processes the seed decides.
          this.#soonAt = Math.max(this.#soonAt, time.now + this.#random.next() * 0.5)
          time.at(this.#soonAt, () => deliver(run, false))
        },
      },
      ids: makeIds(() => this.#random.word()),
      random: () => this.#random.next(),
      processes: this.#processes,
    }
  }
}
