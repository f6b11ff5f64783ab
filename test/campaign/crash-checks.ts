import { isSuspect, quarantineMs } from '../../src/job/rules/quarantine.js'
import type { Census, CensusJob } from '../../src/store/census.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'

/** What the checker must know of the world and cannot read from the store. */
export interface CrashFacts {
  readonly now: () => number
  /** The store as it is this moment: a handler begins in the step that claimed it. */
  readonly census: () => Census
  readonly firstMs: number
  readonly crashBudget: number
  /** How long each poison job runs before it kills its process. */
  readonly poison: ReadonlyMap<string, number>
  readonly count: (what: string) => void
}

interface Quarantine {
  readonly process: SimProcess
  readonly fence: number
  readonly worker: string
  readonly streak: number
  readonly since: number
  endedAt: number | undefined
}

/** The longest time between an event and the write that records it: timers are late, and a commit takes a turn. */
const SLACK_MS = 60
/** Other work that has been ready for this long could have been claimed. */
const READY_MS = 100

/**
 * The crash rule (X10, G6), checked from outside: which job is charged, what runs beside a suspect, for how long, what time other work
 * gets, and how often a poison job kills. It holds where workers die by handlers and by kills, without other faults.
 */
export class CrashChecker {
  readonly #facts: CrashFacts
  readonly #quarantines: Quarantine[] = []
  readonly #kills = new Map<string, number>()
  #suspectsMax = 1
  #census: Census | undefined

  constructor(facts: CrashFacts) {
    this.#facts = facts
  }

  /** A poison job kills its process. */
  killed(id: string): void {
    const kills = (this.#kills.get(id) ?? 0) + 1
    this.#kills.set(id, kills)
    const minutes = (this.#facts.poison.get(id) ?? 0) / this.#facts.firstMs
    const most = 2 + this.#facts.crashBudget + log2(minutes) + log2(this.#suspectsMax)
    if (kills > most)
      throw new BrokenPromise(
        `X10: poison job ${id} killed ${kills} processes after ${minutes.toFixed(2)} minutes each; of ${this.#suspectsMax} suspects ${most} is the bound`,
      )
  }

  /** A handler begins: nothing begins beside a quarantine, and a quarantine begins only where nothing runs and other work had its time. */
  begins(id: string, process: SimProcess, fence: number): void {
    const now = this.#facts.now()
    const census = this.#facts.census()
    const lease = census.leases.find((each) => each.fence === fence)
    if (lease === undefined) return
    const on = this.#quarantines.find((each) => each.process === process && each.endedAt === undefined)
    if (on !== undefined && on.fence !== fence)
      throw new BrokenPromise(`X10: job ${id} begins in ${process.name} beside a suspect in quarantine`)
    if (lease.quarantined === 0 || on !== undefined) return
    const job = census.jobs.find((each) => each.id === id)
    this.#checkTurn(census, process, now)
    this.#facts.count(lease.quarantined === 1 ? 'quarantines of one' : 'quarantines of several')
    const { worker } = lease
    this.#quarantines.push({ process, fence, worker, streak: job?.streak ?? 0, since: now, endedAt: undefined })
  }

  /** Between two quarantines of one process other work gets as long as the first lasted, if there is any. */
  #checkTurn(census: Census, process: SimProcess, now: number): void {
    const last = this.#quarantines.findLast((each) => each.process === process)
    if (last?.endedAt === undefined) return
    const isOther = (job: CensusJob): boolean =>
      job.state === 'ready' &&
      job.fence === null &&
      !isSuspect(job.streak) &&
      Math.max(job.dueAt, job.createdAt) < now - READY_MS
    const [lastedMs, gotMs] = [last.endedAt - last.since, now - last.endedAt]
    if (!census.jobs.some(isOther)) return
    this.#facts.count('quarantines after other work')
    if (gotMs < lastedMs - SLACK_MS)
      throw new BrokenPromise(
        `X10: after a quarantine of ${lastedMs.toFixed(0)} ms other work got ${gotMs.toFixed(0)} ms before the next one in ${process.name}`,
      )
  }

  check(census: Census): void {
    const before = new Map((this.#census?.jobs ?? []).map((job) => [job.id, job]))
    this.#suspectsMax = Math.max(this.#suspectsMax, census.jobs.filter((job) => isSuspect(job.streak)).length)
    for (const job of census.jobs) this.#checkJob(before.get(job.id), job)
    for (const each of this.#quarantines) if (each.endedAt === undefined) this.#checkLength(each, census)
    this.#census = census
  }

  #checkJob(was: CensusJob | undefined, job: CensusJob): void {
    if ((job.state === 'retrying' || job.state === 'scheduled') && job.streak > 0)
      throw new BrokenPromise(`X10: job ${job.id} ended an attempt, and its streak is still ${job.streak}`)
    if (was === undefined) return
    if (job.streak > was.streak + 1)
      throw new BrokenPromise(`X10: the streak of job ${job.id} went from ${was.streak} to ${job.streak} by one crash`)
    if (isSuspect(job.streak) && job.streak > was.streak && was.state !== 'running')
      throw new BrokenPromise(`X10: job ${job.id} became a suspect though it was ${was.state} and had not begun`)
    if (job.crashes > was.crashes) this.#checkCharge(was, job)
  }

  /** It was alone in a quarantine that was not over when its process died. */
  #checkCharge(was: CensusJob, job: CensusJob): void {
    const lease = this.#census?.leases.find((each) => each.fence === was.fence)
    const own = this.#quarantines.find((each) => each.fence === was.fence)
    if (own === undefined || lease?.quarantined !== 1)
      throw new BrokenPromise(`X10: job ${job.id} was charged with a crash outside quarantine`)
    this.#facts.count('crashes charged in quarantine')
  }

  /** A quarantine lasts for its time, unless its suspects end or its process dies before. */
  #checkLength(each: Quarantine, census: Census): void {
    const now = this.#facts.now()
    const dueMs = quarantineMs(each.streak, this.#facts.firstMs)
    const lasted = now - each.since
    const lease = census.leases.find((one) => one.fence === each.fence)
    const isThere = census.jobs.some((job) => job.fence === each.fence)
    if (lease === undefined || !isThere || !each.process.alive) each.endedAt = now
    else if (lease.quarantined === 0) {
      each.endedAt = now
      this.#facts.count('quarantines outlived')
      if (Math.abs(lasted - dueMs) > SLACK_MS)
        throw new BrokenPromise(
          `X10: a quarantine of streak ${each.streak} lasted ${lasted.toFixed(0)} ms instead of ${dueMs.toFixed(0)} ms`,
        )
    } else if (lasted > dueMs + SLACK_MS)
      throw new BrokenPromise(`X10: a quarantine of ${dueMs.toFixed(0)} ms is not over after ${lasted.toFixed(0)} ms`)
  }
}

function log2(times: number): number {
  return times <= 1 ? 0 : Math.ceil(Math.log2(times))
}
