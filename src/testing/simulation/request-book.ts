import { BrokenPromise } from '../checkers/broken-promise.js'
import type { SimProcess } from './sim-process.js'

/** The promise of a cancel. */
export const CANCELLED = 'X7, cancelled'

/** What a caller was told and may hold the engine to: nothing of this begins from now on, or until then. */
export interface Pledge {
  /** The promise and what was done, for whoever reads that it was broken. */
  readonly what: string
  readonly since: number
  /** Infinity: until somebody asks for something else. */
  readonly until: number
}

/** A call about a job or a queue. */
export interface Asked<Answer> {
  readonly call: () => Promise<Answer>
  /** Whether it can end what was promised before: from the moment it goes out nobody knows what holds. */
  readonly voids: boolean
  /** What its answer promises, beside or instead of what stands; undefined: nothing. */
  readonly pledge: (answer: Answer, standing: Pledge | undefined) => Pledge | undefined
}

interface Target {
  pledge: Pledge | undefined
  calls: number
  underWay: number
}

/**
 * Every call that keeps jobs from beginning (cancel, pause, the pause of a queue) and what its answer promised. Only what was
 * answered counts: of a call that failed nobody knows whether it was done, and of two at once nobody knows which came last.
 */
export class AskBook {
  readonly #targets = new Map<string, Target>()
  readonly #soonest: () => number

  /** `soonest`: in what time the ends of pledges are, see `SimClock`. */
  constructor(soonest: () => number) {
    this.#soonest = soonest
  }

  ofJob<Answer>(id: string, asked: Asked<Answer>): Promise<Answer> {
    return this.#ask(`job ${id}`, asked)
  }

  ofQueue<Answer>(queue: string, asked: Asked<Answer>): Promise<Answer> {
    return this.#ask(`queue ${queue}`, asked)
  }

  /** Since when a caller knows that this job was cancelled. */
  cancelledSince(id: string): number | undefined {
    const pledge = this.#targets.get(`job ${id}`)?.pledge
    return pledge?.what === CANCELLED ? pledge.since : undefined
  }

  /** A handler begins; a process that acts on old news, as one does that stalled, is not held to it. */
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

  async #ask<Answer>(name: string, { call, voids, pledge }: Asked<Answer>): Promise<Answer> {
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
