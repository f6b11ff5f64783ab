import type { FindingKind } from '../../observe/health/findings.js'
import type { SequenceState } from '../../job/rules/sequence.js'
import type { State } from '../../job/rules/states.js'
import type { TickOutcome } from '../../store/schedules.js'
import type { ErrorShown, JobRow } from './jobs.js'
import type { FailureSpan, Sort, Span, UpcomingSpan } from './topics.js'
import type { Verb } from './verbs.js'

/** A count, or a bound of it: { n: 10000, exact: false } is "> 10,000" . */
export interface Count {
  readonly n: number
  readonly exact: boolean
}

export type CountsByState = Readonly<Record<State, Count | null>>

/** A sentence with links: each part is text, or text that leads to a route such as '#/queues/billing'. */
export type Sentence = readonly (string | { readonly text: string; readonly to: string })[]

export type VerdictKind = 'good' | 'warn' | 'bad' | 'unknown'
export interface Verdict {
  readonly kind: VerdictKind
  readonly problems: number
  readonly text: Sentence
}

/** ↯: the app's version changed, or half of the fleet started within five minutes. */
export interface DeployMark {
  readonly at: number
  /** Null: the version is not known. */
  readonly version: string | null
  readonly workers: number
}

/** Columns of equal length. `at` is when the first bucket begins; null in a column is "no data". */
export interface SeriesShown {
  readonly at: number
  readonly bucketMs: number
  readonly done: readonly (number | null)[]
  readonly failed: readonly (number | null)[]
  readonly retried: readonly (number | null)[]
  readonly wait: PercentileColumns
  readonly run: PercentileColumns
}
export interface PercentileColumns {
  readonly p50: readonly (number | null)[]
  readonly p95: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
}

// health

export interface HealthFields {
  readonly verdict: Verdict
  readonly healthy: boolean | null
  readonly checkedAt: number
  readonly store: { readonly engine: string; readonly name: string; readonly latencyMs: number | null }
  readonly workers: { readonly alive: number; readonly silent: number; readonly dead: number }
  /** Numbers of the navigation that need action. */
  readonly nav: { readonly failed: Count; readonly workersMissing: number; readonly findings: number }
  /** Lines without a fault: "WAL 12 MB". */
  readonly good: readonly { readonly name: string; readonly text: string }[]
  /** The hash of the web build: reload when it differs. */
  readonly build: string
}

/** A fault. Its id is its kind and its subject. */
export interface FindingRow {
  readonly kind: FindingKind
  readonly level: 'bad' | 'warn'
  readonly text: string
  readonly since: number | null
  readonly effect: string
  readonly mend: string
  readonly link: string | null
}

// overview and queues

export interface OverviewFields {
  readonly span: Span
  readonly verdict: Verdict
  readonly donePerMinute: number
  /** In the span; `sinceDeploy` null without a deploy in it. */
  readonly failed: { readonly n: number; readonly sinceDeploy: number | null }
  readonly waiting: Count
  readonly longestWait: { readonly since: number; readonly queue: string } | null
  readonly slots: { readonly busy: number; readonly all: number | null }
  /** Ready jobs of queues that are not paused: `emptyInMs` is how long these take. */
  readonly ready: number
  /** When the last queue with ready jobs is empty; null: not known, or none is ready. */
  readonly emptyInMs: number | null
  readonly series: SeriesShown
  readonly deploys: readonly DeployMark[]
  readonly slotsByJob: readonly SlotShown[]
  readonly queueCount: number
  /** The newest five error groups of the span. */
  readonly failing: readonly FailureRow[]
  /** The next five. */
  readonly next: readonly UpcomingRow[]
  /** No job was ever enqueued. */
  readonly isEmpty: boolean
  /** The registered job that the button of the empty page enqueues; null without one. */
  readonly demoJob: string | null
}

export interface SlotShown {
  readonly job: string
  readonly count: number
}

export interface OutageShown {
  readonly job: string
  readonly state: 'probing' | 'opening'
  readonly since: number
  readonly waiting: number
  readonly text: string
}

/** A queue; its id is its name. */
export interface QueueRow {
  readonly name: string
  readonly state: 'open' | 'paused' | 'probing' | 'opening'
  readonly pausedAt: number | null
  readonly pausedUntil: number | null
  readonly outages: readonly OutageShown[]
  readonly counts: CountsByState
  /** Ready, retrying and blocked jobs. */
  readonly waiting: Count
  readonly oldestDueAt: number | null
  readonly running: number
  /** Slots of the workers that serve it alone; null: they share theirs. */
  readonly slots: number | null
  readonly limit: number | null
  readonly rate: { readonly max: number; readonly perMs: number } | null
  readonly perMinute: number
  /** The last hour by minute, at most 60. */
  readonly spark: readonly (number | null)[]
  readonly failed: Count
  /** Of the last hour; null when nothing ended. */
  readonly retryPercent: number | null
  readonly waitP95Ms: number | null
  /** How long its ready jobs take; null: not known, or none is ready. See `growsPerMinute`. */
  readonly emptyInMs: number | null
  readonly growsPerMinute: number | null
}

export interface QueuesFields {
  readonly verdict: Verdict
  readonly totals: { readonly waiting: Count; readonly running: number; readonly perMinute: number }
}

export interface LimitKeyShown {
  readonly of: string
  readonly key: string
  readonly waiting: Count
  readonly running: number
  readonly max: number | null
}

export interface QueueFields {
  readonly queue: QueueRow
  readonly span: Span
  readonly series: SeriesShown
  readonly deploys: readonly DeployMark[]
  readonly byJob: readonly { readonly job: string; readonly running: number; readonly workers: number }[]
  readonly limitKeys: readonly LimitKeyShown[] | null
  /** Pauses and probes in the span, by the audit trail. */
  readonly history: readonly { readonly at: number; readonly text: string }[]
  readonly failing: readonly FailureRow[]
}

// lists

export interface ListFields {
  readonly query: string
  readonly sort: Sort
  /** The orders that this version has. */
  readonly sorts: readonly Sort[]
  /** Without a filter: from counters. Null: not known. */
  readonly counts: CountsByState | null
  readonly scanned: number
  readonly reachedAt: number | null
  /** Matches that came after the list was made; the page shows them when asked. */
  readonly newer: Count
  /** Matches over time, newest last; null where it cannot be known. */
  readonly histogram: { readonly at: number; readonly bucketMs: number; readonly counts: readonly number[] } | null
  readonly hidden: readonly string[]
  /** How long ended jobs are kept, by state; null: not known. */
  readonly keptFromMs: Readonly<Partial<Record<'done' | 'failed' | 'cancelled', number>>> | null
  /** Problems of the search: the rows stay those of the last good one. */
  readonly problem: { readonly text: string; readonly from: number; readonly to: number } | null
}

// failures

/** An error group; its id is its fingerprint. */
export interface FailureRow {
  readonly fingerprint: string
  readonly job: string
  readonly error: string
  readonly message: string | null
  readonly place: string | null
  readonly count: number
  readonly spark: readonly (number | null)[] | null
  readonly firstSeen: number
  readonly lastSeen: number
  /** First seen after the last deploy. */
  readonly isNew: boolean
  /** Failed or parked jobs that a retry would run; null: not counted. */
  readonly retryable: Count | null
}

export interface FailuresFields {
  readonly span: FailureSpan
  readonly from: number
  readonly deploy: DeployMark | null
  readonly total: number
  readonly text: Sentence
  readonly lastFailureAt: number | null
}

export interface DifferenceShown {
  readonly what: string
  readonly value: string
  readonly failedPercent: number
  readonly donePercent: number
}

export interface FailureFields {
  readonly failure: FailureRow
  readonly examples: readonly { readonly id: string; readonly at: number; readonly error: ErrorShown | null }[]
  /** Null: not enough jobs; `differencesOf` says of how many. */
  readonly differences: readonly DifferenceShown[] | null
  readonly differencesOf: { readonly failed: number; readonly done: number } | null
  readonly query: string | null
}

// recurring

export interface Tick {
  readonly at: number
  readonly outcome: TickOutcome
  readonly reason: string | null
  /** The id of its job. */
  readonly job: string | null
  /** Its state, while the job is kept. */
  readonly state: State | null
  readonly firedAt: number
  readonly tookMs: number | null
}

export interface RecurringRow {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly title: string | null
  /** "every day at 09:00", without the zone. */
  readonly words: string
  /** The cron text or "every 5m". */
  readonly rule: string
  readonly timezone: string
  readonly missed: string
  readonly overlap: string
  readonly jitterMs: number
  readonly paused: boolean
  readonly pausedAt: number | null
  readonly nextAt: number | null
  readonly lastAt: number | null
  /** The newest 30, oldest first. */
  readonly ticks: readonly Tick[]
  /** "it runs 6 m 10 s and is due every 5 m: every second tick is skipped" */
  readonly warning: string | null
}

export interface RecurringListFields {
  readonly total: number
}

export interface RecurringFields {
  readonly schedule: RecurringRow
  /** The next five. */
  readonly next: readonly number[]
  /** "fires at 09:00 Oslo = 08:00 UTC now; from 28 March = 07:00 UTC"; null without a change of the clock. */
  readonly clockNote: string | null
  readonly from: number | null
  readonly until: number | null
}

// groups and sequences

export interface GroupRow {
  readonly id: string
  readonly total: number
  readonly unfinished: number
  readonly counts: Readonly<Record<State, number>>
  readonly sealed: boolean
  readonly completedAt: number | null
  readonly perMinute: number | null
  readonly emptyInMs: number | null
}

export interface GroupsFields {
  readonly total: number | null
}

export interface GroupFields {
  readonly group: GroupRow
  readonly queues: readonly { readonly queue: string; readonly counts: Readonly<Record<State, number>> }[]
}

export interface SequenceRow {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly key: string | null
  readonly state: SequenceState
  readonly requested: 'pause' | 'cancel' | null
  readonly done: number
  readonly total: number
  readonly error: (Pick<ErrorShown, 'name' | 'message' | 'code'> & { readonly index: number }) | null
  /** What the item in hand reported. */
  readonly item: { readonly done: number; readonly total: number | null } | null
  readonly createdAt: number
  /** Over the newest items; null before there are two. */
  readonly perItemMs: number | null
  readonly endsAt: number | null
}

export interface SequencesFields {
  readonly total: number | null
}

export interface SequenceFields {
  readonly sequence: SequenceRow
  readonly lastError: ErrorShown | null
  /** The verbs that apply now. */
  readonly verbs: readonly Verb[]
  /** Of the item in hand. */
  readonly logTail: readonly string[]
}

/** A recorded item; its id is its index. The newest 100 are sent. */
export interface SequenceItemRow {
  readonly index: number
  readonly result: string | null
  readonly reason: string | null
  readonly log: readonly string[]
  readonly attempt: number
  readonly startedAt: number
  readonly endedAt: number
}

// workers

export interface WorkerRow {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string | null
  readonly state: 'alive' | 'silent' | 'dead'
  readonly startedAt: number
  readonly beatAt: number
  readonly diedAt: number | null
  readonly slots: number | null
  readonly busy: number
  readonly names: readonly string[] | null
  readonly running: readonly {
    readonly job: string
    readonly queue: string
    readonly count: number
    readonly since: number
  }[]
  readonly blockedBy: string | null
  readonly memoryBytes: number | null
  readonly loopDelayMs: number | null
  readonly donePerMinute: number | null
}

export interface WorkersFields {
  readonly text: Sentence
  readonly alive: number
  readonly slots: number | null
  readonly busy: number
  readonly waiting: Count
  /** Names of waiting jobs that no live worker knows. */
  readonly unknownNames: readonly { readonly job: string; readonly text: string }[]
}

// upcoming, audit, enqueue, bulk

/** A future run; its id is the job's, or `<schedule>@<at>` for a tick without a job. */
export interface UpcomingRow {
  readonly at: number
  readonly job: string
  readonly queue: string
  readonly title: string | null
  readonly id: string | null
  readonly state: State | null
  readonly schedule: string | null
  readonly from: 'schedule' | 'timer' | 'retry' | 'ready'
  readonly usuallyTakesMs: number | null
}

export interface UpcomingLane {
  readonly queue: string
  /** Runs by bucket from `UpcomingFields.from` on. */
  readonly counts: readonly number[]
}

export interface UpcomingFields {
  readonly span: UpcomingSpan
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  readonly lanes: readonly UpcomingLane[]
  /** There are more than the nearest 1,000. */
  readonly isMore: boolean
  readonly total: number
}

export interface AuditRow {
  readonly at: number
  readonly actor: string
  readonly role: string | null
  readonly verb: string
  readonly target: string
  readonly link: string | null
  readonly count: number
  readonly before: string | null
  readonly after: string | null
  readonly reason: string | null
}

export interface AuditFields {
  readonly query: string
  readonly keptMs: number | null
  readonly problem: { readonly text: string; readonly from: number; readonly to: number } | null
}

/** A registered job; its id is its name. */
export interface EnqueueRow {
  readonly name: string
  readonly description: string | null
  readonly queue: string
  readonly categories: readonly string[]
  readonly kind: 'job' | 'workflow'
}

export interface EnqueueFields {
  readonly total: number
}

export interface EnqueueFormFields {
  readonly job: EnqueueRow
  /** JSON Schema of its payload; null: its schema does not offer one. */
  readonly schema: unknown
  /** The newest payload as JSON text, redacted: the form without a schema begins with it. */
  readonly lastPayload: string | null
}

export interface BulkFields {
  readonly id: string
  readonly verb: Verb
  readonly actor: string
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  readonly startedAt: number
  readonly endedAt: number | null
  readonly total: Count
  readonly changed: number
  readonly held: number
  readonly moved: number
  /** Why it failed. */
  readonly error: string | null
  readonly examples: readonly JobRow[]
}
