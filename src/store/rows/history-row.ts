import type { Encoded } from '../../job/rules/outcome.js'
import type { State } from '../../job/rules/states.js'

/** The end of a job as the history keeps it; a settlement has the same fields. */
export interface HistoryRow {
  readonly ref: number
  readonly to: State
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly startedAt: number | null
  readonly keepMs: number
  readonly worker: string | null
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
}

/** A first attempt that completed without logging: nearly every end. */
export function isPlainEnd(end: HistoryRow): boolean {
  return (
    end.to === 'done' &&
    end.attempt === 1 &&
    end.retries === 0 &&
    end.crashes === 0 &&
    end.error === null &&
    end.reason === null &&
    end.log === null
  )
}
