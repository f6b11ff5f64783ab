import type { Census, CensusJob } from '../../census.js'
import type { SqliteDatabase, Statements } from '../connection/driver.js'
import { callerQueries } from '../queries/caller-transactions.js'
import { CENSUS_PARTS, censusQueries } from '../queries/census.js'

/** The number of changes that this connection has made: while it is the same, the census is the same. */
export function countChanges(statements: Statements): number {
  return (statements.of(censusQueries.countChanges).get() as { changes: number }).changes
}

/** Read as one JSON text: the driver's rows cost more than the query. */
export function readCensus(statements: Statements): Census {
  return readText(statements, censusQueries.readCensus) as Census
}

/** The census with the number of times that a transaction of the app wrote the work of each job (`makeWork`). */
export type CensusWithWork = Census & { readonly works: readonly WorkOfJob[] }

export interface WorkOfJob {
  readonly id: string
  readonly times: number
}

function readText(statements: Statements, sql: string, ...values: readonly string[]): unknown {
  return JSON.parse((statements.of(sql).get(...values) as { census: string }).census)
}

/**
 * Censuses of a database that one connection writes. The simulator reads thousands, and between two of them little changes:
 * triggers note which rows have changed, and only these are read again.
 */
export class ChangingCensus {
  readonly #statements: Statements
  readonly #jobs = new Map<number, CensusJob>()
  #parts: Record<string, unknown> = {}
  #seen = 0

  constructor(statements: Statements) {
    this.#statements = statements
    statements.database.exec(censusQueries.noteChanges)
    this.readAgain()
  }

  /** A transaction was rolled back, and a census may have been read inside it. */
  readAgain(): void {
    this.#seen = 0
    this.#jobs.clear()
    this.#readParts(new Set([...CENSUS_PARTS.values()].flat()))
  }

  read(): CensusWithWork {
    const changes = this.#statements.of(censusQueries.changesSince).all(this.#seen) as readonly ChangedTable[]
    const parts = new Set(CENSUS_PARTS.get('millrace_workers'))
    const refs = new Set<number>()
    for (const { no, source, seqs } of changes) {
      this.#seen = Math.max(this.#seen, no)
      for (const part of CENSUS_PARTS.get(source) ?? []) parts.add(part)
      for (const seq of JSON.parse(seqs) as number[]) refs.add(seq)
    }
    this.#readParts(parts)
    if (parts.has('jobs')) this.#readJobs([...refs])
    return { ...this.#parts, jobs: [...this.#jobs.values()] } as unknown as CensusWithWork
  }

  #readParts(names: Iterable<string>): void {
    const changed: Record<string, unknown> = {}
    for (const name of names)
      if (name !== 'jobs') changed[name] = readText(this.#statements, censusQueries.readParts[name] as string)
    this.#parts = { ...this.#parts, ...changed }
  }

  #readJobs(refs: readonly number[]): void {
    const jobs = readText(this.#statements, censusQueries.readJobs, JSON.stringify(refs)) as readonly CensusJob[]
    const found = new Map(jobs.map((job) => [job.seq, job]))
    for (const ref of refs) {
      const job = found.get(ref)
      if (job === undefined) this.#jobs.delete(ref)
      else this.#jobs.set(ref, job)
    }
  }
}

interface ChangedTable {
  readonly no: number
  readonly source: string
  readonly seqs: string
}

/** A table of an app beside the jobs, to check that a job and its work commit together. */
export function makeWork(database: SqliteDatabase): void {
  database.exec(censusQueries.makeWork)
}

/** Records the work of a job in the transaction of this handle. */
export function writeWork(tx: SqliteDatabase, id: string): void {
  tx.prepare(censusQueries.writeWork).run(id)
}

/** Deletes every row, and keeps the tables and the statements that are prepared. */
export function emptyTables(database: SqliteDatabase): void {
  const tables = database.prepare(censusQueries.tables).all() as readonly { readonly name: string }[]
  database.exec(['begin', ...tables.map(({ name }) => `delete from ${name}`), 'commit'].join(';'))
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
