import { CALL_PACE } from '../../store/info.js'
import { SQLITE, Statements } from '../../store/sqlite/connection/driver.js'
import type { SqliteDatabase, SqliteStatement } from '../../store/sqlite/connection/driver.js'
import { chooseLibrary } from '../../store/sqlite/connection/library.js'
import { openFile } from '../../store/sqlite/connection/open.js'
import type { OpenedFile } from '../../store/sqlite/connection/open.js'
import {
  ChangingCensus,
  countChanges,
  makeWork,
  emptyTables,
  transact,
  writeWork,
} from '../../store/sqlite/verbs/census.js'
import { queries as ownQueries } from '../../store/sqlite/queries/queries.js'
import type { Queries } from '../../store/sqlite/queries/queries.js'
import { SqliteStore } from '../../store/sqlite/sqlite-store.js'
import type { World } from '../../world/world.js'
import { systemWorld } from '../../world/world.js'
import type { SimulatedCensus } from '../checkers/checks.js'
import type { SimEngine, SimOpening, WholeStore } from './sim-database.js'
import { rest } from './virtual-time.js'

/** A SQLite database in memory, on one connection that all simulated processes share. */
export class SqliteEngine implements SimEngine {
  readonly answersLater = false
  readonly heldUnconfirmedMs = CALL_PACE.sqlite.heldUnconfirmedMs
  readonly #file: OpenedFile
  readonly #statements: HeldStatements
  readonly #census: ChangingCensus
  #beats = 0

  private constructor(file: OpenedFile) {
    this.#file = file
    this.#statements = new HeldStatements(file.database)
    this.#census = new ChangingCensus(this.#statements)
  }

  static async open(): Promise<SqliteEngine> {
    const database = new (chooseLibrary().open)(':memory:')
    makeWork(database)
    return new SqliteEngine(await openFile({ target: database, durability: 'process' }, true, systemWorld()))
  }

  /** Begins another history, which costs less than to open another database. Stores of the last one must not be used any more. */
  empty(): this {
    this.#statements.isHeld = () => false
    emptyTables(this.#file.database)
    this.#census.readAgain()
    this.#beats = 0
    return this
  }

  openStore({ process, now, isHeld, queries: plant }: SimOpening): ReturnType<SimEngine['openStore']> {
    this.#statements.isHeld = isHeld
    const queries = plant?.(simulatedQueries) ?? simulatedQueries
    const on = (world: World): WholeStore =>
      new SqliteStore(this.#file, world, { durability: 'process', queries, now, statements: this.#statements })
    return Promise.resolve({ store: on(process.world), heartbeatStore: on(process.heartbeatWorld) })
  }

  census(): SimulatedCensus {
    return this.#census.read()
  }

  countChanges(): number {
    return countChanges(this.#statements) - this.#beats
  }

  beaten(): void {
    this.#beats += 1
  }

  /** Nothing is in flight: each statement is answered at once. */
  rest(): Promise<void> {
    return rest()
  }

  transact(work: (tx: SqliteDatabase) => void): void {
    try {
      transact(this.#file.database, work)
    } catch (error) {
      this.#census.readAgain()
      throw error
    }
  }

  /** The transaction ends when `work` has returned, and not when its promise is settled. */
  async inTransaction<T>(rollsBack: boolean, work: (tx: unknown) => Promise<T>): Promise<T> {
    let answer: Promise<T> | undefined
    try {
      this.transact((tx) => {
        answer = work(tx)
        if (rollsBack) throw new RolledBack()
      })
    } catch (error) {
      if (!(error instanceof RolledBack)) throw error
    }
    return answer as Promise<T>
  }

  writeWork(tx: unknown, id: string): void {
    writeWork(tx as SqliteDatabase, id)
  }
}

class RolledBack extends Error {}

/** Statements on a file that another process may hold: then no transaction begins. */
class HeldStatements extends Statements {
  isHeld = (): boolean => false

  override of(sql: string): SqliteStatement {
    if (sql === ownQueries.begin && this.isHeld())
      throw Object.assign(new Error('another process holds the file'), { errcode: SQLITE.busy })
    return super.of(sql)
  }
}

/** All simulated processes share a connection, on which `data_version` never changes: its count of changes is used instead. */
export const simulatedQueries: Queries = { ...ownQueries, dataVersion: 'select total_changes() as data_version' }
