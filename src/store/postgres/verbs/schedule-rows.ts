import type { State } from '../../../job/rules/states.js'
import type { ScheduleRow, TickRow } from '../../schedules.js'
import { numberOf, numberOrNull } from '../connection/executor.js'

/** Numbers may come as texts: a caller's library decides that. */
type Numeric = number | string | bigint

export interface StoredUpcoming {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly state: State
  readonly due_at: Numeric
  readonly options: string | null
}

export interface StoredSchedule {
  readonly id: string
  readonly revision: Numeric
  readonly spec: string
  readonly created_at: Numeric
  readonly paused_at: Numeric | null
  readonly next_at: Numeric | null
  readonly last_at: Numeric | null
  readonly open: string
  readonly fired: Numeric
}

export function toSchedule(row: StoredSchedule): ScheduleRow {
  return {
    id: row.id,
    revision: numberOf(row.revision),
    spec: row.spec,
    createdAt: numberOf(row.created_at),
    pausedAt: numberOrNull(row.paused_at),
    nextAt: numberOrNull(row.next_at),
    lastAt: numberOrNull(row.last_at),
    open: JSON.parse(row.open) as string[],
  }
}

export interface StoredTick {
  readonly at: Numeric
  readonly by_hand: boolean
  readonly outcome: TickRow['outcome']
  readonly reason: string | null
  readonly job: string | null
  readonly fired_at: Numeric
}

export function toTick({ at, by_hand, outcome, reason, job, fired_at }: StoredTick): TickRow {
  return { at: numberOf(at), byHand: by_hand, outcome, reason, job, firedAt: numberOf(fired_at) }
}
