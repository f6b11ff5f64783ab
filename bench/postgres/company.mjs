import { company } from '../company.mjs'
import { measureCase, waiting } from './cases.mjs'

/** Flows and groups on a server. */
export function scenario(bench) {
  return company(bench, (task, expected) =>
    measureCase(bench, { ...task, party: 'millrace', template: waiting(bench, 'millrace', task.bytes, 0), expected }),
  )
}
