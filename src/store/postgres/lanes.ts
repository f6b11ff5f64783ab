import type { NewJob } from '../store.js'
import type { Executor } from './executor.js'
import type { Queries } from './queries.js'

/** A lane is a (queue, job name) pair: jobs of one lane are in one line. */
export interface Lane {
  readonly lane: number
  readonly queue: string
  readonly name: string
}

/**
 * The lanes by number and by name. Rows are only ever added, and by themselves, never in a transaction that may be rolled
 * back: so what was read once stays true, as long as it is the same server. They are flushed before they are used, so that a
 * crash loses none; a failover to a standby that lags may, and so all are read again when a connection was made anew.
 */
export class Lanes {
  readonly #db: Executor
  readonly #queries: Queries
  readonly #byNumber = new Map<number, Lane>()
  readonly #byName = new Map<string, number>()
  #last = 0
  #isDoubtful = false

  constructor(db: Executor, queries: Queries) {
    this.#db = db
    this.#queries = queries
  }

  /** Of a lane that was learned. */
  get(number: number): Lane {
    return this.#byNumber.get(number) as Lane
  }

  async learn(numbers: readonly number[]): Promise<void> {
    if (this.#isDoubtful || !numbers.every((number) => this.#byNumber.has(number))) await this.#readNew()
  }

  /** The lanes of jobs, added where they are new. */
  async needAll(jobs: readonly Pick<NewJob, 'queue' | 'name'>[]): Promise<void> {
    let last: Pick<NewJob, 'queue' | 'name'> | undefined
    for (const job of jobs) {
      if (job.queue !== last?.queue || job.name !== last.name) await this.need(job.queue, job.name)
      last = job
    }
  }

  async need(queue: string, name: string): Promise<number> {
    if (this.#isDoubtful) await this.#readNew()
    const known = this.known(queue, name)
    if (known !== undefined) return known
    await this.#db.query(this.#queries.addLane, [queue, name])
    await this.#readNew()
    return this.known(queue, name) as number
  }

  /** It may be another server now. */
  doubt(): void {
    this.#isDoubtful = true
  }

  /** Of a lane that was needed before. */
  known(queue: string, name: string): number | undefined {
    return this.#byName.get(`${queue}\n${name}`)
  }

  /** Numbers are given before they are committed, so one may show up late: a gap is looked at again. */
  async #readNew(): Promise<void> {
    const isAnew = this.#isDoubtful
    const rows = await this.#db.query<Lane>(this.#queries.readLanes, [String(isAnew ? 0 : this.#last)])
    if (isAnew) this.#forget()
    for (const row of rows) {
      const lane = Number(row.lane)
      this.#byNumber.set(lane, { lane, queue: row.queue, name: row.name })
      this.#byName.set(`${row.queue}\n${row.name}`, lane)
    }
    while (this.#byNumber.has(this.#last + 1)) this.#last += 1
  }

  #forget(): void {
    this.#isDoubtful = false
    this.#byNumber.clear()
    this.#byName.clear()
    this.#last = 0
  }
}
