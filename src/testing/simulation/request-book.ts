import { BrokenPromise } from '../checkers/broken-promise.js'
import type { SimProcess } from './sim-process.js'

/** The promise of a cancel. */
export const CANCELLED = 'X7, cancelled'

/** What an answered call promises its caller: no job of this target begins from now on, or until a time. */
export interface Pledge {
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
  readonly voids: boolean
  /** What its answer promises, beside or instead of the present promise; undefined: nothing. */
  readonly pledge: (answer: Answer, standing: Pledge | undefined) => Pledge | undefined
}

interface Target {
  pledge: Pledge | undefined
  calls: number
  underWay: number
}

/**
 * Every call that keeps jobs from beginning (cancel, pause, the pause of a queue) and what its answer promised. Only answered
 * calls count: a call that failed may have been done or not, and of two concurrent calls either may have been the last.
 */
export class RequestBook {
  readonly #targets = new Map<string, Target>()
  readonly #soonest: () => number

  /** `soonest`: in what time the ends of pledges are, see `SimClock`. */
  constructor(soonest: () => number) {
    this.#soonest = soonest
  }

  ofJob<Answer>(id: string, asked: ObservedCall<Answer>): Promise<Answer> {
    return this.#observe(`job ${id}`, asked)
  }

  ofQueue<Answer>(queue: string, asked: ObservedCall<Answer>): Promise<Answer> {
    return this.#observe(`queue ${queue}`, asked)
  }

  /** Since when a caller knows that this job was cancelled. */
  cancelledSince(id: string): number | undefined {
    const pledge = this.#targets.get(`job ${id}`)?.pledge
    return pledge?.what === CANCELLED ? pledge.since : undefined
  }

  /** A handler begins. A process that acts on an outdated read, as one does that stalled, is not checked. */
  begins(id: string, queue: string, process: SimProcess, now: number): 'by the end of a pause' | 'freely' {
    const soonest = this.#soonest()
    const paused = this.#targets.get(`queue ${queue}`)?.pledge
    const how = paused !== undefined && paused.until <= soonest ? 'by the end of a pause' : 'freely'
    if (process.isBehind) return how
    for (const name of [`job ${id}`, `queue ${queue}`]) {
      const pledge = this.#targets.get(name)?.pledge
      if (pledge === undefined || soonest >= pledge.until) continue
      const when = `${(now - pledge.since).toFixed(0)} ms after that was acknowledged`
      throw new BrokenPromise(`${pledge.what}: job ${id} of queue ${queue} begins ${when}`)
    }
    return how
  }

  async #observe<Answer>(name: string, { call, voids, pledge }: ObservedCall<Answer>): Promise<Answer> {
    const target = this.#targets.get(name) ?? { pledge: undefined, calls: 0, underWay: 0 }
    this.#targets.set(name, target)
    const mine = (target.calls += 1)
    const isAlone = target.underWay === 0
    if (voids) target.pledge = undefined
    target.underWay += 1
    try {
      const answer = await call()
      if (isAlone && target.calls === mine) target.pledge = pledge(answer, target.pledge)
      return answer
    } finally {
      target.underWay -= 1
    }
  }
}
