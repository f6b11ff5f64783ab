import type { Connection } from '../connection/connection.js'
import { RETRY_LATER_CODES } from './days.js'
import type { DayQueries } from '../queries/days.js'
import { partitionOf } from '../queries/days.js'
import { sqlStateOf } from '../connection/sql-executor.js'
import { RANGE_PAGES } from '../migrations/0001-times.js'
import { DAY_MS } from '../numbers.js'

/** Ranges of pages added per transaction: about 30 ms. */
const RANGES_MAX = 64
const EVERY_MS = 5_000

/** Up to which page each partition is in the index on times, and when the next check is due. */
export interface SummaryWalk {
  at: number
  readonly next: Map<string, number>
}

/**
 * Adds full ranges of pages to the index on times (`find-by-time.ts`), for the partitions that grow: today's,
 * yesterday's and the default one. Every search reads a range that is not in the index. Vacuum adds them too, but may
 * take minutes to run. The last range is left out: once it is in the index, every insert has to widen its entry. Only
 * for the owner of the tables. Returns whether there is more to add.
 */
export async function addSummaries(
  connection: Connection,
  queries: DayQueries,
  now: number,
  walk: SummaryWalk,
): Promise<boolean> {
  if (now < walk.at) return false
  walk.at = now + EVERY_MS
  const day = Math.floor(now / DAY_MS)
  const partitions = ['jobs_rest', partitionOf('jobs', day - 1), partitionOf('jobs', day)]
  const ranges = JSON.stringify(partitions.map((name) => ({ name, next: walk.next.get(name) ?? 0 })))
  try {
    const added = await connection.transaction(queries, async (tx) => {
      const [row] = await tx.query<{ alone: boolean }>(queries.tryAlone, [])
      return row?.alone === true ? tx.query<AddedRun>(queries.addSummaries, [ranges, String(RANGES_MAX)]) : []
    })
    for (const { name, block } of added)
      walk.next.set(name, Math.max(walk.next.get(name) ?? 0, Number(block) + RANGE_PAGES))
    if (added.length === RANGES_MAX) walk.at = now
    return added.length === RANGES_MAX
  } catch (error) {
    // Autovacuum has locked the table, and adds them.
    if (RETRY_LATER_CODES.has(sqlStateOf(error) ?? '')) return false
    throw error
  }
}

interface AddedRun {
  readonly name: string
  readonly block: unknown
}
