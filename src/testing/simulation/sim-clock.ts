import type { Simulation } from './simulation.js'
import type { VirtualTime } from './virtual-time.js'

/** The wall clock of the simulated database. It can be set back; virtual time (the monotonic clock) cannot. */
export class SimClock {
  readonly #time: VirtualTime
  /** By how much it is ahead of virtual time. */
  #offsetMs = 0
  #forwardMs = 0
  #latest = -Infinity
  /** When it was last set, in virtual time, and how often it was. */
  steppedAt = -Infinity
  steps = 0

  constructor(time: VirtualTime) {
    this.#time = time
  }

  get now(): number {
    return this.#time.now + this.#offsetMs
  }

  get offsetMs(): number {
    return this.#offsetMs
  }

  /**
   * Virtual time and all steps forward: what must not happen for some time can happen no earlier than after that much of this,
   * whatever the steps were. It is virtual time as long as the clock was not set forward.
   */
  get soonest(): number {
    return this.#time.now + this.#forwardMs
  }

  /** By how much it is behind the latest time that it has shown: what was due then may wait for that long. */
  get behindMs(): number {
    return Math.max(0, this.#latest - this.now)
  }

  step(ms: number): void {
    this.#latest = Math.max(this.#latest, this.now)
    this.#offsetMs += ms
    this.#forwardMs += Math.max(0, ms)
    this.steppedAt = this.#time.now
    this.steps += 1
  }
}

/** Sets the clock of a simulation now and then, until faults stop. */
export function strikeClock(sim: Simulation): void {
  const waitMs = sim.faults.clockWaitMs()
  if (waitMs === undefined) return
  const strike = (): void => {
    const ms = sim.faults.clockStepMs(sim.clock)
    if (ms !== 0) {
      sim.count('fault: clockStep')
      sim.count(ms < 0 ? 'clock set back' : 'clock set forward')
      sim.note('database', `its clock is set by ${ms} ms`)
      sim.clock.step(ms)
    }
    strikeClock(sim)
  }
  sim.time.at(sim.time.now + waitMs, strike, { idle: true })
}
