import { beforeDay } from '../queries/days.js'
import type { DayQueries } from '../queries/days.js'
import type { SqlExecutor } from '../connection/sql-executor.js'

/** Jobs per slice, as in the scan of a day that may be dropped. */
const SLICE = 2_000

/**
 * A walk through a day that may not be dropped, because its tables belong to another role: expired jobs are deleted row
 * by row. That costs more than a drop, and leaves space that only later rows fill; it is used only where a drop is
 * impossible.
 */
export class DayRows {
  readonly day: number
  readonly #now: number
  forgotten = 0
  #after: string
  #isOver = false

  constructor(day: number, now: number) {
    this.day = day
    this.#now = now
    this.#after = beforeDay(day)
  }

  /** Deletes the expired jobs of the next slice. */
  async readSlice(db: SqlExecutor, queries: DayQueries): Promise<void> {
    const values = [this.#after, beforeDay(this.day + 1), String(this.#now), String(SLICE)]
    const [slice] = await db.query<Slice>(queries.pruneSlice, values)
    this.forgotten += Number(slice?.forgotten ?? 0)
    this.#after = slice?.last ?? this.#after
    this.#isOver = slice?.last == null || Number(slice.rows) < SLICE
  }

  get isOver(): boolean {
    return this.#isOver
  }
}

interface Slice {
  readonly rows: number
  readonly last: string | null
  readonly forgotten: number
}
