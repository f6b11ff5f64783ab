import type { RateUse, SlotUse } from '../../job/limits/latest-turn.js'
import type { WorkerListed } from './lists.js'

/** What `mill.why` reads beside the jobs themselves, in one snapshot of the store. */
export interface WhyFacts<Row, Queue> {
  readonly now: number
  readonly jobs: readonly (WhyRow<Row> | undefined)[]
  readonly workers: readonly WorkerListed[]
  readonly queues: ReadonlyMap<string, Queue>
}

export interface WhyRow<Row> {
  readonly row: Row
  readonly parents: readonly { readonly id: string; readonly job: string; readonly state: string }[]
  readonly holder: string | undefined
  readonly waits: readonly string[]
  /** What bounds its start, where it is ready. */
  readonly limits: readonly SlotUse[]
  readonly rates: readonly RateUse[]
  /** Of a suspended workflow: when a blocked one wakes without an event, or null. */
  readonly suspended: { readonly wakeAt: number | null } | undefined
}

/** The most workers that one call reads. */
export const WHY_WORKERS_MAX = 1_000
/** The most jobs that are counted before one under a limit or a rate. */
export const WHY_AHEAD_MAX = 1_000
/** The most ids of jobs that have a slot. */
export const WHY_HOLDERS_MAX = 10
/** The most parents of one call. */
export const WHY_PARENTS_MAX = 1_000
