import { parseInstant } from '../../job/duration/duration.js'
import type { JobFilter } from '../../job/record.js'
import type { Registry } from '../../job/definition/registry.js'
import type { FindQuery } from '../../store/find.js'

/** Jobs `find` reads at a time. */
const PAGE = 200

/** The store's query for a filter: names instead of job values, and lists instead of single values. */
export function queryOf(filter: JobFilter, registry: Registry): FindQuery {
  return {
    names: filter.job === undefined ? undefined : registry.namesOf(filter.job),
    queues: listOf(filter.queue),
    states: listOf(filter.state),
    label: filter.label,
    key: filter.key,
    group: filter.group,
    fingerprint: filter.fingerprint,
    parent: filter.after,
    createdAfter: instantMs(filter.createdAfter),
    createdBefore: instantMs(filter.createdBefore),
    order: filter.order ?? 'newest',
    limit: PAGE,
    cursor: null,
  }
}

/** The milliseconds of an instant that was checked before. */
function instantMs(value: unknown): number | undefined {
  const parsed = value === undefined ? undefined : parseInstant(value)
  return parsed?.ok === true ? parsed.atMs : undefined
}

function listOf<T>(value: T | readonly T[] | undefined): readonly T[] | undefined {
  if (value === undefined) return undefined
  return Array.isArray(value) ? (value as readonly T[]) : [value as T]
}
