import { BrokenPromise } from '../checkers/broken-promise.js'
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
export class RunHistory {
  readonly #runs = new Map<string, Run[]>()
  /** When jobs left their claims. */
  readonly #left = new Map<string, number>()
  readonly #commands = new Map<string, number>()
  readonly #notBefore = new Map<string, number>()
  #total = 0
  readonly #soonest: () => number

  readonly #heldUnconfirmedMs: () => number

  /** `soonest`: in what time the moments of `notBefore` are, see `SimClock`; `heldUnconfirmedMs`: see `StoreInfo`. */
  constructor(soonest: () => number, heldUnconfirmedMs: () => number) {
    this.#soonest = soonest
    this.#heldUnconfirmedMs = heldUnconfirmedMs
  }

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
  }

  /** The job must begin no earlier than this, by the store's clock. */
  notBefore(id: string, moment: number): void {
    this.#notBefore.set(id, moment)
  }

  /** Its attempt counts as failed, though its handler returned. */
  failed(id: string): void {
    const last = this.#runs.get(id)?.at(-1)
    if (last !== undefined) last.excused = true
  }

  /** The job is no longer this claim's: nothing of it begins from now on. */
  left(id: string, fence: number, now: number): void {
    this.#left.set(`${id} ${fence}`, now)
  }

  /** The job was paused as it began, before its worker had reported the beginning: it runs again when it is resumed. */
  excuseClaim(id: string, fence: number): void {
    for (const [name, runs] of this.#runs)
      if (name.startsWith(id)) for (const run of runs) if (run.fence === fence) run.excused = true
  }

  /** `item`: which item of which run of a sequence, each of which runs as a job would; empty for a job. */
  began(id: string, process: SimProcess, fence: number, now: number, concurrency: number, item = ''): Run {
    const runs = this.#runs.get(id + item) ?? []
    this.#runs.set(id + item, runs)
    this.#checkCause(id, runs, process, fence)
    this.#checkTime(id)
    this.#checkClaim(id, process, fence, now)
    const run: Run = {
      process,
      fence,
      beganAt: now,
      endedAt: undefined,
      end: undefined,
      // A run under a claim that is lost, as an outdated read allows, does not forbid another run.
      excused: process.frozenUntil > now || this.#left.has(`${id} ${fence}`),
    }
    runs.push(run)
    this.#total += 1
    this.#checkCrowd(process, concurrency)
    return run
  }

  /** The jobs in flight in this process may run again: it died, stalled, lost its lease, or stopped. */
  excuse(process: SimProcess): void {
    for (const runs of this.#runs.values()) for (const run of runs) if (run.process === process) run.excused = true
  }

  #checkCause(id: string, runs: readonly Run[], process: SimProcess, fence: number): void {
    const last = runs.at(-1)
    if (last === undefined || last.excused || last.end === 'threw') return
    // The process slept between the claim and the beginning: this run is the stale one, and its fence will be refused.
    if (process.isBehind && this.#left.has(`${id} ${fence}`)) return
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

  #checkTime(id: string): void {
    const now = this.#soonest()
    const moment = this.#notBefore.get(id)
    if (moment !== undefined && now < moment)
      throw new BrokenPromise(`G8: job ${id} begins ${moment - now} ms before its time`)
  }

  /** A worker confirms held jobs before it begins them, and again after this time. */
  #checkClaim(id: string, process: SimProcess, fence: number, now: number): void {
    const leftAt = this.#left.get(`${id} ${fence}`)
    if (leftAt !== undefined && now - leftAt > this.#heldUnconfirmedMs() && !process.isBehind)
      throw new BrokenPromise(
        `G5: job ${id} begins in ${process.name} ${(now - leftAt).toFixed(0)} ms after it left that claim`,
      )
  }

  #checkCrowd(process: SimProcess, concurrency: number): void {
    let running = 0
    for (const runs of this.#runs.values())
      for (const run of runs) if (run.process === process && run.end === undefined) running += 1
    if (running > concurrency)
      throw new BrokenPromise(`I8: ${process.name} runs ${running} handlers at once, and ${concurrency} are allowed`)
  }
}
