import { StoreError } from '../../../errors.js'
import type { NewJob } from '../../store.js'
import type { Executor } from '../connection/executor.js'
import type { Queries } from '../queries/queries.js'

/** A lane is a (queue, job name) pair: jobs of one lane are in one order. */
export interface Lane {
  readonly lane: number
  readonly queue: string
  readonly name: string
}

export type LaneName = Pick<NewJob, 'queue' | 'name'>

/** The number of a lane means another lane. The verb that throws this has written nothing, or its transaction is rolled back. */
export class LaneMoved extends Error {}

/** The numbers that a call had read were forgotten before it used them: a connection was lost, or another call found one moved. */
class LaneForgotten extends LaneMoved {}

/** Give up after this many times that lanes had moved: another process keeps making the tables again. */
const TRIES = 5
/** Give up after this many times that the numbers were forgotten meanwhile. */
const FORGOTTEN_MAX = 100

/**
 * The numbers of lanes, as far as they are needed here. Rows are only ever added, and by themselves, never in a transaction
 * that may be rolled back. Yet a number that was read may become wrong: tables are dropped and made again, or emptied, or restored, and
 * a standby that lagged is promoted. So nothing rests on these numbers: each statement that writes one proves what it means.
 */
export class Lanes {
  readonly #db: Executor
  readonly #queries: Queries
  readonly #numbers = new Map<string, number>()

  constructor(db: Executor, queries: Queries) {
    this.#db = db
    this.#queries = queries
  }

  /**
   * Does what names these lanes. When it finds one that has moved, all are read again and it is done again, which it is
   * told: then they were read after it had looked. A caller's transaction may have made some that only it can see
   * (`add_job`), and whose end this call must not wait for; if it is rolled back, they have moved.
   */
  async sure<T>(lanes: readonly LaneName[], work: (isAgain: boolean) => Promise<T>, caller?: Executor): Promise<T> {
    for (let [moved, forgotten] = [0, 0]; ;) {
      await this.#need(lanes, caller)
      try {
        return await work(moved > 0)
      } catch (error) {
        if (!(error instanceof LaneMoved)) throw error
        if (error instanceof LaneForgotten) forgotten += 1
        else moved += 1
        if (moved === TRIES) throw keptChanging(error)
        if (forgotten === FORGOTTEN_MAX) throw keptLost(error)
        // Numbers that are forgotten already need only be read: to forget again would take them from calls under way.
        if (!(error instanceof LaneForgotten)) this.forget()
      }
    }
  }

  /** Of a lane that was made sure of. */
  known(queue: string, name: string): number {
    const lane = this.#numbers.get(`${queue}\n${name}`)
    if (lane === undefined) throw new LaneForgotten()
    return lane
  }

  forget(): void {
    this.#numbers.clear()
  }

  async #need(lanes: readonly LaneName[], caller: Executor | undefined): Promise<void> {
    await this.#read(this.#db, this.#missing(lanes))
    if (caller !== undefined) await this.#read(caller, this.#missing(lanes))
    const missing = this.#missing(lanes)
    if (missing.length > 0) await this.#db.query(this.#queries.addLanes, [JSON.stringify(missing)])
    await this.#read(this.#db, missing)
  }

  async #read(db: Executor, missing: readonly LaneName[]): Promise<void> {
    if (missing.length === 0) return
    const rows = await db.query<Lane>(this.#queries.readLanes, [JSON.stringify(missing)])
    for (const { lane, queue, name } of rows) this.#numbers.set(`${queue}\n${name}`, Number(lane))
  }

  #missing(lanes: readonly LaneName[]): LaneName[] {
    const missing = new Map<string, LaneName>()
    let last: LaneName | undefined
    for (const lane of lanes) {
      const { queue, name } = lane
      // A bulk is mostly of one lane.
      if (queue === last?.queue && name === last.name) continue
      last = lane
      const key = `${queue}\n${name}`
      if (!this.#numbers.has(key)) missing.set(key, { queue, name })
    }
    return [...missing.values()]
  }
}

function keptChanging(cause: unknown): StoreError {
  return new StoreError('E_STORE', 'the tables of the jobs keep changing: nothing was written; try it again', { cause })
}

function keptLost(cause: unknown): StoreError {
  const message = 'the connection to the server is lost again and again: nothing was written; try it again'
  return new StoreError('E_STORE_UNREACHABLE', message, { cause })
}
