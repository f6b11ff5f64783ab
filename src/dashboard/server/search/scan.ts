import type { JobRecord } from '../../../job/record.js'
import type { Sort } from '../../protocol/topics.js'
import { compileSearch } from './compile-search.js'
import type { Compiled, SearchTimes, Tested } from './compile-search.js'
import { Refusal } from '../parts.js'
import type { Parts } from '../parts.js'
import type { Show } from '../show/redact.js'
import { asPage, deploysOf, queuesOf, workersOf } from '../views/reads.js'

/** One part of a search: as much as this time and these jobs allow. */
const SCAN_MS = 200
const SCAN_JOBS = 20_000
const AT_ONCE = 200
/** Searches at once that test jobs one by one; others wait for their turn. */
const SCANS_MAX = 2
/** Searches that wait. */
const WAITING_MAX = 100
const SLOW_AFTER_MS = 300_000

export interface Found {
  readonly records: readonly JobRecord[]
  readonly cursor: string | null
  readonly scanned: number
  readonly reachedAt: number | null
}

export interface Search {
  readonly query: string
  readonly sort: Sort
  readonly workflows: boolean
  readonly cursor: string | undefined
  readonly limit: number
  readonly show: Show
}

/** The orders that the engine can read. */
export const SORTS_NOW: readonly Sort[] = ['newest', 'oldest']

/** Searches jobs, within a time. */
export class Scanner {
  #running = 0
  readonly #waiting: (() => void)[] = []

  async search(parts: Parts, { query, sort, workflows, cursor, limit, show }: Search): Promise<Found> {
    if (!SORTS_NOW.includes(sort))
      throw new Refusal('not-in-this-version', `A list in the order ${sort} is not in this version.`, {
        hint: `There are: ${SORTS_NOW.join(', ')}.`,
      })
    const compiled = compileSearch(parts, query, await timesOf(parts))
    const filter = { ...compiled.filter, order: sort === 'oldest' ? ('oldest' as const) : ('newest' as const) }
    if (compiled.id !== undefined && cursor === undefined) {
      const record = await parts.mill.get(compiled.id)
      if (record !== undefined) return { records: [record], cursor: null, scanned: 0, reachedAt: null }
    }
    const named = workflows ? onlyWorkflows(parts, filter) : filter
    if (named === undefined) return { records: [], cursor: null, scanned: 0, reachedAt: null }
    if (compiled.test === undefined) {
      const page = await asPage(() => parts.mill.findPage(named, { limit, cursor, deadline: SCAN_MS }))
      return { records: page.rows, cursor: page.cursor ?? null, scanned: 0, reachedAt: null }
    }
    await this.#turn()
    try {
      return await scan(parts, { ...compiled, filter: named }, { cursor, limit, show })
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }

  async #turn(): Promise<void> {
    if (this.#running >= SCANS_MAX) {
      if (this.#waiting.length >= WAITING_MAX)
        throw new Refusal('too-many', 'Too many searches wait.', { retryMs: 2_000 })
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    this.#running += 1
  }
}

function onlyWorkflows(parts: Parts, filter: Compiled['filter']): Compiled['filter'] | undefined {
  const names = parts.mill
    .jobs()
    .map(({ name }) => name)
    .filter((name) => parts.isWorkflow(name))
  const asked =
    filter.job === undefined ? names : (filter.job as readonly string[]).filter((name) => names.includes(name))
  return asked.length === 0 ? undefined : { ...filter, job: asked }
}

/** Tests jobs page by page until the answer is full, there are no more, or it has done enough. */
async function scan(
  parts: Parts,
  { filter, test }: Compiled,
  { cursor: first, limit, show }: Pick<Search, 'cursor' | 'limit' | 'show'>,
): Promise<Found> {
  const { clock } = parts.world
  const end = clock.monotonic() + SCAN_MS
  const records: JobRecord[] = []
  let [scanned, cursor, reachedAt]: [number, string | undefined, number | null] = [0, first, null]
  for (;;) {
    const left = Math.max(1, Math.ceil(end - clock.monotonic()))
    const page = await asPage(() =>
      parts.mill.findPage(filter, { limit: Math.min(AT_ONCE, SCAN_JOBS - scanned), cursor, deadline: left }),
    )
    for (const [i, record] of page.rows.entries()) {
      scanned += 1
      reachedAt = record.createdAt.getTime()
      if (test?.(testedOf(parts, record, show)) === true) records.push(record)
      if (records.length < limit) continue
      // The page goes on after this job: the next part begins by reading the rest of it again.
      if (i < page.rows.length - 1)
        return { records, cursor: await cursorAfter(parts, filter, cursor, i + 1), scanned, reachedAt }
      return { records, cursor: page.cursor ?? null, scanned, reachedAt }
    }
    cursor = page.cursor
    if (cursor === undefined || scanned >= SCAN_JOBS || clock.monotonic() >= end)
      return { records, cursor: cursor ?? null, scanned, reachedAt }
  }
}

/** The place after a number of jobs of a page: a page of that many ends there. */
async function cursorAfter(
  { mill }: Parts,
  filter: Compiled['filter'],
  cursor: string | undefined,
  jobs: number,
): Promise<string | null> {
  const page = await mill.findPage(filter, { limit: jobs, cursor, scan: jobs })
  return page.cursor ?? null
}

function testedOf({ hasRules }: Parts, record: JobRecord, show: Show): Tested {
  if (!hasRules) return { record, shown: record }
  const { payload, result, meta, captured, title } = record
  return {
    record,
    shown: {
      payload: show.plain(payload, 'payload'),
      result: show.plain(result, 'result'),
      meta: show.plain(meta, 'meta'),
      captured: show.plain(captured, 'captured') as JobRecord['captured'],
      title: title === undefined ? undefined : show.text(title),
    },
  }
}

export async function timesOf(parts: Parts): Promise<SearchTimes> {
  const [{ rows }, deploys, queues] = await Promise.all([workersOf(parts), deploysOf(parts, 0), queuesOf(parts)])
  return {
    now: parts.world.clock.now(),
    deployedAt: deploys.at(-1)?.at,
    slowAfterMs: SLOW_AFTER_MS,
    workers: new Map(rows.map(({ id, host, version }) => [id, { host, version }])),
    probing: new Set(queues.flatMap(({ name, outages }) => outages.map(({ job }) => `${name}\n${job}`))),
  }
}

/** Why terms could not match for this user. */
export function hiddenNotes(parts: Parts, query: string, show: Show): readonly string[] {
  const notes: string[] = []
  if (/\b(payload|result|meta|captured)\b/.test(query) && parts.hasRules)
    notes.push(`Values that are hidden from ${show.role === 'viewer' ? 'viewers' : `an ${show.role}`} do not match.`)
  if (/\b(payload|result|meta|log)\b/.test(query) && parts.mill.jobs().some(({ name }) => parts.isSealed(name)))
    notes.push('Values of encrypted jobs do not match.')
  return notes
}
