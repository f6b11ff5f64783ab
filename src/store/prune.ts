/** Deleting what is no longer needed, in bounded steps. Any number of processes may do it at the same time. */
export interface PruneStore {
  /** Deletes finished jobs that were kept long enough, at most `limit`, those first that are overdue longest. */
  pruneJobs(limit: number): Promise<Pruned>
  /** Deletes a bounded number of other rows: unique slots whose window is over, empty groups. */
  sweepRows(limit: number): Promise<Swept>
}

export interface Pruned {
  readonly pruned: number
  /** When the next finished job has been kept long enough: 0 when there is one now or the limit was reached, null when there is none. */
  readonly nextInMs: number | null
}

export interface Swept {
  readonly swept: number
  /** The limit was reached, or a walk was cut short: call again soon. */
  readonly more: boolean
}
