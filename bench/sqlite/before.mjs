import { before } from '../before.mjs'
import { emptyTemplate, filledTemplate, measureOn } from '../measure.mjs'

export function scenario(bench) {
  return before(bench, async (build, spec, expected) => {
    const { place, options } = build
    const template =
      spec.task === 'drain'
        ? filledTemplate(place, 'millrace', spec.bytes, spec.jobs)
        : emptyTemplate(place, 'millrace')
    const how = { contestant: 'millrace', durability: 'power', concurrency: options.concurrency }
    return measureOn(build, { template: await template, spec: { ...spec, ...how }, expected })
  })
}
