import type { Connection } from '../connection/connection.js'
import { COME_AGAIN } from './days.js'
import type { DayQueries } from '../queries/days.js'
import { partitionOf } from '../queries/days.js'
import { sqlStateOf } from '../connection/executor.js'
import { RANGE_PAGES } from '../migrations/0001-times.js'
import { DAY_MS } from '../queries/numbers.js'

/** Runs of pages added in one go: about 30 ms. */
const RUNS_MAX = 64
const EVERY_MS = 5_000

/** How far the pages of each partition are in the index on times, and when that is to be looked at again. */
export interface SummaryWalk {
  at: number
  readonly next: Map<string, number>
}

/**
 * Adds the full runs of pages to the index on times (`times.ts`), of the partitions that grow: today's, yesterday's and the rest. A
 * run that is not there yet is read whole by every search. Vacuum adds them too, but may take minutes to come by. The last
 * run is left out: once it were added, every insert would have to widen its entry. For the owner of the tables alone; tells whether
 * there is more to add.
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
  const asked = JSON.stringify(partitions.map((name) => ({ name, next: walk.next.get(name) ?? 0 })))
  try {
    const added = await connection.transaction(queries, async (tx) => {
      const [row] = await tx.query<{ alone: boolean }>(queries.tryAlone, [])
      return row?.alone === true ? tx.query<AddedRun>(queries.addSummaries, [asked, String(RUNS_MAX)]) : []
    })
    for (const { name, block } of added)
      walk.next.set(name, Math.max(walk.next.get(name) ?? 0, Number(block) + RANGE_PAGES))
    if (added.length === RUNS_MAX) walk.at = now
    return added.length === RUNS_MAX
  } catch (error) {
    // Autovacuum has the table, and adds them.
    if (COME_AGAIN.has(sqlStateOf(error) ?? '')) return false
    throw error
  }
}

interface AddedRun {
  readonly name: string
  readonly block: unknown
}
