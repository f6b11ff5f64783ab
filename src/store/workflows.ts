import type { AuditNote } from '../job/command-options.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { State } from '../job/rules/states.js'
import type { WorkflowVerb } from '../job/rules/workflow-commands.js'
import type { NewStep } from './sequences.js'
import type { Claim, Inserted, InsertOptions, NewJob } from './store.js'

/**
 * The workflows role: the inbox and the record of jobs whose steps are logged. What a worker reads and writes under its
 * claim is in `WorkflowLeases`, a part of the leases role.
 */
export interface WorkflowStore {
  /** Writes an event into the inbox of an unfinished workflow, and wakes it if it is suspended and waits for that event. */
  sendEvent(event: NewEvent): Promise<Sent>
  /** Applies cancel, pause, resume or retry in one transaction, by `decideWorkflow`. */
  changeWorkflow(change: WorkflowChange): Promise<WorkflowChanged>
  /** Undefined when there is no such job. */
  readWorkflow(id: string): Promise<WorkflowRecordRow | undefined>
  /** Answered rows by number, then open ones, after the given address. Undefined when there is no such job. */
  readSteps(id: string, after: string | undefined, limit: number): Promise<StepPage | undefined>
  /** What was sent to a workflow and is not taken, by number, after the given one. */
  readInbox(workflow: InboxOwner, after: number, limit: number): Promise<readonly InboxRow[]>
}

/** Whose inbox it is. The stores need only the ref; sealed events are bound to the rest. */
export interface InboxOwner {
  readonly ref: number
  readonly id: string
  readonly name: string
  readonly key: string | null
}

/** The verbs of a worker that holds claims on workflows. */
export interface WorkflowLeases {
  /**
   * Reads the logs and inboxes of claimed workflows, and clears what their last suspension wrote. The rows of a log are
   * left out when its last suspension has the fence of the run that the worker kept: that run can go on.
   */
  readLogs(claims: readonly KeptClaim[]): Promise<readonly WorkflowLog[]>
  /** Of these claimed workflows, those without a log, a suspension and an inbox: there is nothing to read. Changes nothing. */
  findUnbegun(claims: readonly Claim[]): Promise<readonly number[]>
  /** The untaken inbox rows of workflows in hand. */
  readInboxes(claims: readonly OwnedClaim[]): Promise<readonly Inbox[]>
  /**
   * Appends rows to the logs of claimed workflows whose claims go on. Each is written whole or not at all; an answer to an
   * open row fills it in. A row that has its answer is never replaced, so an append whose reply was lost can be repeated.
   */
  appendSteps(appends: readonly LogAppend[]): Promise<readonly LogAppended[]>
}

/** A claim and whose it is. The stores need only the claim; a mill with encryption keys refuses to go on without the rest. */
export interface OwnedClaim extends Claim {
  readonly id?: string | undefined
  readonly name?: string | undefined
  readonly key?: string | null | undefined
}

export interface KeptClaim extends OwnedClaim {
  /** The fence under which the kept run was suspended; null: no run is kept. */
  readonly keptFence: number | null
}

export interface WorkflowLog extends Inbox {
  readonly run: number
  /** The run that users see as 0: not 0 where the store has given this job the number of a deleted one. Default 0. */
  readonly firstRun?: number | undefined
  readonly deadlineAt: number | null
  /** When it was retried last: a deadline that had passed by then counts from here. */
  readonly retriedAt: number | null
  /** The number of the next answer. Numbers that a retry forgot are not given again. */
  readonly nextNo: number
  /** The rows of this run: answered ones by number, then open ones. Undefined: the kept run goes on. */
  readonly rows: readonly StepRow[] | undefined
}

export interface Inbox {
  readonly ref: number
  readonly inbox: readonly InboxRow[]
}

/** A row of the log. */
export interface StepRow extends NewStep {
  readonly answeredAt: number | null
}

/** A row of the inbox that is not taken. */
export interface InboxRow {
  readonly number: number
  readonly kind: 'event' | 'call' | 'cancel'
  /** The name of the event, or the id of the called job; null for a cancel. */
  readonly name: string | null
  /** The payload of the event, or the result of the called job. */
  readonly payload: Encoded | null
  /** How a called job ended otherwise, as JSON of `CallFailure`; the reason of a cancel. */
  readonly error: string | null
  /** By the store's clock: when it was sent, or when the called job ended. */
  readonly sentAt: number
}

/** How a called job ended without a result. */
export interface CallFailure {
  readonly kind: 'failed' | 'cancelled' | 'gone' | 'result-not-kept'
  /** JSON of an `ErrorRecord`, or a reason. */
  readonly error?: string | undefined
}

/** What one turn of a workflow in hand writes. */
export interface LogAppend extends OwnedClaim {
  readonly run: number
  readonly rows: readonly NewStep[]
  /** Inbox rows that the answers take. */
  readonly taken: readonly number[]
  /** Jobs that open rows call, or that answered rows have enqueued. */
  readonly children: readonly NewChild[]
  /** Called jobs to cancel: their branch lost or failed. */
  readonly cancelled: readonly string[]
  /** The workflow was in flight at crashes before: an answer ends their count. */
  readonly endsStreak: boolean
}

/**
 * A job that a row calls or enqueues: exactly one for an address. The store writes its id into the row's note
 * (`child`, `isOld` if a held key gave an existing job, `isLeft`), and keeps it there when the row gets its answer.
 */
export interface NewChild {
  readonly address: string
  readonly job: NewJob
  readonly options: InsertOptions
  /** The workflow waits for its end: a to-do brings it into the inbox. */
  readonly isAwaited: boolean
  /** `onCancel: 'leave'`: it is not cancelled with the workflow. */
  readonly isLeft?: boolean | undefined
}

export interface LogAppended {
  readonly ref: number
  /** False: the claim is lost, and nothing was written. */
  readonly held: boolean
  /** One for each of `children`. */
  readonly children: readonly Inserted[]
  /** Why a child was refused: its key rejects, or its group is sealed. Nothing of this append was written. */
  readonly error?: unknown
}

/** The most rows of an inbox that are not taken. */
export const INBOX_MAX = 10_000

/**
 * What the settlement of a workflow writes beside the job, in the same transaction (`SettledJob.workflow`). A child that
 * can be refused is appended before: here its refusal fails the settlement.
 */
export interface WorkflowEnd extends Omit<LogAppend, 'ref' | 'fence' | 'id' | 'name' | 'key' | 'endsStreak'> {
  /**
   * The run waits without a claim. The store makes it ready instead of `to` when the inbox has a row that one of `waits`
   * names, or a cancel.
   */
  readonly suspended?: Suspension | undefined
  /** The workflow restarts: the next run begins with an empty log, and with these options of its job where there are any. */
  readonly restarted?: { readonly input: Encoded; readonly options?: string | undefined } | undefined
  /** By the store's clock; null: none. */
  readonly deadlineAt: number | null
  /** What `retry` forgets: the answer of this number and every operation that was called after it was given. */
  readonly forgetFrom: number | null
}

export interface Suspension {
  /** `event:<name>` and `call:<id of the called job>`. */
  readonly waits: readonly string[]
  /** The earliest time among what it waits for and the deadline, by the store's clock. */
  readonly wakeAt: number | null
}

export interface NewEvent {
  /** The job by its id, or by the name and key of the unfinished job that holds it. */
  readonly to: { readonly id: string } | { readonly name: string; readonly key: string }
  readonly name: string
  /** A second event of this id is not written. */
  readonly eventId: string | null
  /** A function, where only the store knows the job's name: it is called before anything is written, and may refuse. */
  readonly payload: Encoded | ((jobName: string) => Encoded)
  /** Written into the audit trail with the event. */
  readonly audit?: AuditNote | undefined
}

/** An event whose payload is encoded. */
export interface EncodedEvent extends NewEvent {
  readonly payload: Encoded
}

/** 'known': an event of that id was sent before. 'ended', 'gone', 'plain', 'full': nothing was written. */
export interface Sent {
  readonly did: 'sent' | 'known' | 'ended' | 'gone' | 'plain' | 'full'
  readonly id: string | null
  readonly jobName: string | null
}

export interface WorkflowChange {
  readonly id: string
  readonly verb: WorkflowVerb
  readonly reason: string
  readonly keepMs: number
  /** How long a job of this name is kept when it is cancelled, for jobs that a retried workflow waits for again. */
  readonly keepCancelledMs?: ((jobName: string) => number) | undefined
  readonly audit?: AuditNote | undefined
}

export interface WorkflowChanged {
  readonly did: 'moved' | 'requested' | 'no' | 'gone' | 'plain'
  readonly from: State | null
  readonly to: State | null
  readonly name: string | null
  readonly queue: string | null
  /** A worker held it in advance, and may not know yet that it was taken. */
  readonly isTaken: boolean
  /** The addresses that a retry forgot. */
  readonly forgotten: readonly string[]
}

export interface WorkflowRecordRow {
  readonly ref: number
  readonly isWorkflow: boolean
  /** As users see it. */
  readonly run: number
  readonly answers: number
  readonly open: readonly StepRow[]
  readonly unread: number
  readonly isCancelRequested: boolean
  readonly isPauseRequested: boolean
  /** The notes of rows that carry warnings. */
  readonly warned: readonly string[]
}

export interface StepPage {
  readonly name: string
  readonly isWorkflow: boolean
  readonly rows: readonly StepRow[]
}
