import { BrokenPromise } from '../checkers/broken-promise.js'
import type { SimProcess } from './sim-process.js'

/** The promise of a cancel. */
export const CANCELLED = 'X7, cancelled'

/** What an answered call promises its caller: no job of this target begins from now on, or until a time. */
export interface Expectation {
  /** The promise and the command, for the message of a broken promise. */
  readonly what: string
  readonly since: number
  /** Infinity: until another command ends it. */
  readonly until: number
}

/** A call about a job or a queue. */
export interface ObservedCall<Answer> {
  readonly call: () => Promise<Answer>
  /** Whether it can end an earlier promise: from its call to its answer neither holds. */
  readonly clearsExpectation: boolean
  /** What its answer promises, beside or instead of the present promise; undefined: nothing. */
  readonly expectation: (answer: Answer, current: Expectation | undefined) => Expectation | undefined
}

interface Target {
  expectation: Expectation | undefined
  calls: number
  inFlight: number
}

/**
 * Every call that keeps jobs from beginning (cancel, pause, the pause of a queue) and what its answer promised. Only answered
 * calls count: a call that failed may have been done or not, and of two concurrent calls either may have been the last.
 */
export class RequestExpectations {
  readonly #targets = new Map<string, Target>()
  readonly #soonest: () => number

  /** `soonest`: in what time the ends of expectations are, see `SimClock`. */
  constructor(soonest: () => number) {
    this.#soonest = soonest
  }

  ofJob<Answer>(id: string, call: ObservedCall<Answer>): Promise<Answer> {
    return this.#observe(`job ${id}`, call)
  }

  ofQueue<Answer>(queue: string, call: ObservedCall<Answer>): Promise<Answer> {
    return this.#observe(`queue ${queue}`, call)
  }

  /** Since when a caller knows that this job was cancelled. */
  cancelledSince(id: string): number | undefined {
    const expectation = this.#targets.get(`job ${id}`)?.expectation
    return expectation?.what === CANCELLED ? expectation.since : undefined
  }

  /** A handler begins. A process that acts on an outdated read, as one does that stalled, is not checked. */
  begins(id: string, queue: string, process: SimProcess, now: number): 'by the end of a pause' | 'freely' {
    const soonest = this.#soonest()
    const paused = this.#targets.get(`queue ${queue}`)?.expectation
    const how = paused !== undefined && paused.until <= soonest ? 'by the end of a pause' : 'freely'
    if (process.isBehind) return how
    for (const name of [`job ${id}`, `queue ${queue}`]) {
      const expectation = this.#targets.get(name)?.expectation
      if (expectation === undefined || soonest >= expectation.until) continue
      const when = `${(now - expectation.since).toFixed(0)} ms after that was acknowledged`
      throw new BrokenPromise(`${expectation.what}: job ${id} of queue ${queue} begins ${when}`)
    }
    return how
  }

  async #observe<Answer>(
    name: string,
    { call, clearsExpectation, expectation }: ObservedCall<Answer>,
  ): Promise<Answer> {
    const target = this.#targets.get(name) ?? { expectation: undefined, calls: 0, inFlight: 0 }
    this.#targets.set(name, target)
    const mine = (target.calls += 1)
    const isAlone = target.inFlight === 0
    if (clearsExpectation) target.expectation = undefined
    target.inFlight += 1
    try {
      const answer = await call()
      if (isAlone && target.calls === mine) target.expectation = expectation(answer, target.expectation)
      return answer
    } finally {
      target.inFlight -= 1
    }
  }
}
