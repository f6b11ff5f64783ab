import type { LinkPolicy } from '../job/rules/links.js'
import type { RequestKind } from '../job/rules/request.js'
import type { State } from '../job/rules/states.js'
import type { UniqueWhile } from '../job/rules/unique.js'

/**
 * Everything in a store, in one snapshot: what the simulator's checkers read after every step. It reads whole tables, so production
 * code never calls it.
 */
export interface Census {
  readonly jobs: readonly CensusJob[]
  readonly keys: readonly { readonly name: string; readonly key: string; readonly seq: number }[]
  /** The unique slots, each with the id of the job that took it last and the end of its window. */
  readonly slots: readonly {
    readonly name: string
    readonly key: string
    readonly job: string
    readonly until: number | null
  }[]
  readonly workers: readonly { readonly worker: string; readonly beat: number }[]
  readonly leases: readonly {
    readonly fence: number
    readonly worker: string
    readonly quarantined: number
    readonly jobs: readonly number[]
  }[]
  /** The pending requests of running jobs. */
  readonly requests: readonly { readonly seq: number; readonly kind: RequestKind }[]
  /** The lanes whose attempts fail. */
  readonly outages: readonly { readonly queue: string; readonly name: string; readonly state: string }[]
  readonly pauses: readonly { readonly queue: string; readonly until: number | null }[]
  /** The ledgers of the schedules. */
  readonly ticks: readonly {
    readonly schedule: string
    readonly at: number
    readonly byHand: number
    readonly job: string | null
  }[]
  /** `everyMs` is null for a cron; `waitsForFrom` is 1 while a schedule has not reached its `from`. */
  readonly schedules: readonly {
    readonly id: string
    readonly everyMs: number | null
    readonly nextAt: number | null
    readonly waitsForFrom: number
  }[]
  readonly groups: readonly {
    readonly group: string
    readonly unfinished: number
    readonly sealedAt: number | null
    readonly completedAt: number | null
  }[]
  /** The number of group members in each state of each queue; zero counts are omitted. */
  readonly counts: readonly {
    readonly group: string
    readonly queue: string
    readonly state: State
    readonly members: number
  }[]
  /** Ended attempts of each lane, as the statistics count them: buckets of a day and unfolded rows together. */
  readonly attempts: readonly {
    readonly queue: string
    readonly name: string
    readonly done: number
    readonly failed: number
    readonly retried: number
  }[]
  /** Open links between a parent and a child that it blocks, and parents whose ends are still to be handled. */
  readonly links: readonly { readonly parent: string; readonly child: number; readonly policy: LinkPolicy }[]
  readonly todos: readonly string[]
  /** The log of each sequence: the current run of its job, and what it recorded. */
  readonly sequences: readonly CensusSequence[]
  /** The log of the present run of each workflow, what it waits for, and what is in its inbox. */
  readonly workflows: readonly CensusWorkflow[]
  /** The numbers of rows of long work, of deleted jobs and old runs too. */
  readonly long: {
    readonly steps: number
    readonly workflows: number
    readonly lists: number
    readonly items: number
    readonly inbox: number
    readonly leftovers: number
  }
  /** Rows of unfinished or ended jobs, of logs and of inboxes without a row in `jobs` or in `leftovers`: must be none. */
  readonly strays: number
}

export interface CensusWorkflow {
  readonly id: string
  readonly run: number
  /** Null: it is not suspended. */
  readonly waits: readonly string[] | null
  readonly wakeAt: number | null
  readonly pausedFrom: State | null
  /** Answered rows by number, then open ones. */
  readonly rows: readonly {
    readonly address: string
    readonly kind: string
    readonly no: number | null
    readonly since: number
    readonly value: string | null
    readonly error: string | null
    readonly note: string | null
  }[]
  /** What is not taken. */
  readonly inbox: readonly {
    readonly number: number
    readonly kind: 'event' | 'call' | 'cancel'
    readonly name: string | null
    readonly payload: string | null
  }[]
}

export interface CensusSequence {
  readonly id: string
  readonly run: number
  readonly total: number
  /** The number of its items that are in the store. */
  readonly items: number
  /** The rows of its run in order of their addresses; `value` is the result as it is stored. */
  readonly rows: readonly {
    readonly address: string
    readonly no: number | null
    readonly attempt: number
    readonly value: string | null
  }[]
}

export interface CensusJob {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly key: string | null
  readonly group: string | null
  /** The group that its payload says it follows. */
  readonly follows: string | null
  /** The unique slot it was enqueued with, and its `while`; null when it has none. */
  readonly slot: string | null
  readonly while: UniqueWhile | null
  readonly createdAt: number
  /** The number of tables of unfinished and ended jobs that contain it: must be one. */
  readonly tableCount: number
  readonly state: State | null
  readonly fence: number | null
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly streak: number
  /** The reason recorded with its state. */
  readonly reason: string | null
  /** The worker that ended it. */
  readonly worker: string | null
  /** The worker of the last entry of its log ('' for a command), and the number of entries. */
  readonly lastLogWorker: string | null
  /** The tick that enqueued it: its schedule and instant. */
  readonly tick: string | null
  /** The id of the workflow that called or enqueued it. */
  readonly calledBy: string | null
  readonly logEntries: number
  /** When the keep time of a finished job ends; null while it is unfinished, and when it is kept for ever. */
  readonly keepUntil: number | null
  /** Its parents, as the store has them. */
  readonly after: readonly string[]
  /** The parents that its payload names (some of them), and its policy when one of them fails. */
  readonly payloadParents: readonly string[]
  readonly policy: LinkPolicy | null
  /** A number in its payload, which some jobs return. */
  readonly n: number | null
}
