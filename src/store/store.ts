import type { Encoded } from '../job/rules/outcome.js'
import type { State } from '../job/rules/states.js'
import type { OnDuplicate, UniqueSlotRequest } from '../job/rules/unique.js'
import type { Cancel } from '../world/timers.js'
import type { LinkPolicy } from '../job/rules/links.js'
import type { Census } from './census.js'
import type { CountedPage, FindQuery, FoundPage } from './find.js'
import type { GroupStore, GroupTroubles } from './groups.js'
import type { StoreInfo } from './info.js'
import type { AddedParents, CancelledByParent, Parent } from './links.js'
import type { PruneStore } from './prune.js'
import type { Confirmation, HeldJob, QueueStore } from './queues.js'
import type { ScheduleStore } from './schedules.js'
import type { TransactionStore } from './transaction-store.js'
import type { JobRequest, PendingRequest, SettleResult } from './requests.js'
import type { Heartbeat, HeartbeatRequest, Rescue, WorkerBeat, WorkerInfo, LeasedJob } from './workers.js'

/**
 * The store contract: whole job verbs, never parts of SQL. One verb is one statement or one transaction, all or nothing.
 * Verbs come in roles, by who uses them: `jobs` (client, upkeep), `leases` (worker, rescue), `queues` (pauses),
 * `groups` (counts), `changes` (hints), `transactions` (the caller's own), `schedules`. All pass `test/contract/store-contract.ts`.
 *
 * Two rules hold for every verb. Time is the store's own clock, so callers pass delays and never instants of their own.
 * And a write made under a claim carries its fence, and writes nothing when that fence is no longer the job's.
 */
export interface Store {
  readonly jobs: JobStore
  readonly leases: LeaseStore
  readonly queues: QueueStore
  readonly groups: GroupStore
  readonly changes: ChangeStore
  readonly transactions: TransactionStore
  readonly schedules: ScheduleStore
  readonly info: StoreInfo
  /** Everything in the store, for checkers. It reads whole tables: never called by a mill. */
  readCensus(): Promise<Census>
  /** Lets go of the store. What was acknowledged is safe; what is under way is finished first. */
  close(): Promise<void>
}

export interface JobStore extends PruneStore {
  /**
   * Writes all of them or none. A held key is answered by `onDuplicate`, and then a taken unique slot as the job's `unique` says; 'reject'
   * throws. A conflict with a job of the same bulk is answered like any other.
   */
  insertJobs(jobs: readonly NewJob[], options: InsertOptions): Promise<readonly Inserted[]>
  readJobs(ids: readonly string[]): Promise<readonly (JobRow | undefined)[]>
  /** The unfinished job that holds this key, else the newest that had it. */
  readKeyed(name: string, key: string): Promise<JobRow | undefined>
  /** One page. An empty page with a cursor means: nothing here, go on. */
  findJobs(query: FindQuery): Promise<FoundPage>
  /** The same page as a number, without reading payloads. */
  countJobs(query: FindQuery): Promise<CountedPage>
  /**
   * Does a command to a job that does not run, if it is still in the state the decision was made for. A finished job that is
   * made live again takes its key and its unique slot again, and is refused when another unfinished one has them.
   */
  changeJob(change: GuardedChange): Promise<Changed>
  /** Requests a change of a job that runs; 'refused' when it means nothing, 'stale' when the job does not run. */
  requestChange(ask: JobRequest): Promise<'noted' | 'refused' | 'stale'>
  /** Makes ready what is due or was freed, enqueues what follows complete groups, names the expired; a bounded number of each. */
  promoteJobs(limit: number): Promise<Promoted>
}

export interface LeaseStore {
  addWorker(worker: WorkerInfo): Promise<void>
  /** Counts the worker's beat up by one; false when it has been taken for dead. */
  beat(worker: string): Promise<boolean>
  /** Beats from a thread of its own until stopped; undefined where that is impossible and `beat` must be called. */
  startHeartbeat(...heart: HeartbeatRequest): Promise<Heartbeat | undefined>
  dropWorker(worker: string): Promise<void>
  /** Every worker with its beat, and the workers that are gone but still hold leases (beat null). */
  readWorkers(): Promise<readonly WorkerBeat[]>
  /** Takes ready jobs under one new fence. */
  claimJobs(request: ClaimRequest): Promise<Claimed>
  /** Which of these held jobs may begin: still this claim's, and their queue is not paused. */
  confirmJobs(held: readonly HeldJob[]): Promise<Confirmation>
  /** The changes requested of jobs that run, anywhere. */
  readRequests(): Promise<readonly PendingRequest[]>
  /** Notes under the fence that held jobs have begun, and how far jobs have come; gives the refs that are lost. */
  reportJobs(reports: readonly Report[]): Promise<readonly number[]>
  /** Writes what became of claimed jobs, as their requested changes alter it, and closes leases. */
  settleJobs(settled: readonly SettledJob[], closeLeases: readonly number[]): Promise<SettleResult>
  /** Of claims whose answer never came: none of them takes anything from now on. Gives what they have taken. */
  voidClaims(worker: string, fences: readonly number[]): Promise<readonly LeasedJob[]>
  /** The suspects of this claim outlived their quarantine: from now on a crash is charged to none of them. */
  endQuarantine(worker: string, fence: number): Promise<void>
  /** What a worker's leases hold. */
  readLeases(worker: string): Promise<readonly LeasedJob[]>
  /** Ends a dead worker: one guarded write; null when its beat moved after all, or `withinMs` passed, and nothing was written. */
  rescueJobs(...rescue: Rescue): Promise<SettleResult | null>
}

export interface ChangeStore {
  /** Called after commits of this process, and of other processes, as far as they are noticed. A hint is a hint: the poll is the truth. */
  onHint(callback: (hint: Hint) => void): Cancel
}

export interface Hint {
  /** Something became ready. */
  readonly ready: boolean
  /** Something was scheduled: due in so many ms; by another process: 0, and the listener has to look when. */
  readonly dueInMs: number | null
  /** Something ended. */
  readonly settled: boolean
  /** Something was asked that concerns jobs in hand: a cancel, a pause, a held job that was taken away. */
  readonly requested: boolean
}

/** A time the store works out by its own clock: so long from its now, or a fixed instant. */
export type Due = { readonly inMs: number } | { readonly at: number }

export interface NewJob {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly key: string | null
  /**
   * The unique slot it takes. A slot is taken while its window runs, which the job that took it opened, or while that job is
   * unfinished (or waiting, as requested). A cancelled or deleted job gives up its slot with the window; a pruned one does not.
   */
  readonly unique?: UniqueSlotRequest | undefined
  /** A sealed group is refused with GroupSealedError, but for what its running members add. */
  readonly group?: string | undefined
  readonly payload: Encoded
  /** What was given at enqueue, as JSON text; the store reads only its `labels` and `unique`. */
  readonly options: string | null
  readonly due: Due
  readonly expires: Due | null
  /** It is blocked until all of these are done; one of the same bulk is named by its id. See `job/rules/links.ts`. */
  readonly after?: readonly Parent[] | undefined
  readonly onParentFailure?: LinkPolicy | undefined
  /** How long it is kept if a parent cancels it. Default: for ever. */
  readonly keepCancelledMs?: number | undefined
}

export interface InsertOptions {
  readonly onDuplicate: OnDuplicate
  /** Written only while this claim holds: a child of a lost run is refused with LeaseLostError. */
  readonly under?: Claim | undefined
  /** How long a job that is replaced, and so cancelled, is kept. */
  readonly keepCancelledMs: number
}

export interface Inserted {
  readonly id: string
  readonly isNew: boolean
}

/** A job that is claimed: the store's own reference to it and the fence of the claim. */
export interface Claim {
  readonly ref: number
  readonly fence: number
}

/** A job as it is stored. */
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
  /** Ids of the jobs it came after. */
  readonly after: readonly string[]
  readonly createdAt: number
  readonly state: State
  /** Held by a worker: running, or about to. */
  readonly claimed: boolean
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  /** Crashes in a row that it was in flight at; 0 once it ended. */
  readonly streak: number
  readonly startedAt: number | null
  readonly settledAt: number | null
  readonly expiresAt: number | null
  readonly worker: string | null
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
  readonly progress: string | null
}

export interface GuardedChange {
  readonly id: string
  /** Written only if the job is still in this state and no handler holds it. */
  readonly from: State
  readonly to: State | 'gone'
  readonly due?: Due | undefined
  readonly reason?: string | undefined
  /** A line for the job's history: 'retried', 'edited'. */
  readonly exit?: string | undefined
  readonly keepMs: number
  /** Counts retries from 0 again. */
  readonly freshRetries?: boolean | undefined
  readonly edit?:
    | {
        readonly payload?: Encoded | undefined
        readonly options?: string | null | undefined
        readonly priority?: number | undefined
        readonly queue?: string | undefined
        readonly after?: AddedParents | undefined
      }
    | undefined
}

/** Done; done, and taken from a worker that held it in advance (see `heldUnconfirmedMs`); or not done. */
export type Changed = 'changed' | 'taken' | 'stale'

export interface Promoted extends GroupTroubles {
  readonly promoted: number
  /** Called off because of a parent. */
  readonly cancelledByParents: readonly CancelledByParent[]
  /** Something was done and there is more of it: come again at once. */
  readonly again: boolean
  readonly expired: readonly {
    readonly id: string
    readonly name: string
    readonly queue: string
    readonly state: State
  }[]
  /** When the next waiting job is due; null when none waits for a time. */
  readonly nextInMs: number | null
}

export interface ClaimRequest {
  readonly worker: string
  readonly fence: number
  /** Names this worker can run; undefined: any. */
  readonly names: readonly string[] | undefined
  /** Only of these queues; undefined: of any. */
  readonly queues?: readonly string[] | undefined
  /** How many it takes at the most. */
  readonly max: number
  /** The first so many begin at once; the rest are held, show as ready and can be cancelled. */
  readonly starting: number
  /** How many more of a queue it takes at the most; a queue not named takes up to `max`. */
  readonly rooms: ReadonlyMap<string, number>
  /**
   * Whether suspects may be taken, which needs a process in which nothing runs: before other work, or only when there is no
   * other work. A claim takes either, never both; suspects are chosen by `chooseSuspects` and taken into a quarantine.
   */
  readonly suspects: 'none' | 'first' | 'last'
}

export interface Claimed {
  /** The store's now, by which the worker dates what it records. */
  readonly now: number
  readonly jobs: readonly ClaimedJob[]
  /** The shortest streak of the suspects that still wait and that this worker could run; null when none waits. */
  readonly suspectStreak: number | null
  /** What it took are suspects, in quarantine from now on. */
  readonly isQuarantine: boolean
  /** The worker has been taken for dead and must register again. */
  readonly lost: boolean
  /** A paused queue runs again in so many ms; null when none is paused until a time. */
  readonly resumesInMs: number | null
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
  /** It may have children; only a store that needs this at the end says so. */
  readonly isParent?: boolean | undefined
}

export interface Report extends Claim {
  readonly startedAt: number
  /** JSON text of `{ done, total }`. */
  readonly progress: string | null
}

/** A decided settlement as the store writes it. */
export interface SettledJob extends Claim {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly key: string | null
  readonly group: string | null
  readonly to: State
  /** Due in so many ms; null keeps its position in its lane. */
  readonly delayMs: number | null
  /** When it was due for this attempt. */
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly streak: number
  readonly startedAt: number | null
  readonly worker: string
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
  readonly keepMs: number
  readonly isParent?: boolean | undefined
}

export type { LeasedJob }
