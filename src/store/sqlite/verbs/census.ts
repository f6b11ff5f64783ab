import type { Census } from '../../census.js'
import type { SqliteDatabase, Statements } from '../connection/driver.js'
import { callerQueries } from '../queries/caller-transactions.js'
import { censusQueries } from '../queries/census.js'

/** The number of changes that this connection has made: while it is the same, the census is the same. */
export function countChanges(statements: Statements): number {
  return (statements.of(censusQueries.countChanges).get() as { changes: number }).changes
}

/**
 * Read as one JSON text: the simulator reads thousands of small censuses, and the driver's rows cost more than the
 * query.
 */
export function readCensus(statements: Statements): Census {
  return readText(statements, censusQueries.readCensus) as Census
}

/** The census with the number of times that a transaction of the app wrote the work of each job (`makeWork`). */
export function readCensusWithWork(statements: Statements): Census & { readonly works: readonly WorkOfJob[] } {
  return readText(statements, censusQueries.readCensusWithWork) as Census & { readonly works: readonly WorkOfJob[] }
}

export interface WorkOfJob {
  readonly id: string
  readonly times: number
}

function readText(statements: Statements, sql: string): unknown {
  return JSON.parse((statements.of(sql).get() as { census: string }).census)
}

/** A table of an app beside the jobs, to check that a job and its work commit together. */
export function makeWork(database: SqliteDatabase): void {
  database.exec(censusQueries.makeWork)
}

/** Records the work of a job in the transaction of this handle. */
export function writeWork(tx: SqliteDatabase, id: string): void {
  tx.prepare(censusQueries.writeWork).run(id)
}

/** A transaction of the app, from begin to end in one call; a throw of `work` rolls it back. */
export function transact(database: SqliteDatabase, work: (tx: SqliteDatabase) => void): void {
  database.exec(callerQueries.beginNow)
  try {
    work(database)
    database.exec(callerQueries.commit)
  } catch (error) {
    database.exec(callerQueries.rollback)
    throw error
  }
}
