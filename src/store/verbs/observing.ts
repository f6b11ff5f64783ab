import type { Store } from '../store.js'
import { readAudit, writeAudit } from './audit.js'
import { listGroups, listSequences, listWorkers } from './lists.js'
import { countQueues, readFailures, readStatistics } from './statistics.js'
import { listQueues } from './queue-list.js'
import { readWhy } from './why.js'
import type { VerbRunner } from './verb.js'

/** The observing role on the store of these verbs. */
export function observingVerbs(verbs: VerbRunner): Store['observing'] {
  return {
    readAudit: (query) => verbs.read((session) => readAudit(session, query)),
    addAudit: (entry) =>
      verbs.write(function* (session) {
        yield* writeAudit(session, [entry])
        return null
      }),
    listWorkers: (query) => verbs.read((session) => listWorkers(session, query)),
    listGroups: (query) => verbs.read((session) => listGroups(session, query)),
    readStatistics: (query) => verbs.read((session) => readStatistics(session, query)),
    countQueues: () => verbs.read(countQueues),
    readFailures: (query) => verbs.read((session) => readFailures(session, query)),
    listQueues: () => verbs.read(listQueues),
    readWhy: (ids, limits) => verbs.read((session) => readWhy(session, ids, limits)),
    listSequences: (query) => verbs.read((session) => listSequences(session, query)),
  }
}
