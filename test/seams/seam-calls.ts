import { StoreError } from '../../src/errors.js'
import { thaw, waitInside } from '../../src/testing/simulation/faults.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'
import { textOf } from './seam.js'
import type { Seam, SeamFault, Strike } from './seam.js'

/** How late an answer is, and for how long a process is suspended, in leases. */
const LATE_LEASES = 0.6
const SUSPENDED_LEASES = 2.5

/** Counts the calls of all processes through the seams, and lets one of them fail. */
export class SeamCalls {
  /** Every call so far, in its order. */
  readonly seen: Seam[] = []
  /** The call to fail was made. */
  isStruck = false
  /** When it was made, in virtual time. */
  struckAt = -Infinity
  readonly strike: Strike | undefined
  readonly #sim: () => Simulation
  readonly #counts = new Map<string, number>()

  constructor(sim: () => Simulation, strike: Strike | undefined) {
    this.#sim = sim
    this.strike = strike
  }

  get sim(): Simulation {
    return this.#sim()
  }

  /** Counts a call; returns the fault when it is the one to fail. */
  enter(call: string, process: SimProcess): SeamFault | undefined {
    const counted = `${process.name} ${call}`
    const nth = (this.#counts.get(counted) ?? 0) + 1
    this.#counts.set(counted, nth)
    const seam = { process: process.name, call, nth }
    this.seen.push(seam)
    if (this.strike === undefined || textOf(this.strike.seam) !== textOf(seam)) return undefined
    this.isStruck = true
    this.struckAt = this.sim.time.now
    process.noteStoreFailure()
    this.sim.note(process.name, `${call} ${nth}: ${this.strike.fault}`)
    return this.strike.fault
  }

  error(call: string, fault: SeamFault, process: SimProcess): StoreError {
    const code = fault.startsWith('unreachable') ? 'E_STORE_UNREACHABLE' : 'E_STORE'
    return new StoreError(code, `${call} of ${process.name} ${fault} it acts, as planned`)
  }

  get lateMs(): number {
    return this.sim.config.leaseMs * LATE_LEASES
  }

  async answerLate(process: SimProcess): Promise<void> {
    process.noteWait(this.lateMs)
    await waitInside(process, this.lateMs)
    process.noteLate()
  }

  /** The whole process stops until other workers have declared it dead. */
  suspend(process: SimProcess): void {
    process.freeze(this.sim.config.leaseMs * SUSPENDED_LEASES)
    this.sim.runs.excuse(process)
  }

  async answerSuspended(process: SimProcess): Promise<void> {
    this.suspend(process)
    await thaw(process)
  }
}
