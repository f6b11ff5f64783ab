/** What a worker says about itself, stored as JSON. */
export interface WorkerAbout {
  /** The version of its app. */
  readonly version?: string | undefined
  /** Handlers that it runs at once. */
  readonly slots: number
  /** The names of the jobs that it can run; absent: any. */
  readonly names?: readonly string[] | undefined
  /** The bounds of single queues. */
  readonly queues?: Readonly<Record<string, number>> | undefined
  /** Bytes of memory of its process. */
  readonly memoryBytes?: number | undefined
  /** The 99th percentile of the delay of its event loop since the report before. */
  readonly loopDelayMs?: number | undefined
}

/** Running jobs of one name in one queue. */
export interface RunningJobs {
  readonly job: string
  readonly queue: string
  readonly count: number
  /** When the oldest of them started. */
  readonly since: number
}

export interface WorkerListed {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly startedAt: number
  /** Its last beat, by the clock of the database. */
  readonly beatAt: number
  readonly leaseMs: number | null
  /** When it was declared dead; null while it is registered. */
  readonly diedAt: number | null
  /** The id of the job whose handler blocks its event loop. */
  readonly blockedBy: string | null
  /** Undefined: it has not reported. */
  readonly about: WorkerAbout | undefined
  readonly running: readonly RunningJobs[]
}

/** One page of a list in the order of its text ids. */
export interface ListQuery {
  readonly limit: number
  /** The id of the last row of the page before. */
  readonly after: string
}

export interface WorkerListQuery extends ListQuery {
  /** Also those that were declared dead in the last ten minutes. */
  readonly withDead?: boolean | undefined
}

export interface ListPage<Row> {
  readonly now: number
  readonly rows: readonly Row[]
  /** There are more rows. */
  readonly isMore: boolean
}
