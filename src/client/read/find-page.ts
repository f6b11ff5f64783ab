import { InvalidOptionsError } from '../../errors.js'
import { isCount, isDurationOption } from '../../job/definition/check-options.js'
import type { Registry } from '../../job/definition/registry.js'
import type { Duration } from '../../job/duration/duration.js'
import { parseDuration } from '../../job/duration/duration.js'
import type { JobFilter, JobRecord } from '../../job/record.js'
import type { JobRow, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { checkPageFilter } from '../check-arguments.js'
import { checkPage, isNumberCursor, PAGE_LIMIT } from './page.js'
import type { Page, PageOptions } from './page.js'
import { queryOf } from './query.js'
import { matcherOf } from './scan.js'

/** How much of a search one call does. */
export interface FindPageOptions extends PageOptions {
  /** The search stops after this time, with a cursor. Default 200 ms. */
  readonly deadline?: Duration | number | undefined
  /** The search stops after this many jobs, with a cursor. Default 20,000. */
  readonly scan?: number | undefined
}

/** A page of a search, and how far it came. */
export interface FoundJobs extends Page<JobRecord> {
  /** Jobs that were tested. */
  readonly scanned: number
  /** When the last tested job was enqueued: jobs up to there were searched. Undefined: none was tested. */
  readonly reachedAt: Date | undefined
}

/** The time and the jobs of one call. */
export const DEADLINE_MS = 200
export const SCAN_MAX = 20_000
/** Jobs read at a time: the deadline is looked at after each. */
const AT_ONCE = 200

export interface FindPageParts {
  readonly store: Store
  readonly world: World
  readonly registry: Registry
  readonly toRecord: (row: JobRow) => JobRecord
}

/** Searches until the page is full, the jobs end, or the call has done enough. */
export async function findPage(
  { store, world, registry, toRecord }: FindPageParts,
  filter: JobFilter,
  options: FindPageOptions = {},
): Promise<FoundJobs> {
  const problems = checkPageFilter(filter)
  if (problems.length > 0) throw new InvalidOptionsError('findPage()', problems)
  checkPage('findPage()', options, isNumberCursor, { deadline: isDurationOption, scan: isCount(1) })
  const { limit = PAGE_LIMIT, scan = SCAN_MAX } = options
  const parsed = parseDuration(options.deadline ?? DEADLINE_MS)
  const end = world.clock.monotonic() + (parsed.ok ? parsed.ms : DEADLINE_MS)
  const matches = matcherOf(filter) ?? (() => true)
  const rows: JobRecord[] = []
  let [scanned, reached]: [number, JobRow | undefined] = [0, undefined]
  let cursor = options.cursor === undefined ? null : Number(options.cursor)
  const query = queryOf(filter, registry)
  for (;;) {
    const page = await store.jobs.findJobs({ ...query, limit: Math.min(AT_ONCE, scan - scanned), cursor })
    for (const row of page.rows) {
      const record = toRecord(row)
      scanned += 1
      reached = row
      if (matches(record, row)) rows.push(record)
      // A page that is full ends at this job; the next one begins after it.
      if (rows.length === limit) return found(rows, scanned, reached, row === page.rows.at(-1) ? page.cursor : row.ref)
    }
    cursor = page.cursor
    if (cursor === null || scanned >= scan || world.clock.monotonic() >= end)
      return found(rows, scanned, reached, cursor)
  }
}

function found(
  rows: readonly JobRecord[],
  scanned: number,
  reached: JobRow | undefined,
  cursor: number | null,
): FoundJobs {
  return {
    rows,
    cursor: cursor === null ? undefined : String(cursor),
    scanned,
    reachedAt: reached === undefined ? undefined : new Date(reached.createdAt),
  }
}
