import { MillraceError, OutcomeUnknownError, StoreError } from '../../src/errors.js'
import type { Handle } from '../../src/job/enqueue.js'
import type { State } from '../../src/job/rules/states.js'
import type { Mill } from '../../src/mill/mill-type.js'
import type { CensusJob } from '../../src/store/census.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import { recordingMill } from '../../src/testing/simulation/recording-mill.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import { CallbackError } from './failing-callbacks.js'
import type { SeamCalls } from './seam-calls.js'
import type { Simulation, SimulationConfig } from '../../src/testing/simulation/simulation.js'

/** A short program of public verbs against two workers, in which one call will fail. */
export interface Scenario {
  readonly name: string
  readonly config?: Partial<SimulationConfig> | undefined
  run(stage: Stage): Promise<void>
  /** What must hold when everything has drained, beyond the promises for every fleet. */
  check?(stage: Stage): void | Promise<void>
}

/** The wait before a failed call is repeated, as an app would. */
const AGAIN_MS = 100
const TRIES = 5

/** The app's side of a scenario. */
export class Stage {
  readonly sim: Simulation
  readonly #process: SimProcess
  readonly #calls: SeamCalls
  /** How long one failing call may hold up a job. */
  readonly patienceMs: number
  /** Calls that an app had to repeat because the store failed: they may have acted twice. */
  repeated = 0
  /** The app's mill; every acknowledged call is recorded. */
  readonly mill: Mill

  constructor(mill: Mill, process: SimProcess, calls: SeamCalls, patienceMs: number) {
    const { sim } = calls
    this.sim = sim
    this.#calls = calls
    this.mill = recordingMill(mill, sim)
    this.#process = process
    this.patienceMs = patienceMs
  }

  wait(ms: number): Promise<void> {
    return this.sim.wait(this.#process, ms)
  }

  /** Calls until the store answers. A refusal by a rule is thrown. */
  async call<T>(run: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await run()
      } catch (error) {
        const isPlanned = error instanceof StoreError || error instanceof CallbackError
        if (!isPlanned || tries === TRIES) throw error
        this.repeated += 1
        await this.wait(AGAIN_MS)
        if (error instanceof OutcomeUnknownError) return await this.call(() => error.retry<T>())
      }
    }
  }

  /** The code of the refusal, or undefined when the call succeeded. */
  async refusal(run: () => Promise<unknown>): Promise<string | undefined> {
    try {
      await this.call(run)
      return undefined
    } catch (error) {
      if (error instanceof MillraceError) return error.code
      throw error
    }
  }

  enqueue(...given: Parameters<Mill['enqueue']>): Promise<Handle<unknown>> {
    return this.call(() => this.mill.enqueue(...given))
  }

  /** Attempts that failed because their start hook did. */
  get failedStarts(): number {
    return this.#calls.isStruck && this.#calls.strike?.seam.call === 'hook:start' ? 1 : 0
  }

  /**
   * Waits until a record satisfies this, for as long as a lost call may hold things up. The app reads the record once the store has
   * such a row: if it polled, these reads would be most of the calls of most scenarios.
   */
  async until(id: string, isReached: (state: State) => boolean): Promise<void> {
    const end = this.sim.time.now + this.patienceMs
    while (this.sim.time.now < end) {
      const state = this.sim.stateOf(id)
      const record = state !== undefined && isReached(state) ? await this.call(() => this.mill.get(id)) : undefined
      if (record !== undefined && isReached(record.state)) return
      await this.wait(50)
    }
    throw new BrokenPromise(`stuck: job ${id} is ${this.sim.stateOf(id)} after ${this.patienceMs} ms`)
  }

  /** All jobs as they are now. */
  async jobs(): Promise<readonly CensusJob[]> {
    await this.sim.database.engine.refresh?.()
    return this.sim.census().jobs
  }

  async expectState(id: string, ...allowed: readonly (State | 'gone')[]): Promise<void> {
    const state = (await this.jobs()).find((job) => job.id === id)?.state ?? 'gone'
    this.expect(allowed.includes(state), `job ${id} is ${state}, and must be ${allowed.join(' or ')}`)
  }

  async expectJobs(isTrue: (jobs: readonly CensusJob[]) => boolean, promise: string): Promise<void> {
    const jobs = await this.jobs()
    const shown = jobs.map(({ name, state, n }) => `${name}${n === null ? '' : ` ${n}`} ${state}`)
    this.expect(isTrue(jobs), `${promise}: ${shown.join(', ')}`)
  }

  expect(isTrue: boolean, promise: string): void {
    if (!isTrue) throw new BrokenPromise(promise)
  }
}
