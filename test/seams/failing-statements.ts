import { cutClient } from '../../src/store/postgres/connection/client.js'
import type { Intercept } from '../campaign/postgres-engine.js'
import type { SeamCalls } from './seam-calls.js'

/** Statements of PostgreSQL, one of which fails: its connection breaks before it is sent or before it is answered. */
export function failingStatements(calls: SeamCalls): Intercept {
  return async ({ client, name }, process, run) => {
    const fault = calls.enter(`statement:${name}`, process)
    if (fault === 'deadlock') throw Object.assign(new Error('deadlock detected'), { code: '40P01', severity: 'ERROR' })
    if (fault === 'fails before') cutClient(client)
    const answer = await run()
    if (fault === 'fails after') {
      cutClient(client)
      throw new Error('Connection terminated unexpectedly')
    }
    if (fault === 'late') await calls.answerLate(process)
    return answer
  }
}
