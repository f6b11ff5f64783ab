import type { Encoded } from '../job/rules/outcome.js'
import type { State } from '../job/rules/states.js'
import type { OnDuplicate, UniqueSlotRequest } from '../job/rules/unique.js'
import type { Cancel } from '../world/timers.js'
import type { JobTurn } from '../job/limits/turns.js'
import type { AttemptHealth, Probe } from '../job/limits/outage.js'
import type { AttemptStatistics } from '../job/statistics/attempt-statistics.js'
import type { LinkPolicy } from '../job/rules/links.js'
import type { Census } from './census.js'
import type { CountedPage, FindQuery, FoundPage } from './find.js'
import type { GroupListed, GroupStore, FailedGroups, FollowUp } from './groups.js'
import type { StoreInfo } from './info.js'
import type { AddedParents, CancelledByParent, Parent } from './links.js'
import type { AuditNote } from '../job/command-options.js'
import type { WorkerAbout } from './observing/lists.js'
import type { ChangeLogStore } from './observing/change-log.js'
import type { ObservingStore } from './observing/observing.js'
import type { LimitStore } from './limits.js'
import type { PruneStore } from './prune.js'
import type { Confirmation, HeldJob, QueueFacts, QueueListed, QueueStore } from './queues.js'
import type { ScheduleStore } from './schedules.js'
import type {
  Appended,
  AppendedStep,
  Boundary,
  ClaimedSequence,
  NewStep,
  SequenceListed,
  SequenceStore,
} from './sequences.js'
import type { TransactionStore } from './transaction-store.js'
import type { WorkflowEnd, WorkflowLeases, WorkflowStore } from './workflows.js'
import type { JobRequest, PendingRequest, SettleResult } from './requests.js'
import type { Heartbeat, HeartbeatRequest, Rescue, WorkerBeat, WorkerInfo, LeasedJob } from './workers.js'

/**
 * The store contract: whole job verbs, never fragments of SQL. One verb is one statement or one transaction, all or
 * nothing. Verbs are grouped in roles by their users: `jobs` (client, upkeep), `leases` (worker, rescue), `queues`
 * (pauses), `groups` (counts), `changes` (hints), `transactions` (the caller's own), `schedules`, `sequences`,
 * `workflows`, `observing` (what people read), `changeLog` (every change). Every store passes `test/contract/store-contract.ts`.
 *
 * Two rules hold for every verb. Time is the store's own clock, so callers pass delays and no instants of their own.
 * And a write made under a claim carries the claim's fence, and writes nothing when another claim holds the job.
 */
export interface Store {
  readonly jobs: JobStore
  readonly leases: LeaseStore
  readonly queues: QueueStore
  readonly groups: GroupStore
  readonly changes: ChangeStore
  readonly transactions: TransactionStore
  readonly schedules: ScheduleStore
  readonly sequences: SequenceStore
  readonly workflows: WorkflowStore
  readonly observing: ObservingStore<GroupListed, SequenceListed, JobRow, QueueFacts, QueueListed>
  readonly changeLog: ChangeLogStore
  readonly info: StoreInfo
  /** Everything in the store, for checkers. It reads whole tables: never called by a mill. */
  readCensus(): Promise<Census>
  /** Finishes the calls in progress, then closes the connections. Acknowledged writes are kept. */
  close(): Promise<void>
}

export interface JobStore extends PruneStore {
  /**
   * Inserts all of the jobs or none. If an unfinished job holds the key, `onDuplicate` decides; if the unique slot is
   * taken, the job's `unique` decides; 'reject' throws. A conflict with a job of the same bulk is treated the same way.
   */
  insertJobs(jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]>
  readJobs(ids: readonly string[]): Promise<readonly (JobRow | undefined)[]>
  /** The unfinished job that holds this key, else the newest that had it. */
  readKeyed(name: string, key: string): Promise<JobRow | undefined>
  /** One page. An empty page with a cursor means: no match on this page; read the next page with the cursor. */
  findJobs(query: FindQuery): Promise<FoundPage>
  /** The number of matches on the same page, without reading payloads. */
  countJobs(query: FindQuery): Promise<CountedPage>
  /**
   * Applies a command to a job that is not running, if it is still in the state that the decision was made for. A
   * retried job takes its key and its unique slot again, and is refused when another unfinished job holds one of them.
   */
  changeJob(change: GuardedChange): Promise<Changed>
  /**
   * Requests a change of a running job; 'refused' when the request does not apply (see `decideRequest`), 'stale' when
   * the job is not running.
   */
  requestChange(ask: JobRequest): Promise<'noted' | 'refused' | 'stale'>
  /**
   * Makes due and unblocked jobs ready, enqueues the `whenDone` job of each complete group, and returns expired jobs.
   * Each step handles a bounded number. Retries of a lane that is closed by an outage are held, but for one `probe`.
   */
  promoteJobs(limit: number, probe?: Probe): Promise<Promoted>
}

export interface LeaseStore extends LimitStore, WorkflowLeases {
  addWorker(worker: WorkerInfo): Promise<void>
  /** Replaces what a worker says about itself. */
  reportWorker(worker: string, about: WorkerAbout): Promise<void>
  /** Increments the worker's beat; false when the worker was declared dead. */
  beat(worker: string): Promise<boolean>
  /** Beats from a separate thread until stopped; undefined where that is impossible and the worker must call `beat`. */
  startHeartbeat(...request: HeartbeatRequest): Promise<Heartbeat | undefined>
  dropWorker(worker: string): Promise<void>
  /** Every worker with its beat, and workers without a row that still hold leases (beat null). */
  readWorkers(): Promise<readonly WorkerBeat[]>
  /** Claims ready jobs under one new fence. */
  claimJobs(request: ClaimRequest): Promise<Claimed>
  /** Which of these held jobs may start: the claim still holds them, and their queue is not paused. */
  confirmJobs(held: readonly HeldJob[]): Promise<Confirmation>
  /** The pending requests of all running jobs, of every worker. */
  readRequests(): Promise<readonly PendingRequest[]>
  /**
   * Records under the fence that held jobs have started, and the progress of running jobs; returns the refs whose claim
   * is lost.
   */
  reportJobs(reports: readonly Report[]): Promise<readonly number[]>
  /** Writes the settlements of claimed jobs, altered by their pending requests, and closes leases. */
  settleJobs(settled: readonly SettledJob[], closeLeases: readonly number[]): Promise<SettleResult>
  /** Appends a row to the log of a claimed job, whose claim goes on, and returns what may happen next. */
  appendStep(appended: AppendedStep): Promise<Appended>
  /** Whether the claim of a sequence may begin another item; reads only. */
  readBoundary(claim: HeldJob): Promise<Boundary>
  /** Voids claims whose reply was lost: they can take no job afterwards. Returns the jobs they had already taken. */
  voidClaims(worker: string, fences: readonly number[]): Promise<readonly LeasedJob[]>
  /** The suspects of this claim outlived their quarantine: a later crash is charged to none of them. */
  endQuarantine(worker: string, fence: number): Promise<void>
  /** The jobs that a worker's leases hold. */
  readLeases(worker: string): Promise<readonly LeasedJob[]>
  /**
   * Settles the jobs of a dead worker and deletes it in one guarded write. Null, and nothing is written, when its beat
   * moved or `withinMs` passed.
   */
  rescueJobs(...rescue: Rescue): Promise<SettleResult | null>
}

export interface ChangeStore {
  /**
   * Called after commits of this process, and of other processes when they are noticed. A hint can be lost, so
   * listeners also poll.
   */
  onHint(callback: (hint: Hint) => void): Cancel
}

export interface Hint {
  /** A job became ready. */
  readonly ready: boolean
  /**
   * A job was scheduled, due in this many ms. For a commit of another process it is 0: the listener has to read the due
   * time.
   */
  readonly dueInMs: number | null
  /** A job ended. */
  readonly settled: boolean
  /** A caller requested a cancel or pause of a claimed job, or took a held job. */
  readonly requested: boolean
}

/** A time on the store's clock: a delay from its now, or a fixed instant. */
export type Due = { readonly inMs: number } | { readonly at: number }

export interface NewJob {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly key: string | null
  /**
   * The unique slot it takes. A slot is taken while the window that its job opened lasts, or while that job is
   * unfinished (or waiting, as requested). A cancelled or deleted job releases its slot and the window; a pruned one
   * keeps both.
   */
  readonly unique?: UniqueSlotRequest | undefined
  /** A sealed group refuses it with GroupSealedError, unless a running member of the group enqueues it. */
  readonly group?: string | undefined
  /** Its limit key and the like; undefined for a job without any. */
  readonly turn?: JobTurn | undefined
  readonly payload: Encoded
  /** The options given at enqueue, as JSON text; the store reads only `labels` and `unique`. */
  readonly options: string | null
  readonly due: Due
  readonly expires: Due | null
  /**
   * The job is blocked until all of these are done; an item of the same bulk is named by its id. See
   * `job/rules/links.ts`.
   */
  readonly after?: readonly Parent[] | undefined
  readonly onParentFailure?: LinkPolicy | undefined
  /** How long the job is kept if a parent cancels it. Default: for ever. */
  readonly keepCancelledMs?: number | undefined
  /** The job keeps a log of its steps. */
  readonly shape?: 'workflow' | undefined
}

export interface InsertOptions {
  readonly onDuplicate: OnDuplicate
  /**
   * The store writes only while this claim holds: a job enqueued by an attempt that lost its claim is refused with
   * LeaseLostError.
   */
  readonly claim?: Claim | undefined
  /** How long a replaced job, which is cancelled, is kept. */
  readonly keepCancelledMs: number
  /** Written into the audit trail with the jobs: a row for each. */
  readonly audit?: AuditNote | undefined
}

/** What an insert has of its caller: the claim of a handler, the user who enqueues through the dashboard. */
export type InsertedBy = Pick<InsertOptions, 'claim' | 'audit'>

export interface Inserted {
  readonly id: string
  readonly isNew: boolean
}

/** A claimed job: the store's own reference to it and the fence of the claim. */
export interface Claim {
  readonly ref: number
  readonly fence: number
}

/** A stored job. */
export interface JobRow {
  readonly ref: number
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly key: string | null
  readonly group: string | null
  readonly payload: Encoded
  readonly options: string | null
  /** A job that keeps a log; null for a plain one. */
  readonly shape: 'workflow' | 'sequence' | null
  /** The ids of its parents. */
  readonly after: readonly string[]
  readonly createdAt: number
  readonly state: State
  /** A worker holds it: it is running, or waiting to start. */
  readonly claimed: boolean
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  /** Consecutive crashes while it was in flight; 0 once it ended. */
  readonly streak: number
  readonly startedAt: number | null
  readonly settledAt: number | null
  readonly expiresAt: number | null
  /** The worker that holds it, or that ended it. */
  readonly worker: string | null
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
  readonly progress: string | null
}

export interface GuardedChange {
  readonly id: string
  /** The name of the job, where its payload or options are edited. */
  readonly name?: string | undefined
  /** Applied only if the job is still in this state and no handler runs it. */
  readonly from: State
  readonly to: State | 'gone'
  readonly due?: Due | undefined
  /** The state and due time of a workflow that is resumed, instead of what its parents and its due time say. */
  readonly place?: { readonly state: State; readonly dueAt: number } | undefined
  readonly reason?: string | undefined
  /** An entry for the job's log: 'retried', 'edited'. */
  readonly exit?: string | undefined
  readonly keepMs: number
  /** Resets the count of retries to 0. */
  readonly freshRetries?: boolean | undefined
  /** Written into the audit trail with the change. */
  readonly audit?: AuditNote | undefined
  readonly edit?:
    | {
        readonly payload?: Encoded | undefined
        /** What the limits of its job make of the new payload. */
        readonly turn?: JobTurn | undefined
        readonly options?: string | null | undefined
        readonly priority?: number | undefined
        readonly queue?: string | undefined
        readonly after?: AddedParents | undefined
      }
    | undefined
}

/**
 * 'changed': applied. 'taken': applied to a job that a worker held in advance (see `heldUnconfirmedMs`). 'stale': not
 * applied, the job had left `from`.
 */
export type Changed = 'changed' | 'taken' | 'stale'

export interface Promoted extends FailedGroups {
  readonly promoted: number
  /** The `whenDone` jobs that this call wrote. */
  readonly followUps: readonly FollowUp[]
  /** Cancelled because a parent failed, was cancelled or was deleted. */
  readonly cancelledByParents: readonly CancelledByParent[]
  /** More work is left: call again at once. */
  readonly again: boolean
  readonly expired: readonly {
    readonly id: string
    readonly name: string
    readonly queue: string
    readonly state: State
  }[]
  /** Time until the next waiting job is due; null when no job waits for a time. */
  readonly nextInMs: number | null
}

export interface ClaimRequest {
  readonly worker: string
  readonly fence: number
  /** The job names that this worker can run; undefined: any. */
  readonly names: readonly string[] | undefined
  /** The queues to claim from; undefined: any. */
  readonly queues?: readonly string[] | undefined
  /** Names that this claim does not take although it can run them: `claimLimited` does. */
  readonly except?: readonly string[] | undefined
  /** The most jobs to claim. */
  readonly max: number
  /** The first `starting` jobs start at once; the rest are held, are shown as ready and can be cancelled. */
  readonly starting: number
  /** The most jobs to claim of each queue; a queue that is not listed is limited by `max` alone. */
  readonly rooms: ReadonlyMap<string, number>
  /**
   * Whether the claim may take suspects, which requires a process in which no job runs: before other jobs, or only when
   * there are no others. A claim takes either suspects or other jobs; `chooseSuspects` chooses the suspects, and the
   * claim puts them in quarantine.
   */
  readonly suspects: 'none' | 'first' | 'last'
}

export interface Claimed {
  /** The store's now; the worker uses it for the times that it records. */
  readonly now: number
  readonly jobs: readonly ClaimedJob[]
  /** The shortest streak of the waiting suspects that this worker could run; null when there are none. */
  readonly suspectStreak: number | null
  /** The claimed jobs are suspects, in quarantine from now on. */
  readonly isQuarantine: boolean
  /** The worker was declared dead and must register again. */
  readonly lost: boolean
  /** Time until a paused queue resumes, or a rate has room again; null when no job waits for such a time. */
  readonly resumesInMs: number | null
  /** Queues have limits, or jobs with keys are ready: only `claimLimited` takes those jobs. */
  readonly limited?: boolean | undefined
  /** The lanes whose attempts have failed lately: a success in one of them must be reported (`SettledJob.health`). */
  readonly failing?: readonly FailingLane[] | undefined
}

export interface FailingLane {
  readonly queue: string
  readonly name: string
}

export interface ClaimedJob extends Claim {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly key: string | null
  readonly group: string | null
  readonly payload: Encoded
  readonly options: string | null
  readonly dueAt: number
  readonly expiresAt: number | null
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly streak: number
  readonly log: string | null
  /** The job may have children. Only a store that needs this at settlement sets it. */
  readonly isParent?: boolean | undefined
  /** The job is a sequence: where it continues. */
  readonly sequence?: ClaimedSequence | undefined
}

export interface Report extends Claim {
  /** Whose progress it is. */
  readonly id?: string | undefined
  readonly name?: string | undefined
  readonly startedAt: number
  /** JSON text of `{ done, total }`. */
  readonly progress: string | null
}

/** A decided settlement, as the store writes it. */
export interface SettledJob extends Claim {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly key: string | null
  readonly group: string | null
  readonly to: State
  /** Due in this many ms; null keeps its position in its lane. */
  readonly delayMs: number | null
  /** When the job was due for this attempt. */
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly streak: number
  readonly startedAt: number | null
  /** Its handler was called, or may have been: it can no longer expire before it begins. */
  readonly hasBegun: boolean
  readonly worker: string
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
  readonly keepMs: number
  readonly isParent?: boolean | undefined
  /** What the attempt says of the outage of its lane; undefined: nothing. */
  readonly health?: AttemptHealth | undefined
  /** What the attempt adds to the statistics; undefined: no attempt ended, only a claim. */
  readonly statistics?: AttemptStatistics | undefined
  /** A row of the job's log that is written in the same transaction. */
  readonly step?: NewStep | undefined
  /** Only the step is written, and the claim goes on: an item of a sequence that settles itself and is not the last. */
  readonly claimGoesOn?: boolean | undefined
  /** With `claimGoesOn`: the job has counted crashes, and what it records ends their count. */
  readonly endsStreak?: boolean | undefined
  /** The job is a workflow: what its settlement writes beside the job. */
  readonly workflow?: WorkflowEnd | undefined
}

export type { LeasedJob }
