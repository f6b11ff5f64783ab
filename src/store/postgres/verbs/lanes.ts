import { StoreError } from '../../../errors.js'
import type { NewJob } from '../../store.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import type { Queries } from '../queries/queries.js'

/** A lane is a (queue, job name) pair: jobs of one lane are in one order. */
export interface Lane {
  readonly lane: number
  readonly queue: string
  readonly name: string
}

export type LaneName = Pick<NewJob, 'queue' | 'name'>

/**
 * The number of a lane now means another lane. The verb that throws this has written nothing, or its transaction is
 * rolled back.
 */
export class LaneMoved extends Error {}

/**
 * The numbers that a call had read were forgotten before it used them: a connection was lost, or another call found
 * that one had changed.
 */
class LaneForgotten extends LaneMoved {}

/** Give up after numbers have changed this many times: another process keeps creating the tables again. */
const TRIES = 5
/** Give up after the numbers were forgotten this many times meanwhile. */
const FORGOTTEN_MAX = 100

/**
 * A cache of the numbers of lanes. Rows are never deleted, and are inserted by statements of their own, never in a
 * transaction that may be rolled back. Yet a cached number may become wrong: tables are dropped and created again, or
 * emptied, or restored, or a standby that lagged is promoted. So no write relies on the cache: each statement that
 * writes a number checks what it means.
 */
export class Lanes {
  readonly #db: SqlExecutor
  readonly #queries: Queries
  readonly #numbers = new Map<string, number>()

  constructor(db: SqlExecutor, queries: Queries) {
    this.#db = db
    this.#queries = queries
  }

  /**
   * Runs `work` after the numbers of these lanes were read or inserted. When it finds that a number has changed, all
   * are read again and it runs again with `isAgain`: then they were read after it had read their table. A caller's
   * transaction may have inserted lanes that only it can see (`add_job`), and this call must not wait for its end; if
   * that transaction is rolled back, their numbers change.
   */
  async ensureLanes<T>(
    lanes: readonly LaneName[],
    work: (isAgain: boolean) => Promise<T>,
    caller?: SqlExecutor,
  ): Promise<T> {
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
        // Forgotten numbers only have to be read: to forget again would take them from calls in flight.
        if (!(error instanceof LaneForgotten)) this.forget()
      }
    }
  }

  /** The number of a lane that `ensureLanes` has read. */
  known(queue: string, name: string): number {
    const lane = this.#numbers.get(`${queue}\n${name}`)
    if (lane === undefined) throw new LaneForgotten()
    return lane
  }

  forget(): void {
    this.#numbers.clear()
  }

  async #need(lanes: readonly LaneName[], caller: SqlExecutor | undefined): Promise<void> {
    await this.#read(this.#db, this.#missing(lanes))
    if (caller !== undefined) await this.#read(caller, this.#missing(lanes))
    const missing = this.#missing(lanes)
    if (missing.length > 0) await this.#db.query(this.#queries.addLanes, [JSON.stringify(missing)])
    await this.#read(this.#db, missing)
  }

  async #read(db: SqlExecutor, missing: readonly LaneName[]): Promise<void> {
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
