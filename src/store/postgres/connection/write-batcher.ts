import { StoreError } from '../../../errors.js'
import { SingleFlight } from '../../../world/single-flight.js'
import { ReplyLostError } from './faults.js'

/** The server refused the statement: nothing was written. */
function isRefusal(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'E_STORE'
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export interface WriteBatcherParts<Item, Answer> {
  /** Writes the items together, and returns their answers in the same order. */
  readonly write: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** The size of one item, and the limit of a batch; a single item may be larger. */
  readonly weigh: (item: Item) => number
  readonly max: number
}

/**
 * Batches calls: those that arrive while a commit is in flight share the next one. A hundred callers that each enqueue
 * one job and wait for it share a statement and a flush. When the server refuses a shared write, each call is written
 * alone, so that one bad call does not fail the others. When the outcome of a write is unknown, all its callers get
 * that error: a second write could write twice.
 */
export class WriteBatcher<Item, Answer> {
  readonly #parts: WriteBatcherParts<Item, Answer>
  #waiting: Waiting<Item, Answer>[] = []
  readonly #writes = new SingleFlight(() => this.#writeAll())

  constructor(parts: WriteBatcherParts<Item, Answer>) {
    this.#parts = parts
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      void this.#writes.request()
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#writeTogether(this.#next())
  }

  #next(): Waiting<Item, Answer>[] {
    let [count, weight] = [0, 0]
    for (const { item } of this.#waiting) {
      weight += this.#parts.weigh(item)
      if (count > 0 && weight > this.#parts.max) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  async #writeTogether(batch: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#parts.write(batch.map((one) => one.item))
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      // The outcome of a lost connection is unknown: a second write could write twice.
      if (batch.length === 1 || !isRefusal(error))
        for (const [index, { reject }] of batch.entries())
          reject(error instanceof ReplyLostError ? error.at(index) : error)
      else for (const one of batch) await this.#writeTogether([one])
    }
  }
}
