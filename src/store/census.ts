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
  readonly workers: readonly { readonly worker: string; readonly beat: number }[]
  readonly leases: readonly {
    readonly fence: number
    readonly worker: string
    readonly quarantined: number
    readonly jobs: readonly number[]
  }[]
  /** The changes requested of jobs that run. */
  readonly requests: readonly { readonly seq: number; readonly kind: RequestKind }[]
  readonly pauses: readonly { readonly queue: string; readonly until: number | null }[]
  /** The ledgers of what recurs. */
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
  /** How many members of groups are counted where; what is zero is left out. */
  readonly counts: readonly {
    readonly group: string
    readonly queue: string
    readonly state: State
    readonly members: number
  }[]
  /** Open links between a parent and a child that waits for it, and parents whose ends are still to be looked at. */
  readonly links: readonly { readonly parent: string; readonly child: number; readonly policy: LinkPolicy }[]
  readonly todos: readonly string[]
  /** Rows of unfinished or ended jobs without a row in `jobs`: must be none. */
  readonly strays: number
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
  /** The place it was enqueued for, and what it asked of others there; null when it need not be unique. */
  readonly place: string | null
  readonly while: UniqueWhile | null
  readonly createdAt: number
  /** In how many of the tables of unfinished and ended jobs it is: must be one. */
  readonly places: number
  readonly state: State | null
  readonly fence: number | null
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly streak: number
  /** Why it is where it is. */
  readonly reason: string | null
  /** Who ended it. */
  readonly worker: string | null
  /** Whose the last line of its history is ('' for a command's), and how many lines there are. */
  readonly told: string | null
  /** The tick of a recurring job that it is of: its schedule and instant. */
  readonly tick: string | null
  readonly lines: number
  /** Until when a finished job is kept; null while it is unfinished, and when it is kept for ever. */
  readonly keepUntil: number | null
  /** The jobs it comes after, as the store has it. */
  readonly after: readonly string[]
  /** What its payload says of that: some of those it must come after, and what it does when one of them fails. */
  readonly asked: readonly string[]
  readonly policy: LinkPolicy | null
  /** A number in its payload, which some jobs return. */
  readonly n: number | null
}
