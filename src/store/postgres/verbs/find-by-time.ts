import type { FindQuery } from '../../find.js'
import { DAY_MS, NUMBER_BITS } from '../numbers.js'
import type { Session } from '../connection/session.js'

/*
 * Finds the refs of jobs that were created in a span of time. The day of a ref is the day of `created_at`, so all other days match whole or
 * not at all. Within that day times mostly rise with refs, but not always: of two statements the one that read the clock
 * first may draw its numbers last, and clocks are set back. So a binary search by primary key finds a ref as if times did
 * rise, and a second search finds the strays, the matching jobs on the other side of it:
 *
 *     time  │ · stray   ██████
 *     after ├─────────▄████████    refs from `lowest` on, and one stray
 *           │   ██████  ·
 *           └─────────┴──────────► ref
 *                   lowest
 *
 * The second search is for a box of times and refs. The index on both (BRIN) has the minimum and maximum of each range of
 * pages, so the search reads only ranges that overlap the box: nearly always the one where the binary search ended, and
 * those that upkeep has not added yet.
 */

/** From this many strays on, the whole day is scanned. */
const STRAYS_MAX = 2_000
const BEYOND = 9_223_372_036_854_775_807n

/** All matching jobs are among: refs from `lowest` to before `beyond`, and the strays. */
export interface RefRange {
  readonly lowest: bigint
  readonly beyond: bigint
  readonly strays: readonly number[]
}

const ALL: RefRange = { lowest: 0n, beyond: BEYOND, strays: [] }

export async function rangeOf(
  session: Session,
  query: Pick<FindQuery, 'createdAfter' | 'createdBefore'>,
): Promise<RefRange> {
  if (query.createdAfter === undefined && query.createdBefore === undefined) return ALL
  const from = query.createdAfter === undefined ? undefined : query.createdAfter + 1
  const to = query.createdBefore
  const low = from === undefined ? NO_DAY : dayOf(from)
  const high = to === undefined ? { ...NO_DAY, first: BEYOND, end: BEYOND } : dayOf(to)
  const [row] = await session.query<SearchRow>(
    session.queries.searchTimes,
    ...[from ?? 0, low.first, low.end, to ?? 0, high.first, high.end].map(String),
    String(Math.min(low.endMs, to ?? low.endMs)),
    String(Math.max(high.beganMs, from ?? high.beganMs)),
    String(STRAYS_MAX),
  )
  const { lowest, beyond, early, late } = row as SearchRow
  const [before, behind] = [refsIn(early), refsIn(late)]
  return {
    lowest: before.length === STRAYS_MAX ? low.first : BigInt(lowest),
    beyond: behind.length === STRAYS_MAX ? high.end : BigInt(beyond),
    strays: [...(before.length === STRAYS_MAX ? [] : before), ...(behind.length === STRAYS_MAX ? [] : behind)],
  }
}

interface SearchRow {
  readonly lowest: string
  readonly beyond: string
  /** Arrays of refs. */
  readonly early: string
  readonly late: string
}

/** A day, as times and as refs. */
interface Day {
  readonly beganMs: number
  readonly endMs: number
  readonly first: bigint
  readonly end: bigint
}

const NO_DAY: Day = { beganMs: 0, endMs: 0, first: 0n, end: 0n }

function dayOf(ms: number): Day {
  const day = Math.floor(ms / DAY_MS)
  return { beganMs: day * DAY_MS, endMs: (day + 1) * DAY_MS, first: firstRef(day), end: firstRef(day + 1) }
}

/** For a day without refs, before 1970 or in a far future, the nearest ref. */
function firstRef(day: number): bigint {
  const ref = BigInt(day) << BigInt(NUMBER_BITS)
  return ref < 0n ? 0n : ref > BEYOND ? BEYOND : ref
}

function refsIn(array: string): number[] {
  return JSON.parse(`[${array.slice(1, -1)}]`) as number[]
}
