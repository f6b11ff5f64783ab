import type { Connection } from '../connection/connection.js'
import { DayScan } from './day-scan.js'
import { DayRows } from './day-rows.js'
import type { DayQueries, PartitionedTable } from '../queries/days.js'
import { dayOf, PARTITIONED_TABLES, partitionOf } from '../queries/days.js'
import { sqlStateOf } from '../connection/sql-executor.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { DAY_MS } from '../numbers.js'
import { arrayOf } from '../connection/session.js'

/**
 * Today and the following days: if the upkeep of all processes stops for two days, jobs are still written to partitions
 * of days.
 */
const DAYS_AHEAD = 2
/** Slices per sweep, about a second: a process that stops waits for that at most, and the next sweep continues. */
const SLICES_MAX = 200

/** Another process has the lock, or rows were inserted into the default partition meanwhile: it is retried. */
export const RETRY_LATER_CODES: ReadonlySet<string> = new Set(['55P03', '23514', '40P01'])

const DENIED = '42501'

/** The past days that are still to be read, and the current position. */
export interface DaysWalk {
  days: readonly number[]
  scan: DayScan | undefined
  /** Used where days may not be dropped. */
  rows?: DayRows | undefined
  mayDrop?: boolean
  /** The server denied what an owner may do: a partition belongs to yet another role. That is reported once. */
  isDenied?: boolean
}

export interface DaysMaintained {
  /** Jobs that were dropped with their days, or deleted row by row. */
  readonly forgotten: number
  /** Another process held a lock, or there is more to read. */
  readonly again: boolean
}

/**
 * Partitions of days are created ahead, and past ones are dropped whole: no rows are deleted and no dead space is left.
 * Any number of processes may do this, also at the same time. No lock is waited for long, and no write fails for lack
 * of a partition.
 *
 * This shares a connection with claims, and a day may have millions of jobs. So only the scans take longer with more
 * jobs, and those are cut into slices:
 *
 *     scan (too many stay?) ──► barrier ──► scan again ──► drop: lock, move those that stay, drop the tables
 *
 * The barrier waits until every enqueue that began before it has committed. A job that an old transaction enqueues into
 * that day afterwards has a higher number; a command that makes a job of that day unfinished again inserts it into
 * `revived`. So the drop knows all jobs that must stay without another scan.
 */
export async function maintainDays(
  connection: Connection,
  queries: DayQueries,
  now: number,
  walk: DaysWalk,
): Promise<DaysMaintained> {
  const days = new Days(connection, queries)
  try {
    if (walk.days.length === 0) await days.begin(walk, Math.floor(now / DAY_MS))
    await (walk.mayDrop === true ? days.walk(walk, now) : days.walkRows(walk, now))
  } catch (error) {
    Object.assign(walk, { days: [], scan: undefined, rows: undefined })
    if (sqlStateOf(error) === DENIED) walk.isDenied = true
    throw error
  }
  return { forgotten: days.forgotten, again: days.isHindered || walk.days.length > 0 }
}

/** Whether this role may create and drop partitions, and else who owns the tables. Names are quoted. */
async function readOwner(db: SqlExecutor, queries: DayQueries): Promise<Owner> {
  const [row] = await db.query<Owner>(queries.readOwner, [])
  return row as Owner
}

interface Owner {
  readonly may: boolean
  readonly owner: string
  readonly role: string
}

/** Warns once if the tables belong to another role. */
export class Owners {
  readonly #db: SqlExecutor
  readonly #queries: DayQueries
  readonly #warn: (owner: Owner) => void
  #hasChecked = false

  constructor(db: SqlExecutor, queries: DayQueries, warn: (owner: Owner) => void) {
    this.#db = db
    this.#queries = queries
    this.#warn = warn
  }

  async check(): Promise<void> {
    if (this.#hasChecked) return
    const owner = await readOwner(this.#db, this.#queries)
    this.#hasChecked = true
    if (!owner.may) this.#warn(owner)
  }
}

/** Within the transaction that created the tables: no other process can hold a lock on them. */
export async function makeFirstDays(tx: SqlExecutor, queries: DayQueries, now: number): Promise<void> {
  for (const { of, day } of missingOf(new Set(), Math.floor(now / DAY_MS))) await makeDay(tx, queries, of, day)
}

interface Part {
  readonly of: PartitionedTable
  readonly day: number
}

function missingOf(parts: ReadonlySet<string>, today: number): Part[] {
  const ahead = Array.from({ length: DAYS_AHEAD + 1 }, (_, i) => today + i)
  return ahead
    .flatMap((day) => PARTITIONED_TABLES.map((of) => ({ of, day })))
    .filter(({ of, day }) => !parts.has(partitionOf(of, day)))
}

/** The past days, the oldest first. */
function pastDays(parts: ReadonlySet<string>, today: number): number[] {
  const days = new Set([...parts].flatMap((name) => PARTITIONED_TABLES.map((of) => dayOf(of, name))))
  return [...days]
    .filter((day) => day !== undefined && day < today)
    .sort((a, b) => (a as number) - (b as number)) as number[]
}

class Days {
  forgotten = 0
  isHindered = false
  readonly #connection: Connection
  readonly #queries: DayQueries

  constructor(connection: Connection, queries: DayQueries) {
    this.#connection = connection
    this.#queries = queries
  }

  /** Creates the partitions of the next days, and lists the past ones. */
  async begin(walk: DaysWalk, today: number): Promise<void> {
    const parts = await readParts(this.#connection, this.#queries)
    walk.mayDrop = walk.isDenied !== true && (await readOwner(this.#connection, this.#queries)).may
    // Each in its own transaction, so that none holds a lock while it waits for the next one's.
    for (const { of, day } of walk.mayDrop ? missingOf(parts, today) : [])
      await this.#underExclusiveLock((tx) => makeDay(tx, this.#queries, of, day))
    walk.days = pastDays(parts, today)
    await this.#connection.query(this.#queries.sweepRevived(walk.days[0] ?? today), [])
  }

  async walk(walk: DaysWalk, now: number): Promise<void> {
    for (let left = SLICES_MAX; left > 0 && walk.days.length > 0 && !this.isHindered; left -= 1) {
      walk.scan ??= new DayScan(walk.days[0] as number, now)
      if (!walk.scan.isOver) await walk.scan.readSlice(this.#connection, this.#queries)
      if (walk.scan.isOver) await this.#seen(walk, walk.scan, now)
    }
  }

  async walkRows(walk: DaysWalk, now: number): Promise<void> {
    for (let left = SLICES_MAX; left > 0 && walk.days.length > 0; left -= 1) {
      const rows = (walk.rows ??= new DayRows(walk.days[0] as number, now))
      await rows.readSlice(this.#connection, this.#queries)
      if (!rows.isOver) continue
      this.forgotten += rows.forgotten
      walk.days = walk.days.slice(1)
      walk.rows = undefined
    }
  }

  /** A day that could not be dropped because of a lock stays in the list, and is retried at the next sweep. */
  async #seen(walk: DaysWalk, scan: DayScan, now: number): Promise<void> {
    if (scan.mayBeDropped && scan.lastNumber === undefined) {
      const lastNumber = await this.#underExclusiveLock((tx) => awaitEnqueues(tx, this.#queries))
      if (lastNumber !== undefined) walk.scan = new DayScan(scan.day, now, lastNumber)
      return
    }
    const forgotten = scan.mayBeDropped ? await this.#underExclusiveLock((tx) => dropDay(tx, this.#queries, scan)) : 0
    if (forgotten === undefined) return
    this.forgotten += forgotten
    walk.days = walk.days.slice(1)
    walk.scan = undefined
  }

  /** Undefined when another process holds a lock. */
  async #underExclusiveLock<T>(work: (tx: SqlExecutor) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.#connection.transaction(this.#queries, async (tx) => {
        const [row] = await tx.query<{ alone: boolean }>(this.#queries.tryAlone, [])
        if (row?.alone === true) return await work(tx)
        this.isHindered = true
        return undefined
      })
    } catch (error) {
      if (!RETRY_LATER_CODES.has(sqlStateOf(error) ?? '')) throw error
      this.isHindered = true
      return undefined
    }
  }
}

async function readParts(db: SqlExecutor, queries: DayQueries): Promise<Set<string>> {
  return new Set((await db.query<{ name: string }>(queries.readParts, [])).map(({ name }) => name))
}

async function makeDay(tx: SqlExecutor, queries: DayQueries, of: PartitionedTable, day: number): Promise<void> {
  const parts = await readParts(tx, queries)
  // Another process was faster, or rows of the day are in the default partition and stay there.
  if (parts.has(partitionOf(of, day))) return
  if ((await tx.query(queries.isTaken(of, day), [])).length > 0) return
  await tx.query(queries.create(of, day), [])
  const { owner, role } = await readOwner(tx, queries)
  if (owner !== role) await tx.query(queries.give(of, day, owner), [])
  await tx.query(queries.attach(of, day), [])
}

async function awaitEnqueues(tx: SqlExecutor, queries: DayQueries): Promise<string> {
  await tx.query(queries.lockJobs, [])
  const [row] = await tx.query<{ number: string }>(queries.lastNumber, [])
  return row?.number ?? '0'
}

/**
 * Returns how many jobs were dropped. The partitions are read again under the lock: another process may have dropped
 * them first.
 */
async function dropDay(tx: SqlExecutor, queries: DayQueries, scan: DayScan): Promise<number> {
  const { day } = scan
  const parts = await readParts(tx, queries)
  const there = PARTITIONED_TABLES.filter((of) => parts.has(partitionOf(of, day)))
  if (there.length === 0) return 0
  await tx.query(queries.lockPartitioned, [])
  let moved = scan.staying.length
  if (there.includes('jobs')) {
    await tx.query(queries.detach('jobs', day), [])
    const [row] = await tx.query<{ rows: number }>(queries.moveJobs(day), [
      arrayOf(scan.staying),
      scan.lastNumber as string,
    ])
    moved = row?.rows ?? 0
  }
  if (there.includes('history')) {
    await tx.query(queries.detach('history', day), [])
    await tx.query(queries.moveHistory(day), [])
  }
  if (there.includes('labels')) {
    await tx.query(queries.detach('labels', day), [])
    await tx.query(queries.moveLabels(day), [])
  }
  await tx.query(queries.dropLabels(day), [])
  if (there.includes('history')) await tx.query(queries.noteGone(day), [])
  if (there.includes('jobs')) await tx.query(queries.noteLongWork(day), [])
  for (const of of there) await tx.query(queries.drop(of, day), [])
  return Math.max(0, scan.all - moved)
}
