import type { Hooks } from '../../src/job/attempt/hooks.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'

/** States in which a counted attempt ends. One that is paused failed, or was only given back. */
const COUNTED: ReadonlySet<string> = new Set(['done', 'failed', 'retrying', 'paused'])

/** S10: the settle hooks are called once for each attempt whose end was committed, also when the answer to that write was lost. */
export class SettleHookChecker {
  readonly #ends = new Map<string, string[]>()

  /** The hook of an app, in every process. */
  readonly hooks: Hooks = {
    settle: ({ id }, { state }) => {
      if (COUNTED.has(state)) this.#ends.set(id, [...(this.#ends.get(id) ?? []), state])
    },
  }

  /** Checked when all has drained. */
  check(sim: Simulation): void {
    const broken = this.find(sim)
    if (broken !== undefined) throw new BrokenPromise(broken)
  }

  /** What is broken now. A process that died or was suspended may have missed the answer to its last write. */
  find(sim: Simulation): string | undefined {
    if (![...sim.database.processes.values()].every(isWell)) return undefined
    for (const { id, state, attempt } of sim.census().jobs) {
      const ends = this.#ends.get(id) ?? []
      const least = ends.filter((each) => each !== 'paused').length
      const isRight = least <= attempt && attempt <= ends.length && ends.includes(state ?? '')
      if ((state === 'done' || state === 'failed') && !isRight)
        return `S10: job ${id} is ${state} after ${attempt} attempts, and the settle hooks were called for ${ends.join(', ') || 'none'}`
    }
    return undefined
  }
}

function isWell(process: SimProcess): boolean {
  return process.alive && process.frozenUntil === -Infinity
}
