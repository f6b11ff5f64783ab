import type { SequenceState } from '../../job/rules/sequence.js'
import type { State } from '../../job/rules/states.js'
import type { WhyReason } from '../../job/why/why.js'
import type { ShownValue } from './shown.js'

/** A thrown error. `place` is the first frame of the app: "charge (src/jobs/charge.ts:41)". */
export interface ErrorShown {
  readonly name: string
  readonly message: string
  readonly code: string | number | null
  readonly stack: string | null
  readonly place: string | null
  readonly props: Readonly<Record<string, string | number | boolean | null>> | null
  readonly cause: ErrorShown | null
  /** Those of an AggregateError. */
  readonly errors: readonly ErrorShown[]
}

export interface BlockerShown {
  readonly kind: 'job' | 'worker' | 'queue' | 'event'
  readonly id: string
  /** The route of its page; null for an event. */
  readonly link: string | null
}

/** Why a job is not running. */
export interface WhyShown {
  readonly reason: WhyReason
  readonly text: string
  readonly blockers: readonly BlockerShown[]
}

/** A job in a list. */
export interface JobRow {
  readonly id: string
  readonly job: string
  readonly title: string | null
  readonly queue: string
  readonly state: State
  /** Only in waiting states. */
  readonly why: WhyShown | null
  /** The last error, without its stack. */
  readonly error: Pick<ErrorShown, 'name' | 'message' | 'code'> | null
  /** Why the job is in this state, when there is no error. */
  readonly reason: string | null
  readonly attempt: number
  /** How often it may be tried in all; null when its definition is not known here. */
  readonly attemptMax: number | null
  readonly priority: number
  readonly labels: readonly string[]
  readonly key: string | null
  readonly group: string | null
  /** The id of the recurring job that enqueued it. */
  readonly schedule: string | null
  readonly kind: 'job' | 'workflow' | 'sequence' | null
  readonly progress: { readonly done: number; readonly total: number | null } | null
  readonly createdAt: number
  readonly dueAt: number
  readonly startedAt: number | null
  readonly settledAt: number | null
  /** The last change that the record shows: the age of the row. */
  readonly changedAt: number
  /** How long the last attempt ran; while it runs, null: now − startedAt. */
  readonly tookMs: number | null
  /** Of a workflow: the step it is in (empty: in none), and how many are done; null where a list does not read it. */
  readonly step: { readonly name: string; readonly kind: string; readonly done: number } | null
}

export interface AttemptShown {
  /** From 1. */
  readonly number: number
  readonly startedAt: number
  /** Null: it runs. */
  readonly endedAt: number | null
  readonly worker: string
  readonly host: string | null
  readonly error: ErrorShown | null
  /** How it ended when the handler neither returned nor threw: crashed, snoozed, cancelled, retried, lost … */
  readonly exit: string | null
  /** The number of log lines: the part `log` has them. */
  readonly logLines: number
}

/** A stretch of the time line. 'held': its retry is due, and its queue is probing. */
export interface TimelineSpan {
  readonly kind: 'scheduled' | 'ready' | 'running' | 'back-off' | 'held' | 'blocked' | 'paused' | 'future'
  readonly from: number
  /** Null: it lasts. */
  readonly to: number | null
  /** The attempt, for 'running'. */
  readonly attempt: number | null
}

/** A command on the time line. */
export interface FlagShown {
  readonly at: number
  readonly verb: string
  readonly actor: string
  readonly before: string | null
  readonly after: string | null
  readonly reason: string | null
}

export interface WaitingForShown {
  readonly address: string
  readonly kind: string
  readonly name: string
  readonly until: number | null
  /** The name of the event that "Send event" sends. */
  readonly event: string | null
  /** The id of the called job. */
  readonly job: string | null
}

/** The page of a job. */
export interface JobFields extends JobRow {
  readonly crashes: number
  /** It runs, and this was requested of it: it happens when the attempt ends. */
  readonly requested: 'cancel' | 'pause' | null
  readonly after: readonly string[]
  readonly calledBy: string | null
  readonly expiresAt: number | null
  readonly tick: { readonly schedule: string; readonly at: number } | null
  readonly lastError: ErrorShown | null
  readonly attempts: readonly AttemptShown[]
  readonly timeline: readonly TimelineSpan[]
  /** Commands of the audit trail, oldest first: at most 50. */
  readonly flags: readonly FlagShown[]
  /** While it runs: the last 20 lines. */
  readonly logTail: readonly string[]
  readonly encrypted: boolean
  /** A payload that does not decode: why. */
  readonly undecoded: string | null
  readonly description: string | null
  /** The trace of its captured context, for `links`; null without one. */
  readonly trace: string | null
  readonly workflow: {
    readonly run: number
    readonly answers: number
    readonly waitingFor: readonly WaitingForShown[]
    readonly warnings: readonly string[]
    readonly unread: number
    readonly requested: 'cancel' | 'pause' | null
  } | null
  readonly sequence: { readonly state: SequenceState; readonly done: number; readonly total: number } | null
}

/** A step of a workflow; its id is its address. */
export interface StepRow {
  readonly address: string
  /** The address of the branch that it is in; null at the top. */
  readonly parent: string | null
  readonly name: string
  readonly kind: string
  readonly state: 'done' | 'failed' | 'open' | 'retrying'
  readonly attempt: number
  readonly startedAt: number
  readonly endedAt: number | null
  readonly until: number | null
  readonly result: ShownValue | null
  readonly error: ErrorShown | null
  readonly log: readonly string[]
  /** The id of the job that it called or enqueued. */
  readonly child: string | null
  readonly foreign: boolean
  /** A cancelled step did not return: whether it acted is not known. */
  readonly unknown: boolean
}

export type JobPart = 'payload' | 'result' | 'meta' | 'captured' | 'log' | 'graph' | 'lately' | 'json' | 'test'

/** What `api/job/:id/:part` answers. */
export interface JobPartAnswer {
  readonly payload: ShownValue
  readonly result: ShownValue
  readonly meta: ShownValue
  readonly captured: ShownValue
  readonly log: LogAnswer
  readonly graph: GraphAnswer
  readonly lately: LatelyAnswer
  /** The whole record as JSON text, to copy; not for viewers. */
  readonly json: TextAnswer
  /** A test of this job, to copy; not for viewers. */
  readonly test: TextAnswer
}

export interface TextAnswer {
  readonly text: string
}

export interface LogAnswer {
  readonly attempts: readonly { readonly number: number; readonly lines: readonly string[] }[]
}

export interface GraphNode {
  readonly id: string
  readonly job: string
  readonly title: string | null
  readonly state: State
  /** 0: the job itself; −1, −2: parents; 1, 2: children. */
  readonly layer: number
}

export interface GraphAnswer {
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly (readonly [parent: string, child: string])[]
  /** Parents and children that are not among the nodes. */
  readonly moreParents: number
  readonly moreChildren: number
  /** A search for its children. */
  readonly childrenQuery: string | null
}

/** The same job lately: how long its last attempts ran, oldest first, at most 30. */
export interface LatelyAnswer {
  readonly took: readonly { readonly id: string; readonly at: number; readonly ms: number; readonly state: State }[]
  readonly p50: number | null
  readonly p95: number | null
}
