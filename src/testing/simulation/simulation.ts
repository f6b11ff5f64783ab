import type { KeepOptions } from '../../job/definition/keep.js'
import type { OnParentFailure } from '../../job/rules/links.js'
import type { State } from '../../job/rules/states.js'
import type { Mill } from '../../mill/mill-type.js'
import type { SqliteDatabase } from '../../store/sqlite/connection/driver.js'
import { RequestExpectations } from './request-expectations.js'
import { EveryChecker } from '../checkers/clock-checks.js'
import { checkDrained, Checker, isDrained } from '../checkers/checks.js'
import { StatisticsChecker } from '../checkers/statistics-checks.js'
import { checkFreed } from '../checkers/rescue-checks.js'
import type { Facts, SimulatedCensus } from '../checkers/checks.js'
import type { FaultKind, FaultRates } from './faults.js'
import { Faults, never, waitInside } from './faults.js'
import type { Random } from './random.js'
import { seeded } from './random.js'
import { RunHistory } from './run-history.js'
import type { Scene } from './scene.js'
import { SimClock, strikeClock } from './sim-clock.js'
import { SimDatabase } from './sim-database.js'
import type { Plants, SimEngine } from './sim-database.js'
import { simMill } from './sim-mill.js'
import { SimProcess } from './sim-process.js'
import { SqliteEngine } from './sqlite-engine.js'
import { VirtualTime } from './virtual-time.js'

/** The whole configuration of one simulated history; a failure prints it. */
export interface SimulationConfig {
  readonly seed: number
  readonly workers: number
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly crashBudget: number
  readonly quarantineMs?: number | undefined
  /** Wall clocks are wrong by up to so much. */
  readonly skewMs: number
  readonly faults: FaultRates
  /** How long things go wrong, in virtual ms, and how long the rest may take to drain. */
  readonly faultyMs: number
  readonly drainMs: number
  /** How long the scenario may take; default: 20 times `faultyMs`. */
  readonly scenarioMaxMs?: number | undefined
  readonly keep?: KeepOptions | undefined
}

export type Coverage = Record<string, number>

const START = 1_800_000_000_000
/** Sooner or later a dead process is started again. */
const RESTART_MAX_MS = 3_000

/**
 * One seeded history of a fleet: the production code in a simulated world. Several processes share one database; time, order,
 * randomness and crashes come from the seed, so one number repeats the history, to the byte.
 */
export class Simulation {
  readonly config: SimulationConfig
  readonly time = new VirtualTime(START)
  /** The database's wall clock. */
  readonly clock = new SimClock(this.time)
  readonly runs = new RunHistory(
    () => this.clock.soonest,
    () => this.database.engine.heldUnconfirmedMs,
  )
  readonly requests = new RequestExpectations(() => this.clock.soonest)
  readonly coverage: Coverage = {}
  readonly trace: string[] = []
  readonly acknowledged = new Set<string>()
  readonly deletable = new Set<string>()
  readonly revivals = new Map<string, number>()
  readonly cancelled = new Set<string>()
  /** Ids that were written in transactions that were rolled back. */
  readonly undone = new Set<string>()
  /** What was said of parents that were added late, by child and parent. */
  readonly lateLinks = new Map<string, OnParentFailure>()
  readonly scene: Scene
  readonly plants: Plants
  readonly #random: Random
  readonly faults: Faults
  readonly #checker = new Checker()
  readonly #statistics = new StatisticsChecker()
  readonly #every = new EveryChecker()
  readonly #processes: SimProcess[] = []
  /** The mills of workers that have started. */
  readonly #mills = new Map<SimProcess, Mill>()
  readonly #openEngine: () => Promise<SimEngine>
  #shared: SimDatabase | undefined
  #changesSeen = -1
  #seen: SimulatedCensus | undefined
  #broken: unknown
  #started = 0

  /** `openEngine`: on which database the fleet works; default: SQLite in memory. */
  constructor(
    config: SimulationConfig,
    scene: Scene,
    plants: Plants = {},
    openEngine: () => Promise<SimEngine> = () => SqliteEngine.open(),
  ) {
    this.#openEngine = openEngine
    this.config = config
    this.scene = scene
    this.plants = plants
    this.#random = seeded(config.seed)
    this.faults = new Faults(config.faults, this.#random.fork('faults'), (kind, process, where) =>
      this.#onFault(kind, process, where),
    )
  }

  random(name: string): Random {
    return this.#random.fork(name)
  }

  /** Runs a scenario against the fleet: first with faults, then without until all has drained. Throws what was broken. */
  async run(scenario: (mill: Mill, process: SimProcess) => Promise<void>): Promise<void> {
    const engine = await this.#openEngine()
    this.time.rest = () => engine.rest()
    this.#shared = new SimDatabase(this.time, this.clock, this.plants, engine, this.config.seed % 2 === 0)
    strikeClock(this)
    for (let i = 0; i < this.config.workers; i += 1) this.#startWorker(`worker-${i + 1}`)
    let done = false
    const client = this.#newProcess('client', 0, false)
    const ended = simMill(this, client).then((mill) => scenario(mill, client))
    ended.then(
      () => (done = true),
      (error: unknown) => this.fail(error),
    )
    const { faultyMs, scenarioMaxMs = faultyMs * 20 } = this.config
    await this.#until(() => done && this.time.now >= START + faultyMs, START + scenarioMaxMs)
    if (!done) this.fail(new Error('the scenario did not end in time; does it wait for something that never comes?'))
    if (this.#broken !== undefined) throw this.#broken
    this.faults.stop()
    if (this.clock.steps > 0) this.faults.mendClock(this.clock)
    this.note('-', 'faults stop')
    const end = this.time.now + this.config.drainMs + this.clock.behindMs
    await this.#until(() => this.#isDrained(), end)
    checkDrained(this.#check(), this.clock.now)
  }

  /** Lets the fleet go on until this promise is settled: for reads after everything has drained. */
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
    this.runs.excuse(process)
    this.#restartLater(process.name)
    return never()
  }

  /** A worker is stopped, with so long for what runs, and another takes its place: what a deploy does. */
  deploy(random: Random, deadlineMs: number): void {
    const working = [...this.#mills].filter(([process]) => process.alive)
    if (working.length === 0) return
    const [process, mill] = random.pick(working)
    this.#mills.delete(process)
    this.note(process.name, 'is stopped')
    this.runs.excuse(process)
    const replace = (how: string): void => {
      this.count(how)
      process.die()
      this.#startWorker(process.name)
    }
    mill.stop({ deadline: deadlineMs }).then(
      () => replace('stops'),
      () => replace('stops that failed'),
    )
  }

  /** A handler's whole process is suspended until a while after its lease is over. */
  sleep(process: SimProcess): Promise<void> {
    this.count('processes suspended in a handler')
    this.note(process.name, 'is suspended in a handler')
    process.freeze(this.config.leaseMs * (1 + this.#random.next() ** 2 / 2))
    this.runs.excuse(process)
    return waitInside(process, 0)
  }

  /** A transaction of the app's own, within one turn; what `work` throws rolls it back. */
  transaction(work: (tx: SqliteDatabase) => void): void {
    this.database.transact(work)
  }

  census(): SimulatedCensus {
    return this.database.census()
  }

  /** A handler begins: none does that has a parent to wait for. */
  checkParents(id: string, process: SimProcess): void {
    if (!process.isBehind) this.#checker.links.begins(id, () => this.census())
  }

  stateOf(id: string): State | undefined {
    return this.census().jobs.find((job) => job.id === id)?.state ?? undefined
  }

  get database(): SimDatabase {
    if (this.#shared === undefined) throw new Error('the simulation has not begun')
    return this.#shared
  }

  /** Step by step, with a check after each: two steps at one moment, without a check in between, would look like one illegal step. */
  async #until(isOver: () => boolean, end: number): Promise<void> {
    await this.time.rest()
    await this.database.engine.refresh?.()
    this.#check()
    while (!isOver() && this.time.now < end) {
      if (this.#broken !== undefined) throw this.#broken
      if (!(await this.time.step())) break
      await this.database.engine.refresh?.()
      const [census, now] = [this.#check(), this.time.now]
      checkFreed(census, this.database, this.#mills.keys(), now)
      this.#every.check(census, this.clock, this.database, this.#mills.keys(), { now, pollMs: this.config.pollMs })
    }
    if (this.#broken !== undefined) throw this.#broken
  }

  /** Checks every promise, when anything has changed since the last check. */
  #check(): SimulatedCensus {
    const changes = this.database.countChanges()
    if (this.#seen !== undefined && changes === this.#changesSeen) return this.#seen
    this.#changesSeen = changes
    this.#seen = this.census()
    this.#checker.check(this.#seen, this.#facts())
    this.#statistics.check(this.#seen)
    this.scene.checks?.check(this.#seen)
    return this.#seen
  }

  #facts(): Facts {
    const { crashBudget, leaseMs } = this.config
    return {
      acknowledged: this.acknowledged,
      deletable: this.deletable,
      revivals: this.revivals,
      undone: this.undone,
      cancelled: this.cancelled,
      crashBudget,
      workers: this.database,
      now: this.time.now,
      databaseNow: this.clock.now,
      soonest: this.clock.soonest,
      leaseMs,
      banking: this.scene.banking,
      uniques: this.scene.uniques,
      originOf: this.scene.originOf,
      sent: this.scene.sent,
      lateLinks: this.lateLinks,
      count: (what) => this.count(what),
      left: (id, fence, paused) => {
        this.runs.left(id, fence, this.time.now)
        if (paused) this.runs.excuseClaim(id, fence)
      },
    }
  }

  #isDrained(): boolean {
    if (this.#processes.some((process) => process.alive && process.frozenUntil > this.time.now)) return false
    return isDrained(this.#check(), this.clock.now)
  }

  #newProcess(name: string, skewMs: number, mayCrash = true): SimProcess {
    this.#started += 1
    const random = this.#random.fork(`process ${this.#started}`)
    const process = new SimProcess(name, this.time, random, skewMs, mayCrash, this.database.machines)
    process.behindMs = 2 * this.database.engine.heldUnconfirmedMs
    this.#processes.push(process)
    return process
  }

  #startWorker(name: string): void {
    const skew = this.#random.fork(`skew ${this.#started}`)
    const process = this.#newProcess(name, Math.round((skew.next() * 2 - 1) * this.config.skewMs))
    this.note(name, 'starts')
    simMill(this, process)
      .then((mill) => mill.start().then(() => this.#mills.set(process.noteReady(), mill)))
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

  #onFault(kind: FaultKind, process: SimProcess, where: string): void {
    this.count(`fault: ${kind}`)
    this.note(process.name, `${kind} at ${where}`)
    if (kind === 'freeze' || kind === 'crash' || kind === 'suspend') this.runs.excuse(process)
    if (kind === 'crash') this.#restartLater(process.name)
  }
}
