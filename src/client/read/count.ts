import { InvalidOptionsError } from '../../errors.js'
import type { CountFilter, JobCount } from '../../job/record.js'
import type { Registry } from '../../job/definition/registry.js'
import { isFinal } from '../../job/rules/states.js'
import type { FindQuery } from '../../store/find.js'
import type { Store } from '../../store/store.js'
import { checkCountFilter } from '../check-arguments.js'
import { queryOf } from './query.js'

/** Counting stops at this number: "10,000 or more" is precise enough to read. */
export const COUNT_MAX = 10_000
/** The most pages read, each bounded by the store: a filter that few jobs match must not scan all of them. */
const PAGES_MAX = 100

/** How many jobs match: from the counters of a group where the filter allows it, else page by page up to COUNT_MAX. */
export async function countJobs(
  filter: CountFilter,
  registry: Registry,
  store: Store,
  pagesMax = PAGES_MAX,
): Promise<JobCount> {
  const problems = checkCountFilter(filter)
  if (problems.length > 0) throw new InvalidOptionsError('count()', problems)
  const query = queryOf(filter, registry)
  if (hasGroupCounter(query)) return { count: await countMembers(query, store), exact: true }
  return countPages(query, store, pagesMax)
}

/** A group has counters by state and queue. They keep pruned members in their final state, so they serve unfinished states only. */
function hasGroupCounter(query: FindQuery): query is FindQuery & { readonly group: string } {
  const { group, states, names, label, key, fingerprint, parent, createdAfter, createdBefore } = query
  const uncounted = [names, label, key, fingerprint, parent, createdAfter, createdBefore]
  return group !== undefined && states?.some(isFinal) === false && uncounted.every((each) => each === undefined)
}

async function countMembers(query: FindQuery & { readonly group: string }, store: Store): Promise<number> {
  const { counts } = await store.groups.readGroup(query.group)
  return counts
    .filter(({ queue, state }) => query.states?.includes(state) === true && query.queues?.includes(queue) !== false)
    .reduce((sum, { members }) => sum + members, 0)
}

/** Counts page by page, up to COUNT_MAX. */
export async function countPages(first: FindQuery, store: Store, pagesMax = PAGES_MAX): Promise<JobCount> {
  let count = 0
  let query = first
  for (let page = 0; page < pagesMax; page += 1) {
    // One more than the bound shows whether more jobs match.
    const counted = await store.jobs.countJobs({ ...query, limit: COUNT_MAX + 1 - count })
    count += counted.count
    if (count > COUNT_MAX) return { count: COUNT_MAX, exact: false }
    if (counted.cursor === null) return { count, exact: true }
    query = { ...query, cursor: counted.cursor }
  }
  return { count, exact: false }
}
