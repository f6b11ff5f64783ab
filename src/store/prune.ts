/** Deletes rows that are no longer needed, in bounded steps. Any number of processes may call it at the same time. */
export interface PruneStore {
  /** Deletes at most `limit` finished jobs whose keep time is over, the longest overdue first. */
  pruneJobs(limit: number): Promise<Pruned>
  /** Deletes a bounded number of other rows: unique slots whose window is over, empty groups. */
  sweepRows(limit: number): Promise<Swept>
}

export interface Pruned {
  readonly pruned: number
  /**
   * Time until the keep time of the next finished job is over: 0 when one is over now or the limit was reached, null
   * when there is no such job.
   */
  readonly nextInMs: number | null
}

export interface Swept {
  readonly swept: number
  /** The limit was reached, or a scan was cut short: call again soon. */
  readonly more: boolean
}
