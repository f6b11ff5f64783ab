import { show } from '../../codec/show.js'
import type { JobRecord } from '../../job/record.js'
import type { FindQuery } from '../../store/find.js'
import type { JobRow, Store } from '../../store/store.js'
import { canBeId } from '../check-arguments.js'
import { checkPage, isNumberCursor, PAGE_LIMIT } from './page.js'
import type { Page, PageOptions } from './page.js'
import { queryOf } from './query.js'
import type { Registry } from '../../job/definition/registry.js'

export interface RelativesParts {
  readonly store: Store
  readonly registry: Registry
  readonly toRecord: (row: JobRow) => JobRecord
}

const NONE: Page<JobRecord> = { rows: [], cursor: undefined }

/** One page of the jobs that a job was enqueued after, in the order given; those that were deleted are left out. */
export async function listParents(
  { store, toRecord }: RelativesParts,
  id: string,
  options: PageOptions = {},
): Promise<Page<JobRecord>> {
  checkPage(`parents(${show(id)})`, options, isNumberCursor)
  if (!canBeId(id)) return NONE
  const [row] = await store.jobs.readJobs([id])
  const { limit = PAGE_LIMIT } = options
  const from = options.cursor === undefined ? 0 : Number(options.cursor)
  const after = row?.after ?? []
  const rows = await store.jobs.readJobs(after.slice(from, from + limit))
  return {
    rows: rows.flatMap((parent) => (parent === undefined ? [] : [toRecord(parent)])),
    cursor: from + limit < after.length ? String(from + limit) : undefined,
  }
}

/** One page of the jobs that were enqueued after a job, the oldest first. */
export async function listChildren(
  { store, registry, toRecord }: RelativesParts,
  id: string,
  options: PageOptions = {},
): Promise<Page<JobRecord>> {
  checkPage(`children(${show(id)})`, options, isNumberCursor)
  if (!canBeId(id)) return NONE
  const { limit = PAGE_LIMIT } = options
  const cursor = options.cursor === undefined ? null : Number(options.cursor)
  const rows: JobRow[] = []
  let query: FindQuery = { ...queryOf({ after: id, order: 'oldest' }, registry), cursor }
  for (;;) {
    const page = await store.jobs.findJobs({ ...query, limit: limit - rows.length })
    rows.push(...page.rows)
    query = { ...query, cursor: page.cursor }
    if (page.cursor === null || rows.length === limit)
      return { rows: rows.map(toRecord), cursor: page.cursor === null ? undefined : String(page.cursor) }
  }
}
