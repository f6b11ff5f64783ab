import { isRunaway, nextChain, RECURSION_DEPTH } from '../job/limits/recursion.js'
import type { EnqueueChain } from '../job/limits/recursion.js'
import type { Clock } from '../world/clock.js'
import type { Log } from '../world/log.js'

/** The attempt that enqueues. */
interface Enqueuing {
  readonly job: string
  readonly options: { readonly chain?: EnqueueChain | undefined }
}

/** Reports once, for each job, that it enqueues itself without an end: nothing else shows it before the store is full. */
export class Recursion {
  readonly #clock: Clock
  readonly #log: Log
  readonly #reported = new Set<string>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** The chain of a job of this name; undefined when no job of the same name enqueues it. */
  chainOf(name: string, by: Enqueuing | undefined): EnqueueChain | undefined {
    if (by?.job !== name) return undefined
    const chain = nextChain(by.options.chain, this.#clock.now())
    if (isRunaway(chain) && !this.#reported.has(name)) this.#report(name)
    return chain
  }

  #report(name: string): void {
    this.#reported.add(name)
    const text = `job ${JSON.stringify(name)} has enqueued itself past a depth of ${RECURSION_DEPTH} within a minute; if it has no end, pause its queue and give the handler one`
    this.#log.write('warn', { job: name }, text)
  }
}
