import { BrokenPromise } from './checks.js'
import type { SimProcess } from './sim-process.js'

/** One time a handler ran, as the world saw it. */
export interface Run {
  readonly process: SimProcess
  readonly fence: number
  readonly beganAt: number
  endedAt: number | undefined
  end: 'returned' | 'threw' | undefined
  /** Its claim was lost, or its process died, stalled or stopped: another run has a cause. */
  excused: boolean
}

/**
 * Every run of every job, and the promise about runs: a second one happens only after the worker died, lost its lease or
 * stopped, after the attempt failed, or by command (G4, I6); never before the job is due (G8); never too many at once (I8).
 */
export class RunBook {
  readonly #runs = new Map<string, Run[]>()
  readonly #cancelled = new Map<string, number>()
  readonly #commands = new Map<string, number>()
  readonly #notBefore = new Map<string, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  runsOf(id: string): readonly Run[] {
    return this.#runs.get(id) ?? []
  }

  /** A recorded command allows one more run. */
  allow(id: string): void {
    this.#commands.set(id, (this.#commands.get(id) ?? 0) + 1)
    this.#notBefore.delete(id)
    this.#cancelled.delete(id)
  }

  /** It was asked to begin no earlier than this, by the store's clock. */
  notBefore(id: string, moment: number): void {
    this.#notBefore.set(id, moment)
  }

  /** Its cancel was acknowledged. */
  cancelled(id: string, now: number): void {
    this.#cancelled.set(id, now)
  }

  began(id: string, process: SimProcess, fence: number, now: number, concurrency: number): Run {
    const runs = this.#runs.get(id) ?? []
    this.#runs.set(id, runs)
    this.#checkCause(id, runs, process, now)
    this.#checkTime(id, process, now)
    const run: Run = {
      process,
      fence,
      beganAt: now,
      endedAt: undefined,
      end: undefined,
      excused: process.frozenUntil > now,
    }
    runs.push(run)
    this.#total += 1
    this.#checkCrowd(process, concurrency)
    return run
  }

  /** What this process had in hand may run again: it died, stalled, lost its lease, or stopped. */
  excuse(process: SimProcess): void {
    for (const runs of this.#runs.values()) for (const run of runs) if (run.process === process) run.excused = true
  }

  #checkCause(id: string, runs: readonly Run[], process: SimProcess, now: number): void {
    const last = runs.at(-1)
    if (last === undefined || last.excused || last.end === 'threw') return
    // It was suspended between taking the job and beginning it: the stale one is this run, and its fence will be refused.
    if (now - process.frozenUntil < STALE_BEGIN_MS) return
    const allowed = this.#commands.get(id) ?? 0
    if (allowed > 0) {
      this.#commands.set(id, allowed - 1)
      return
    }
    const how = last.end === undefined ? 'still runs' : 'returned'
    throw new BrokenPromise(
      `I6: job ${id} begins again though its last run in ${last.process.name} ${how} and that process is well`,
    )
  }

  #checkTime(id: string, process: SimProcess, now: number): void {
    const moment = this.#notBefore.get(id)
    if (moment !== undefined && now < moment)
      throw new BrokenPromise(`G8: job ${id} begins ${moment - now} ms before its time`)
    const cancelledAt = this.#cancelled.get(id)
    // A cancel that meets a job in its last moment before it begins is allowed to lose, and only then; a stall stretches that.
    const stalled = cancelledAt !== undefined && Math.max(process.frozenUntil, process.blockedUntil) > cancelledAt
    if (cancelledAt !== undefined && !stalled && now - cancelledAt > CANCEL_RACE_MS)
      throw new BrokenPromise(`X7: job ${id} begins ${now - cancelledAt} ms after its cancel was acknowledged`)
  }

  #checkCrowd(process: SimProcess, concurrency: number): void {
    let running = 0
    for (const runs of this.#runs.values())
      for (const run of runs) if (run.process === process && run.end === undefined) running += 1
    if (running > concurrency)
      throw new BrokenPromise(`I8: ${process.name} runs ${running} handlers at once, and ${concurrency} are allowed`)
  }
}

/** What a process does in the first moments after it woke was decided before it slept. */
const STALE_BEGIN_MS = 10
/** Held jobs are confirmed every 5 ms at the most; a slow reply adds to it. */
const CANCEL_RACE_MS = 2_100
