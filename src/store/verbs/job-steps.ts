import type { Changed, GuardedChange, Inserted, InsertOptions, JobRow, NewJob } from '../store.js'
import type { RequestSteps } from './requests.js'
import type { SequenceSteps } from './sequences.js'
import type { Answer } from './verb.js'
import type { WorkflowSteps } from './workflows.js'

/** The steps on jobs that shared verbs take within their own transaction. */
export interface JobSteps extends RequestSteps, SequenceSteps, WorkflowSteps {
  insertJobs(jobs: readonly NewJob[], options: InsertOptions): Answer<readonly Inserted[]>
  /** The same, but where it throws, the transaction goes on without them. */
  insertApart(jobs: readonly NewJob[], options: InsertOptions): Answer<readonly Inserted[]>
  readJobs(ids: readonly string[]): Answer<readonly (JobRow | undefined)[]>
  readKeyed(name: string, key: string): Answer<JobRow | undefined>
  changeJob(change: GuardedChange): Answer<Changed>
  /** Throws ParentMissingError when a parent of these jobs is missing. */
  findParents(jobs: readonly NewJob[]): Answer<unknown>
  /** Cancels a job that this transaction has just written. */
  cancelNew(job: NewJob, reason: string): Answer<unknown>
}
