/** Workers as everybody sees them: who they are, and that they live. */
export interface WorkerInfo {
  readonly id: string
  readonly host: string
  readonly pid: number
}

export interface WorkerBeat {
  readonly id: string
  /** Null: the worker is gone and its leases are not. */
  readonly beat: number | null
}

export interface Heart {
  stop(): Promise<void>
}
