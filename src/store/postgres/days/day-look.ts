import type { DayQueries } from '../queries/days.js'
import { beforeDay } from '../queries/days.js'
import type { Executor } from '../connection/executor.js'
import { DAY_MS } from '../queries/numbers.js'

/** So many jobs at a time: a few milliseconds, and then a claim on the same connection has its turn. */
const SLICE = 2_000
/** So many at the most are moved, while everybody waits. */
const STAYING_MAX = 10_000
/** A day of which more than a tenth stays is kept whole, while it is young: to move most of it were to delete it by rows. */
const STAYING_SHARE = 0.1
const YOUNG_DAYS = 10

/** A look through one day that is over, in slices: which of its jobs are unfinished, or to be kept longer. */
export class DayLook {
  readonly day: number
  readonly #now: number
  /** The last number given when this look began, with no lower number uncommitted; undefined: that was not made sure of. */
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

  /** Looks at the next slice. */
  async goOn(db: Executor, queries: DayQueries): Promise<void> {
    const values = [this.#after, beforeDay(this.day + 1), String(this.#now), String(SLICE)]
    const [slice] = await db.query<Slice>(queries.lookAtSlice, values)
    this.all += slice?.rows ?? 0
    this.staying.push(...(JSON.parse(slice?.staying ?? '[]') as number[]))
    this.#after = slice?.last ?? this.#after
    // That too many stay is known early, mostly from the first few slices.
    this.#isOver = slice?.last == null || slice.rows < SLICE || this.staying.length >= STAYING_MAX
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get mayGo(): boolean {
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
