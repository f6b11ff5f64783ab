import { clockStepQueries } from './find-by-time.js'
import { sessionQueries } from './session.js'
import { insertQueries } from './insert.js'
import { conflictQueries } from './conflicts.js'
import { readQueries } from './read.js'
import { findQueries } from './find.js'
import { moveQueries } from './moves.js'
import { linkQueries } from './links.js'
import { requestQueries } from './requests.js'
import { pauseQueries } from './pauses.js'
import { upkeepQueries } from './upkeep.js'
import { pruneQueries } from './prune.js'
import { laneQueries } from './lanes.js'
import { workerQueries } from './workers.js'
import { claimQueries } from './claim.js'
import { settleQueries } from './settle.js'
import { scheduleQueries } from './schedules.js'
import { groupQueries } from './groups.js'
import { auditQueries } from './observing/audit.js'
import { limitQueries } from './limits/limits.js'
import { outageQueries } from './limits/outages.js'
import { listQueries } from './observing/lists.js'
import { queueListQueries } from './observing/queue-list.js'
import { changeLogQueries } from './observing/change-log.js'
import { sequenceQueries } from './long-work/sequences.js'
import { workflowQueries } from './long-work/workflows.js'
import { statisticsQueries } from './observing/statistics.js'
import { whyQueries } from './observing/why.js'

/**
 * Every statement of the SQLite store, named like the method that runs it. The store takes them as an argument, so that
 * a test can plant a wrong one and check that it is found.
 *
 * Where the two stores differ: SQLite puts the writes of one turn of the event loop into one transaction, so its verbs
 * are several small statements; lists are passed as one JSON array (one parameter, any length).
 */
export const queries = {
  ...clockStepQueries,
  ...sessionQueries,
  ...insertQueries,
  ...conflictQueries,
  ...readQueries,
  ...findQueries,
  ...moveQueries,
  ...linkQueries,
  ...requestQueries,
  ...pauseQueries,
  ...upkeepQueries,
  ...pruneQueries,
  ...laneQueries,
  ...workerQueries,
  ...claimQueries,
  ...settleQueries,
  ...scheduleQueries,
  ...groupQueries,
  ...auditQueries,
  ...limitQueries,
  ...outageQueries,
  ...listQueries,
  ...statisticsQueries,
  ...queueListQueries,
  ...changeLogQueries,
  ...whyQueries,
  ...sequenceQueries,
  ...workflowQueries,
}

export type Queries = typeof queries
