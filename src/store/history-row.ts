import type { Encoded } from '../job/rules/outcome.js'
import type { State } from '../job/rules/states.js'

/** A job's end as history keeps it; a settlement is one already. */
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

/** A first run that went well and said nothing: nearly every end there is. */
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
