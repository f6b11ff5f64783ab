import { isJob } from '../../job/definition/brands.js'
import type { Enqueueable } from '../../job/enqueue.js'
import type { Registry } from '../../job/definition/registry.js'
import type { JobRow, Store } from '../../store/store.js'
import { decodeStored } from './records.js'

/** Parents read at a time. */
const PAGE = 500

/**
 * The results of the parents of one job, in the order of `after`. A parent that did not succeed, was pruned or deleted, or whose
 * result was not kept is left out.
 */
export async function parentResults(
  id: string,
  parent: Enqueueable,
  parts: { readonly store: Pick<Store, 'jobs'>; readonly registry: Registry },
): Promise<unknown[]> {
  const name = isJob(parent) ? parts.registry.lookUp(parent).job.name : parts.registry.namesOf(parent)[0]
  const [own] = await parts.store.jobs.readJobs([id])
  const after = own?.after ?? []
  const results: unknown[] = []
  for (let from = 0; from < after.length; from += PAGE) {
    const rows = await parts.store.jobs.readJobs(after.slice(from, from + PAGE))
    for (const row of rows)
      if (row !== undefined && row.name === name && hasResult(row)) results.push(resultOf(row, parts.registry))
  }
  return results
}

/** A done job without a result has a `reason` when its result was not kept, and none when the handler returned undefined. */
function hasResult(row: JobRow): boolean {
  return row.state === 'done' && (row.result !== null || row.reason === null)
}

function resultOf(row: JobRow, registry: Registry): unknown {
  if (row.result === null) return undefined
  const decoded = decodeStored(registry.codecOf(row.name), row.result)
  if (decoded.ok) return decoded.value
  throw new Error(`the result of parent ${row.name} ${row.id} does not decode: ${decoded.why}`)
}
