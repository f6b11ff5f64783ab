import { StoreError } from '../../errors.js'
import type { NewJob } from '../store.js'
import { INSERT_MAX, weightOf } from './write.js'

/** The server said no: nothing was written. */
function isRefusal(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'E_STORE'
}

interface Waiting {
  readonly jobs: readonly NewJob[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * What arrives while a commit is under way rides in the next one. A hundred callers who each enqueue one job and wait for it
 * share a statement and a flush. When a shared write is refused each is written by itself, so that nobody pays for another;
 * when nobody knows whether it was written, all are told so: once more could be twice.
 */
export class Gather {
  readonly #write: (jobs: readonly NewJob[]) => Promise<void>
  #waiting: Waiting[] = []
  #isWriting = false

  constructor(write: (jobs: readonly NewJob[]) => Promise<void>) {
    this.#write = write
  }

  add(jobs: readonly NewJob[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ jobs, resolve, reject })
      if (!this.#isWriting) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) await this.#writeTogether(this.#next())
    this.#isWriting = false
  }

  #next(): Waiting[] {
    let [count, weight] = [0, 0]
    while (count < this.#waiting.length) {
      weight += weightOf((this.#waiting[count] as Waiting).jobs)
      if (count > 0 && weight > INSERT_MAX) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  async #writeTogether(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#write(batch.length === 1 ? (batch[0] as Waiting).jobs : batch.flatMap((one) => one.jobs))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      // Of a connection that was lost nobody knows what it wrote: to write again would be to write twice.
      if (batch.length === 1 || !isRefusal(error)) for (const { reject } of batch) reject(error)
      else for (const one of batch) await this.#writeTogether([one])
    }
  }
}
