import { limits } from '../limits.mjs'
import { emptyTemplate, measureOn } from '../measure.mjs'

export function scenario(bench) {
  return limits(bench, async (spec, expected) => {
    const template = await emptyTemplate(bench.place, 'millrace')
    return measureOn(bench, { template, spec: { ...spec, contestant: 'millrace', durability: 'power' }, expected })
  })
}
