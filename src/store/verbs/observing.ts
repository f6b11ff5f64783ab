import type { ObservingStore } from '../observing/observing.js'
import { readAudit, writeAudit } from './audit.js'
import type { VerbRunner } from './verb.js'

/** The observing role on the store of these verbs. */
export function observingVerbs(verbs: VerbRunner): ObservingStore {
  return {
    readAudit: (query) => verbs.read((session) => readAudit(session, query)),
    addAudit: (entry) =>
      verbs.write(function* (session) {
        yield* writeAudit(session, [entry])
        return null
      }),
  }
}
