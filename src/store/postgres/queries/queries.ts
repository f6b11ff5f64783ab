import { censusQueries } from './census.js'
import { claimQueries } from './claim.js'
import { conflictQueries } from './conflicts.js'
import { findQueries } from './find.js'
import { timeQueries } from './find-by-time.js'
import { groupQueries } from './groups.js'
import { insertQueries } from './insert.js'
import { laneQueries } from './lanes.js'
import { linkQueries } from './links.js'
import { moveQueries } from './moves.js'
import { pruneQueries } from './prune.js'
import { readQueries } from './read.js'
import { receiptQueries } from './receipts.js'
import { pauseQueries, requestQueries } from './requests.js'
import { scheduleQueries } from './schedules.js'
import { auditQueries } from './observing/audit.js'
import { healthQueries } from './observing/health.js'
import { listQueries } from './observing/lists.js'
import { queueListQueries } from './observing/queue-list.js'
import { changeLogQueries } from './observing/change-log.js'
import { sequenceQueries } from './long-work/sequences.js'
import { statisticsQueries } from './observing/statistics.js'
import { whyQueries } from './observing/why.js'
import { limitQueries } from './limits/limits.js'
import { outageQueries } from './limits/outages.js'
import { sessionQueries } from './session.js'
import { settleQueries } from './settle.js'
import { upkeepQueries } from './upkeep.js'
import { workerQueries } from './workers.js'
import { workflowQueries } from './long-work/workflows.js'
import { CHANNEL, s, SCHEMA_TEXT } from './sql-fragments.js'

/**
 * Every statement of the PostgreSQL store, named like the method that runs it. The store takes them as an argument, so
 * that a test can plant a wrong one and check that it is found.
 *
 * Where the two stores differ: here a verb is one statement wherever possible, since each costs a round trip. A
 * statement that may run on a caller's handle takes only texts, and JSON for anything else: every library can bind a
 * text. `now` is the server's clock; only a test passes one.
 */
const statements = {
  ...censusQueries,
  ...claimQueries,
  ...conflictQueries,
  ...findQueries,
  ...timeQueries,
  ...groupQueries,
  ...insertQueries,
  ...laneQueries,
  ...limitQueries,
  ...linkQueries,
  ...moveQueries,
  ...outageQueries,
  ...pauseQueries,
  ...pruneQueries,
  ...readQueries,
  ...receiptQueries,
  ...requestQueries,
  ...scheduleQueries,
  ...auditQueries,
  ...healthQueries,
  ...listQueries,
  ...statisticsQueries,
  ...queueListQueries,
  ...changeLogQueries,
  ...whyQueries,
  ...sequenceQueries,
  ...sessionQueries,
  ...settleQueries,
  ...upkeepQueries,
  ...workerQueries,
  ...workflowQueries,
}

export type Queries = typeof statements

/** The statements for a schema, which is a quoted identifier, and a channel, which needs no escaping. */
export function makeQueries(schema: string, channel: string): Queries {
  const names = new Map([
    [s, schema],
    [SCHEMA_TEXT, schema.replaceAll(`'`, `''`)],
    [CHANNEL, channel],
  ])
  // In one pass: a schema's name may contain one of the placeholders.
  const fill = (text: string): string =>
    text.replaceAll(PLACEHOLDERS, (placeholder) => names.get(placeholder) as string)
  return Object.fromEntries(Object.entries(statements).map(([name, made]) => [name, filled(made, fill)])) as Queries
}

const PLACEHOLDERS = new RegExp([s, SCHEMA_TEXT, CHANNEL].join('|'), 'g')

type Made = string | ((...given: never[]) => string)

function filled(made: Made, fill: (text: string) => string): Made {
  return typeof made === 'string' ? fill(made) : (...given) => fill(made(...given))
}
