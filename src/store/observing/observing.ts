import type { JobLimits } from '../../job/limits/limits.js'
import type { AuditEntry, AuditPage, AuditQuery } from './audit.js'
import type { ListPage, ListQuery, WorkerListed, WorkerListQuery } from './lists.js'
import type { FailureGroup, FailuresQuery, QueueCount, Statistics, StatisticsQuery } from './statistics.js'
import type { WhyFacts } from './why.js'

/** The observing role: what people read of the whole store, one bounded page at a time. */
export interface ObservingStore<Group, Sequence, Row, Queue, QueueRow> {
  /** The audit trail, newest first. */
  readAudit(query: AuditQuery): Promise<AuditPage>
  /** Writes the row of a command that consists of many transactions. */
  addAudit(entry: AuditEntry): Promise<null>
  /** Workers in the order of their ids. */
  listWorkers(query: WorkerListQuery): Promise<ListPage<WorkerListed>>
  /** Groups in the order of their names. */
  listGroups(query: ListQuery): Promise<ListPage<Group>>
  /** Sequences, the newest first, before this ref. */
  listSequences(query: { readonly limit: number; readonly before: number | null }): Promise<ListPage<Sequence>>
  /** Counts and durations of the attempts that ended within a window, by lane and bucket. */
  readStatistics(query: StatisticsQuery): Promise<Statistics>
  /** The jobs of each queue that has any, by state: unfinished ones and those that failed. All queues have a row for `ready`. */
  countQueues(): Promise<readonly QueueCount[]>
  /** The error groups with a failure within the window, the latest first. */
  readFailures(query: FailuresQuery): Promise<readonly FailureGroup[]>
  /** The first queues by name, with the counts of their jobs up to a bound. */
  listQueues(): Promise<readonly QueueRow[]>
  /** What decides why these jobs are not running, one entry for each id. `limits`: those of jobs, by name. */
  readWhy(ids: readonly string[], limits: ReadonlyMap<string, JobLimits>): Promise<WhyFacts<Row, Queue>>
}
