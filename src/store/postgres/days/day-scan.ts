import type { DayQueries } from '../queries/days.js'
import { beforeDay } from '../queries/days.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { DAY_MS } from '../numbers.js'

/** Jobs per slice: a few milliseconds, after which a claim on the same connection can run. */
const SLICE = 2_000
/** Limit of the rows that are moved while the tables are locked. */
const STAYING_MAX = 10_000
/**
 * A young day of which more than a tenth stays is kept whole: to move most of it would cost as much as to delete it row
 * by row.
 */
const STAYING_SHARE = 0.1
const YOUNG_DAYS = 10

/** Reads one past day in slices: which of its jobs are unfinished, or kept longer. */
export class DayScan {
  readonly day: number
  readonly #now: number
  /** The last number drawn when this scan began, with no lower number uncommitted; undefined: that is not known yet. */
  readonly lastNumber: string | undefined
  all = 0
  readonly staying: number[] = []
  #after: string
  #isOver = false

  constructor(day: number, now: number, lastNumber?: string) {
    this.day = day
    this.#now = now
    this.lastNumber = lastNumber
    this.#after = beforeDay(day)
  }

  /** Reads the next slice. */
  async readSlice(db: SqlExecutor, queries: DayQueries): Promise<void> {
    const values = [this.#after, beforeDay(this.day + 1), String(this.#now), String(SLICE)]
    const [slice] = await db.query<Slice>(queries.scanSlice, values)
    this.all += slice?.rows ?? 0
    this.staying.push(...(JSON.parse(slice?.staying ?? '[]') as number[]))
    this.#after = slice?.last ?? this.#after
    // That too many stay is known early, mostly from the first few slices.
    this.#isOver = slice?.last == null || slice.rows < SLICE || this.staying.length >= STAYING_MAX
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get mayBeDropped(): boolean {
    const isYoung = Math.floor(this.#now / DAY_MS) - this.day <= YOUNG_DAYS
    if (isYoung && this.staying.length > this.all * STAYING_SHARE) return false
    return this.staying.length < STAYING_MAX
  }
}

interface Slice {
  readonly rows: number
  readonly last: string | null
  /** JSON. */
  readonly staying: string | null
}
