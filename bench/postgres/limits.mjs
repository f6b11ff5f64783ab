import { limits } from '../limits.mjs'
import { measureCase, waiting } from './cases.mjs'

export function scenario(bench) {
  return limits(bench, (spec, expected) =>
    measureCase(bench, { ...spec, party: 'millrace', template: waiting(bench, 'millrace', spec.bytes, 0), expected }),
  )
}
