import type { Connection } from './connection.js'
import type { DayQueries, Parted } from './days-queries.js'
import { dayOf, PARTED, partitionOf } from './days-queries.js'
import { sqlStateOf } from './executor.js'
import type { Executor } from './executor.js'
import { DAY_MS } from './numbers.js'

/** Today and the next ones: a fleet whose upkeep rests for two days still writes into days. */
const DAYS_AHEAD = 2
/** So many at the most are moved, while everybody waits. */
const STAYING_MAX = 10_000
/** A day of which more than a tenth stays is kept whole, while it is young: to move most of it were to delete it by rows. */
const STAYING_SHARE = 0.1
const YOUNG_DAYS = 10

/** Somebody has the lock, or rows came into the rest meanwhile: it is tried again. */
const COME_AGAIN = new Set(['55P03', '23514', '40P01'])

export interface DaysKept {
  /** Jobs that went with their days. */
  readonly forgotten: number
  /** Somebody stood in the way. */
  readonly again: boolean
}

/**
 * Days are made ahead, and those that are over are dropped whole: nothing is deleted by rows and no space is left behind. Any
 * number of processes may do it, also at once. No lock is waited for long, and nothing fails for want of a day.
 */
export async function keepDays(connection: Connection, queries: DayQueries, now: number): Promise<DaysKept> {
  const parts = new Set((await connection.query<{ name: string }>(queries.readParts, [])).map(({ name }) => name))
  const today = Math.floor(now / DAY_MS)
  const days = new Days(connection, queries)
  await days.make(missingOf(parts, today))
  await days.drop(overOf(parts, today), now)
  return { forgotten: days.forgotten, again: days.again }
}

/** Within the transaction that made the tables: nobody can be in the way. */
export async function makeFirstDays(tx: Executor, queries: DayQueries, now: number): Promise<void> {
  for (const { of, day } of missingOf(new Set(), Math.floor(now / DAY_MS))) await makeDay(tx, queries, of, day)
}

interface Part {
  readonly of: Parted
  readonly day: number
}

function missingOf(parts: ReadonlySet<string>, today: number): Part[] {
  const ahead = Array.from({ length: DAYS_AHEAD + 1 }, (_, i) => today + i)
  return ahead
    .flatMap((day) => PARTED.map((of) => ({ of, day })))
    .filter(({ of, day }) => !parts.has(partitionOf(of, day)))
}

/** The days that are over, the oldest first. */
function overOf(parts: ReadonlySet<string>, today: number): number[] {
  const days = new Set([...parts].flatMap((name) => PARTED.map((of) => dayOf(of, name))))
  return [...days]
    .filter((day) => day !== undefined && day < today)
    .sort((a, b) => (a as number) - (b as number)) as number[]
}

class Days {
  forgotten = 0
  again = false
  readonly #connection: Connection
  readonly #queries: DayQueries

  constructor(connection: Connection, queries: DayQueries) {
    this.#connection = connection
    this.#queries = queries
  }

  /** Each by itself, so that none holds a lock while it waits for the next one's. */
  async make(missing: readonly Part[]): Promise<void> {
    for (const { of, day } of missing) await this.#alone((tx) => makeDay(tx, this.#queries, of, day))
  }

  async drop(days: readonly number[], now: number): Promise<void> {
    for (const day of days) this.forgotten += (await this.#alone((tx) => this.#drop(tx, day, now))) ?? 0
  }

  /** Looked at again now that nobody else is at it: somebody may have been faster. */
  async #drop(tx: Executor, day: number, now: number): Promise<number | undefined> {
    const parts = new Set((await tx.query<{ name: string }>(this.#queries.readParts, [])).map(({ name }) => name))
    const there = PARTED.filter((of) => parts.has(partitionOf(of, day)))
    return there.length === 0 ? 0 : dropDay(tx, this.#queries, day, there, now)
  }

  async #alone<T>(work: (tx: Executor) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.#connection.transaction(this.#queries, async (tx) => {
        const [row] = await tx.query<{ alone: boolean }>(this.#queries.tryAlone, [])
        if (row?.alone === true) return await work(tx)
        this.again = true
        return undefined
      })
    } catch (error) {
      if (!COME_AGAIN.has(sqlStateOf(error) ?? '')) throw error
      this.again = true
      return undefined
    }
  }
}

async function makeDay(tx: Executor, queries: DayQueries, of: Parted, day: number): Promise<void> {
  const parts = await tx.query<{ name: string }>(queries.readParts, [])
  // Another process was faster, or its rows are in the rest and stay there.
  if (parts.some(({ name }) => name === partitionOf(of, day))) return
  if ((await tx.query(queries.isTaken(of, day), [])).length > 0) return
  await tx.query(queries.create(of, day), [])
  await tx.query(queries.attach(of, day), [])
}

/** Gives how many jobs went with it; undefined when the day stays for now. */
async function dropDay(
  tx: Executor,
  queries: DayQueries,
  day: number,
  there: readonly Parted[],
  now: number,
): Promise<number | undefined> {
  const at = String(now)
  const rows = await count(tx, queries.countStaying(day), at, String(STAYING_MAX))
  if (rows >= STAYING_MAX) return undefined
  const all = await count(tx, queries.countDay(day))
  const isYoung = Math.floor(now / DAY_MS) - day <= YOUNG_DAYS
  if (isYoung && rows > all * STAYING_SHARE) return undefined
  await tx.query(queries.lockParted, [])
  if (there.includes('jobs')) {
    await tx.query(queries.detach('jobs', day), [])
    await tx.query(queries.moveJobs(day), [at])
  }
  if (there.includes('history')) {
    await tx.query(queries.detach('history', day), [])
    await tx.query(queries.moveHistory(day), [])
  }
  if (there.includes('history')) await tx.query(queries.noteGone(day), [])
  for (const of of there) await tx.query(queries.drop(of, day), [])
  return all - rows
}

async function count(tx: Executor, sql: string, ...values: string[]): Promise<number> {
  const [row] = await tx.query<{ rows: number }>(sql, values)
  return Number(row?.rows)
}
