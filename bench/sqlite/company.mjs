import { company } from '../company.mjs'
import { emptyTemplate, measureOn } from '../measure.mjs'

/** Flows and groups in one file, FULL. */
export function scenario(bench) {
  return company(bench, async (task, expected) =>
    measureOn(bench, {
      template: await emptyTemplate(bench.place, 'millrace'),
      spec: { ...task, contestant: 'millrace', durability: 'power', concurrency: 1 },
      expected,
    }),
  )
}
