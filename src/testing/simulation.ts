import type { AnyJob } from '../job/define.js'
import type { KeepOptions } from '../job/keep.js'
import { buildMill } from '../mill.js'
import type { Mill } from '../mill/surface.js'
import type { Census } from '../store/sqlite/census.js'
import type { Executor } from '../worker/executors/loop.js'
import { checkDrained, Checker } from './checks.js'
import type { FaultKind, FaultRates } from './faults.js'
import { Faults, never, thaw, waitInside } from './faults.js'
import type { Random } from './random.js'
import { seeded } from './random.js'
import { RunBook } from './run-book.js'
import { SimDatabase } from './sim-database.js'
import type { Plants } from './sim-database.js'
import { SimProcess } from './sim-process.js'
import { VirtualTime } from './virtual-time.js'

/** The whole configuration of one simulated history; a failure prints it. */
export interface SimulationConfig {
  readonly seed: number
  readonly workers: number
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly crashBudget: number
  /** Wall clocks are wrong by up to so much. */
  readonly skewMs: number
  readonly faults: FaultRates
  /** How long things go wrong, in virtual ms, and how long the rest may take to drain. */
  readonly faultyMs: number
  readonly drainMs: number
  readonly keep?: KeepOptions | undefined
}

export type Coverage = Record<string, number>

const START = 1_800_000_000_000
/** Sooner or later a dead process is started again. */
const RESTART_MAX_MS = 3_000

/**
 * One seeded history of a fleet: the production code in a simulated world. Several processes share one database; time, order,
 * randomness and death come from the seed, so one number tells it all again, to the byte.
 */
export class Simulation {
  readonly config: SimulationConfig
  readonly time = new VirtualTime(START)
  readonly book = new RunBook()
  readonly coverage: Coverage = {}
  readonly trace: string[] = []
  readonly acknowledged = new Set<string>()
  readonly forgettable = new Set<string>()
  readonly revivals = new Map<string, number>()
  readonly #jobs: (process: SimProcess) => readonly AnyJob[]
  readonly #plants: Plants
  readonly #random: Random
  readonly #faults: Faults
  readonly #checker = new Checker()
  readonly #processes: SimProcess[] = []
  #shared: SimDatabase | undefined
  #changesSeen = -1
  #broken: unknown
  #started = 0

  constructor(config: SimulationConfig, jobs: (process: SimProcess) => readonly AnyJob[], plants: Plants = {}) {
    this.config = config
    this.#jobs = jobs
    this.#plants = plants
    this.#random = seeded(config.seed)
    this.#faults = new Faults(config.faults, this.#random.fork('faults'), (kind, process, where) =>
      this.#struck(kind, process, where),
    )
  }

  random(name: string): Random {
    return this.#random.fork(name)
  }

  /** Runs a scenario against the fleet: first with faults, then without until all has drained. Throws what was broken. */
  async run(scenario: (mill: Mill, process: SimProcess) => Promise<void>): Promise<void> {
    this.#shared = await SimDatabase.open(this.time, this.#plants)
    for (let i = 0; i < this.config.workers; i += 1) this.#startWorker(`worker-${i + 1}`)
    let done = false
    const client = this.#newProcess('client', 0, false)
    const story = this.#mill(client).then((mill) => scenario(mill, client))
    story.then(
      () => (done = true),
      (error: unknown) => this.fail(error),
    )
    await this.#until(() => done && this.time.now >= START + this.config.faultyMs, START + this.config.faultyMs * 20)
    if (!done) this.fail(new Error('the scenario did not end in time; does it wait for something that never comes?'))
    if (this.#broken !== undefined) throw this.#broken
    this.#faults.stop()
    this.note('-', 'faults stop')
    const end = this.time.now + this.config.drainMs
    await this.#until(() => this.#isDrained(), end)
    checkDrained(this.#look(true))
  }

  /** Lets the fleet go on until this is settled: for questions asked after all has drained. */
  async finish(work: Promise<void>): Promise<void> {
    let done = false
    work.then(
      () => (done = true),
      (error: unknown) => this.fail(error),
    )
    await this.#until(() => done, this.time.now + this.config.drainMs)
  }

  /** Something was broken: the run ends with it. */
  fail(error: unknown): void {
    this.#broken ??= error ?? new Error('it was rejected without a reason')
  }

  count(what: string, by = 1): void {
    this.coverage[what] = (this.coverage[what] ?? 0) + by
  }

  note(who: string, what: string): void {
    this.trace.push(`${(this.time.now - START).toFixed(3)} ${who} ${what}`)
  }

  /** A handler's wait, in virtual time, inside the process it runs in. */
  wait(process: SimProcess, ms: number): Promise<void> {
    return waitInside(process, ms)
  }

  /** A handler takes its whole process with it. */
  kill(process: SimProcess): Promise<never> {
    this.count('processes killed by a handler')
    this.note(process.name, 'is killed by its handler')
    process.die()
    this.book.excuse(process)
    this.#restartLater(process.name)
    return never()
  }

  census(): Census {
    return this.#database().census()
  }

  #database(): SimDatabase {
    if (this.#shared === undefined) throw new Error('the simulation has not begun')
    return this.#shared
  }

  async #until(isOver: () => boolean, end: number): Promise<void> {
    await this.time.advanceTo(this.time.now)
    while (!isOver() && this.time.now < end) {
      if (this.#broken !== undefined) throw this.#broken
      if (!(await this.time.step())) break
      this.#look(false)
    }
    if (this.#broken !== undefined) throw this.#broken
  }

  /** Checks every promise, when anything has changed since the last look. */
  #look(always: boolean): Census {
    const changes = this.#database().countChanges()
    if (!always && changes === this.#changesSeen) return EMPTY
    this.#changesSeen = changes
    const census = this.census()
    this.#checker.look(census, {
      acknowledged: this.acknowledged,
      forgettable: this.forgettable,
      revivals: this.revivals,
      crashBudget: this.config.crashBudget,
      lastBeats: this.#database().lastBeats,
      now: this.time.now,
      leaseMs: this.config.leaseMs,
    })
    return census
  }

  #isDrained(): boolean {
    if (this.#processes.some((process) => process.alive && process.frozenUntil > this.time.now)) return false
    return this.#look(true).jobs.every((job) => job.state === 'parked' || (job.state !== null && ENDED.has(job.state)))
  }

  #newProcess(name: string, skewMs: number, mortal = true): SimProcess {
    this.#started += 1
    const process = new SimProcess(name, this.time, this.#random.fork(`process ${this.#started}`), skewMs, mortal)
    this.#processes.push(process)
    return process
  }

  #startWorker(name: string): void {
    const skew = this.#random.fork(`skew ${this.#started}`)
    const process = this.#newProcess(name, Math.round((skew.next() * 2 - 1) * this.config.skewMs))
    this.note(name, 'starts')
    this.#mill(process)
      .then((mill) => mill.start())
      .catch((error: unknown) => {
        // A start may fail while faults strike; a supervisor would start it again.
        this.note(name, `could not start: ${error instanceof Error ? error.message : String(error)}`)
        process.die()
        this.#restartLater(name)
      })
  }

  #restartLater(name: string): void {
    this.time.at(this.time.now + this.#random.next() * RESTART_MAX_MS, () => {
      this.count('restarts')
      this.#startWorker(name)
    })
  }

  #mill(process: SimProcess): Promise<Mill> {
    const { concurrency, leaseMs, pollMs, crashBudget, keep } = this.config
    const options = {
      jobs: [...this.#jobs(process)],
      logger: false as const,
      concurrency,
      lease: leaseMs,
      poll: pollMs,
      crashBudget,
      ...(keep === undefined ? {} : { keep }),
    }
    const world = this.#plants.wrapWorld?.(process.world) ?? process.world
    return buildMill(options, {
      world,
      store: this.#database().storeFor(process, this.#faults, this.config.leaseMs),
      executor: this.#executor(process),
      watch: {
        lost: (what) => {
          this.count('fence refusals')
          this.note(process.name, `lost ${what.replace(/[0-9a-f-]{16,}/g, '…')}`)
          if (what.startsWith('worker')) this.book.excuse(process)
        },
        rescued: (_, jobs, parked) => {
          this.count('rescues')
          this.count('rescued jobs', jobs.length)
          this.count('crash-budget parks', parked)
        },
        settled: (job) => this.count(`to ${job.to}`),
      },
    })
  }

  /** Handlers are called here: their beginning and their end are seams too, and go into the book. */
  #executor(process: SimProcess): Executor {
    return {
      call: async (handler, payload, running) => {
        if (!process.alive) return never()
        if (running.claimed.suspect) this.count('suspect runs')
        this.note(
          process.name,
          `begins ${running.job} ${running.id.slice(-6)} attempt ${running.attempt}${running.claimed.suspect ? ' as a suspect' : ''}`,
        )
        const run = this.#begin(running.id, process, running.claimed.fence)
        if (!this.#faults.seam(process, 'handler start', this.config.leaseMs)) return never()
        await thaw(process)
        try {
          const result = await handler(payload, running)
          if (!this.#faults.seam(process, 'handler end', this.config.leaseMs)) return never()
          await thaw(process)
          run.end = 'returned'
          this.note(process.name, `ends ${running.job} ${running.id.slice(-6)}`)
          return result
        } catch (error) {
          run.end = 'threw'
          throw error
        } finally {
          run.endedAt = this.time.now
        }
      },
    }
  }

  #begin(id: string, process: SimProcess, fence: number): ReturnType<RunBook['began']> {
    try {
      return this.book.began(id, process, fence, this.time.now, this.config.concurrency)
    } catch (error) {
      this.fail(error)
      throw error
    }
  }

  #struck(kind: FaultKind, process: SimProcess, where: string): void {
    this.count(`fault: ${kind}`)
    this.note(process.name, `${kind} at ${where}`)
    if (kind === 'freeze' || kind === 'crash') this.book.excuse(process)
    if (kind === 'crash') this.#restartLater(process.name)
  }
}

const ENDED = new Set(['done', 'failed', 'cancelled'])
const EMPTY: Census = { jobs: [], keys: [], workers: [], leases: [], strays: 0 }
