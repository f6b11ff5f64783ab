import { bounded } from '../bounded.mjs'
import { emptyTemplate } from '../measure.mjs'

export function scenario(bench) {
  return bounded(bench, { contestant: 'millrace', empty: () => emptyTemplate(bench.place, 'millrace') })
}
