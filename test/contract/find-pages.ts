import type { FindQuery } from '../../src/store/find.js'
import type { JobRow } from '../../src/store/store.js'
import type { ContractFixture } from './fixture.js'

export type Filter = Omit<FindQuery, 'cursor' | 'limit'>

/** All jobs that a filter finds, page by page. */
export async function pagesOf(
  b: ContractFixture,
  filter: Filter,
  limit: number,
  between?: () => Promise<void>,
): Promise<JobRow[]> {
  const rows: JobRow[] = []
  let cursor: number | null = null
  do {
    const page: Awaited<ReturnType<ContractFixture['store']['jobs']['findJobs']>> = await b.store.jobs.findJobs({
      ...filter,
      limit,
      cursor,
    })
    rows.push(...page.rows)
    cursor = page.cursor
    await between?.()
  } while (cursor !== null)
  return rows
}

/** Whether a job matches the filter. */
export function matches(row: JobRow, filter: Filter): boolean {
  const labels = row.options === null ? [] : ((JSON.parse(row.options) as { labels?: string[] }).labels ?? [])
  return (
    filter.names?.includes(row.name) !== false &&
    filter.queues?.includes(row.queue) !== false &&
    filter.states?.includes(row.state) !== false &&
    (filter.label === undefined || labels.includes(filter.label)) &&
    (filter.key === undefined || row.key === filter.key) &&
    (filter.group === undefined || row.group === filter.group) &&
    (filter.createdAfter === undefined || row.createdAt > filter.createdAfter) &&
    (filter.createdBefore === undefined || row.createdAt < filter.createdBefore)
  )
}
