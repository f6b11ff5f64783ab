import { ViewGone } from '../parts.js'
import type { MakeView, Parts } from '../parts.js'
import { jobRow } from './job-row.js'

/** A bulk that runs, or ran in the last ten minutes. */
export async function readBulk(parts: Parts, id: string): Promise<MakeView> {
  const bulk = parts.bulks.get(id)
  if (bulk === undefined) throw new ViewGone('This bulk ended a while ago. The audit trail has its row.')
  const { examples, ...fields } = bulk
  return (show) => ({
    fields: { ...fields, examples: examples.map((record) => jobRow(parts, record, show)) },
    rows: [],
  })
}
