import { before } from '../before.mjs'
import { measureCase, waiting } from './cases.mjs'

export function scenario(bench) {
  return before(bench, (build, spec, expected) => {
    const stored = spec.task === 'drain' ? spec.jobs : 0
    const template = waiting(build, 'millrace', spec.bytes, stored)
    return measureCase(build, { ...spec, party: 'millrace', template, expected })
  })
}
