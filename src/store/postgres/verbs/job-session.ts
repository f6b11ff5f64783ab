import type { Encoded } from '../../../job/rules/outcome.js'
import type { RequestKind } from '../../../job/rules/request.js'
import type { JobRequest } from '../../requests.js'
import type { Changed, GuardedChange, Inserted, InsertOptions, JobRow, NewJob } from '../../store.js'
import { findParents } from '../../verbs/links.js'
import type { RunningJob } from '../../verbs/requests.js'
import type { JobSteps } from '../../verbs/job-steps.js'
import type { NewCall } from '../../verbs/workflows.js'
import type { EncodedEvent } from '../../workflows.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Verb, VerbRunner, WrittenJobs } from '../../verbs/verb.js'
import { arrayOf, clean, finite, Session, textOf } from '../connection/session.js'
import type { VerbParts } from '../connection/session.js'
import { changeJob } from './change.js'
import { countMoves } from './groups.js'
import { insertJobs } from './insert.js'
import { linkCall, putEvent, wakeWorkflows } from './inbox.js'
import { PostgresLinks, watchCalled } from './links.js'
import { cancelWritten, endAll, takeOut } from './moves.js'
import { encodedOf, readById, readJobs, readKeyed } from './read.js'
import { addItems, endUnfinished, resetUnfinished } from './sequences.js'

/** A transaction with the verbs that shared verbs use in it. */
export class JobSession extends Session implements JobSteps {
  insertJobs(jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]> {
    return insertJobs(this, jobs, options)
  }
  async insertApart(jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]> {
    await this.query(this.queries.savepoint)
    try {
      const inserted = await this.insertJobs(jobs, options)
      await this.query(this.queries.release)
      return inserted
    } catch (error) {
      this.groupMoves.take()
      // Where the connection is lost, the first error says so.
      await this.query(this.queries.rollbackTo).catch(() => undefined)
      await this.query(this.queries.release).catch(() => undefined)
      throw error
    }
  }
  readJobs(ids: readonly string[]): Promise<(JobRow | undefined)[]> {
    return readJobs(this, ids)
  }
  readKeyed(name: string, key: string): Promise<JobRow | undefined> {
    return readKeyed(this, name, key)
  }
  changeJob(change: GuardedChange): Promise<Changed> {
    return changeJob(this, change)
  }

  findParents(jobs: readonly NewJob[]): Promise<unknown> {
    return awaitVerb(findParents(new PostgresLinks(this), jobs))
  }

  async cancelNew(job: NewJob, reason: string): Promise<void> {
    await cancelWritten(this, job, reason)
    await countMoves(this)
  }

  async lockRunning(id: string): Promise<RunningJob | undefined> {
    const seen = await readById(this, id)
    if (seen?.state !== 'running') return undefined
    // A settlement holds the lock of the lease: after it, the job still runs or has ended.
    await this.query(this.queries.lockLease, String(seen.fence))
    const job = await readById(this, id)
    if (job?.state !== 'running' || job.fence === null || job.fence !== seen.fence) return undefined
    const [request] = await this.query<{ kind: RequestKind }>(this.queries.requestsOf, arrayOf([job.ref]))
    return { ref: job.ref, fence: job.fence, requested: request?.kind ?? null }
  }

  async putRequest({ ref, fence }: RunningJob, kind: RequestKind, { reason, keepMs }: JobRequest): Promise<void> {
    const kept = textOf(finite(keepMs))
    await this.query(this.queries.putRequest, String(ref), kind, clean(reason), kept, this.nowText)
    await this.query(this.queries.markRequested, String(fence))
  }

  addItems(list: number, from: number, payloads: readonly Encoded[]): Promise<void> {
    return addItems(this, list, from, payloads)
  }

  encoded(value: unknown, bytes: unknown): Encoded | null {
    return encodedOf(value as string | null, (bytes ?? null) as string | null)
  }

  async endNew(id: string, result: Encoded, keepMs: number): Promise<void> {
    const job = await readById(this, id)
    if (job === undefined || !(await takeOut(this, job)))
      throw new Error(`job ${id} is not there, though this transaction just wrote it`)
    await endAll(this, [{ ...job, to: 'done', keepMs, reason: null, result }])
    await countMoves(this)
  }

  resetUnfinished(id: string, reason: string): Promise<boolean> {
    return resetUnfinished(this, id, reason)
  }

  putEvent(ref: number, event: EncodedEvent): Promise<boolean> {
    return putEvent(this, ref, event)
  }

  wakeWorkflows(refs: readonly number[]): Promise<number> {
    return wakeWorkflows(this, refs)
  }

  endUnfinished(id: string, reason: string, keepMs: number): Promise<boolean> {
    return endUnfinished(this, id, reason, keepMs)
  }

  linkCall(call: NewCall): Promise<void> {
    return linkCall(this, call, (id) => watchCalled(this, id))
  }
}

/**
 * Runs shared verbs. A write is a command of a caller, which gets an error if the outcome is unknown; its lanes exist
 * before it begins.
 */
export function verbRunner({ plain, lanes, withReceipts }: VerbParts): VerbRunner {
  return {
    read: (verb) => plain((session) => awaitVerb(verb(session))),
    write: <T>(verb: (session: JobSession) => Verb<T>, written: WrittenJobs = { ids: [] }) => {
      const jobs = 'jobs' in written ? written.jobs : []
      return withReceipts.withKnownOutcome<T>({
        ids: 'ids' in written ? written.ids : jobs.map(({ id }) => id),
        write: () =>
          lanes.ensureLanes(jobs, () =>
            withReceipts.transactWithReceipt(
              (session) => awaitVerb(verb(session)),
              (result) => result,
            ),
          ),
        read: (answer) => JSON.parse(answer as string) as T,
      })
    },
  }
}
