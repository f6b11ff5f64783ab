import type { Ask, WishKind } from '../job/rules/request.js'
import type { Claim, SettledJob } from './store.js'

/** What somebody asks of a job that runs. */
export interface JobAsk {
  readonly id: string
  readonly ask: Ask
  readonly reason: string
  /** How long the job is kept if it ends by this. */
  readonly keepMs: number
}

/** What stands written beside a job that runs, and under which claim it runs now. */
export interface StandingWish extends Claim {
  readonly kind: WishKind
  readonly reason: string
}

/** What came of settlements. */
export interface Written {
  /** Refs whose fence was not theirs any more: nothing was written of them. */
  readonly refused: readonly number[]
  /** Those that a wish turned, as they were written. */
  readonly turned: readonly SettledJob[]
}
