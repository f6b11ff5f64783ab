import type { Encoded } from '../../../job/rules/outcome.js'
import type { RequestKind } from '../../../job/rules/request.js'
import type { JobRequest } from '../../requests.js'
import type { Changed, GuardedChange, Inserted, InsertOptions, JobRow, NewJob } from '../../store.js'
import type { JobSteps } from '../../verbs/job-steps.js'
import { findParents } from '../../verbs/links.js'
import type { NewCall } from '../../verbs/workflows.js'
import type { EncodedEvent } from '../../workflows.js'
import type { RunningJob } from '../../verbs/requests.js'
import { runVerb } from '../../verbs/verb.js'
import type { VerbRunner } from '../../verbs/verb.js'
import type { CommitQueue } from '../connection/commit-queue.js'
import { toEncoded } from '../connection/driver.js'
import { SessionAt } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { changeJob } from './change.js'
import { apart, countMoves } from './groups.js'
import { endUnclaimed, endWaiting } from './moves.js'
import { insertJobs } from './insert.js'
import { linkCall, SqliteLinks } from './links.js'
import { putEvent, wakeWorkflows } from './inbox.js'
import { readForChange, readJobs, readKeyed } from './read.js'
import { addItems, endUnfinished, resetUnfinished } from './sequences.js'

/** A transaction with the steps on jobs that shared verbs take. */
export class JobSession extends SessionAt implements JobSteps {
  insertJobs(jobs: readonly NewJob[], options: InsertOptions): Inserted[] {
    return insertJobs(this.session, jobs, options, this.givenNow)
  }

  insertApart(jobs: readonly NewJob[], options: InsertOptions): Inserted[] {
    const done = apart(this.session, () => this.insertJobs(jobs, options))
    if ('error' in done) throw done.error
    return done.value
  }

  readJobs(ids: readonly string[]): (JobRow | undefined)[] {
    return readJobs(this.session, ids)
  }

  readKeyed(name: string, key: string): JobRow | undefined {
    return readKeyed(this.session, name, key)
  }

  changeJob(change: GuardedChange): Changed {
    return changeJob(this.session, change, this.givenNow)
  }

  findParents(jobs: readonly NewJob[]): unknown {
    return runVerb(findParents(new SqliteLinks(this.session, this.givenNow), jobs))
  }

  cancelNew({ id, keepCancelledMs }: NewJob, reason: string): void {
    endWaiting(this.session, id, reason, keepCancelledMs ?? Infinity, this.givenNow)
    countMoves(this.session)
  }

  lockRunning(id: string): RunningJob | undefined {
    return this.session.statement(this.session.queries.requestTarget).get(id) as RunningJob | undefined
  }

  putRequest({ ref }: RunningJob, kind: RequestKind, { reason, keepMs }: JobRequest): void {
    const kept = Number.isFinite(keepMs) ? keepMs : null
    this.session.statement(this.session.queries.putRequest).run(ref, kind, reason, kept, this.givenNow)
  }

  addItems(list: number, from: number, payloads: readonly Encoded[]): void {
    addItems(this.session, list, from, payloads)
  }

  encoded(value: unknown): Encoded | null {
    return value === null || value === undefined ? null : toEncoded(value as Encoded)
  }

  endNew(id: string, result: Encoded, keepMs: number): void {
    const job = readForChange(this.session, id)
    if (job === undefined) throw new Error(`job ${id} is missing, although this transaction has just written it`)
    endUnclaimed(this.session, job, { to: 'done', keepMs, reason: null, result }, this.givenNow)
    countMoves(this.session)
  }

  resetUnfinished(id: string, reason: string): boolean {
    return resetUnfinished(this.session, id, reason, this.givenNow)
  }

  putEvent(ref: number, event: EncodedEvent): boolean {
    return putEvent(this.session, ref, event, this.givenNow)
  }

  wakeWorkflows(refs: readonly number[]): void {
    wakeWorkflows(this.session, refs, this.givenNow)
    countMoves(this.session)
  }

  endUnfinished(id: string, reason: string, keepMs: number): boolean {
    return endUnfinished(this.session, id, { to: 'cancelled', reason, keepMs }, this.givenNow)
  }

  linkCall(call: NewCall): void {
    linkCall(this.session, call)
  }
}

/** Runs shared verbs through the commit queue. */
export function verbRunner(commits: CommitQueue, session: Session): VerbRunner {
  return {
    read: (verb) => commits.read((now) => runVerb(verb(new JobSession(session, now)))),
    write: (verb) => commits.write((now) => runVerb(verb(new JobSession(session, now)))),
  }
}
