/** What happens to ticks that no process fired in time: none runs, one runs for all of them, or each runs (at most 1,000). */
export type Missed = 'skip' | 'once' | 'all'

/** The most missed ticks of one schedule that run at once. */
export const MISSED_MAX = 1_000

/** A tick fired within this time after its instant is on time: a restart or a busy machine does not make it missed. */
export const ON_TIME_MS = 60_000

/** The due ticks: the newest in order, and a summary of the older ones. */
export interface DueTicks {
  readonly newest: readonly number[]
  /** The older ticks, counted up to a bound. */
  readonly older: {
    readonly count: number
    readonly isMore: boolean
    readonly first: number
    readonly last: number
  } | null
}

/** A tick as the ledger records it; a skipped tick has no job. */
export interface DecidedTick {
  readonly at: number
  readonly outcome: 'ran' | 'caught up' | 'skipped'
  readonly reason: string | null
}

/** How many of the newest due ticks a policy needs. */
export function ticksWanted(missed: Missed): number {
  return missed === 'all' ? MISSED_MAX : 1
}

/** Which ticks run. All older skipped ticks share one ledger row: a schedule of every second may have missed a year. */
export function decideMissed(missed: Missed, due: DueTicks, now: number): DecidedTick[] {
  const decided: DecidedTick[] = []
  if (due.older !== null) decided.push(skippedRun(due.older, missed))
  for (const at of due.newest) decided.push(decideOne(missed, at, now))
  return decided
}

function decideOne(missed: Missed, at: number, now: number): DecidedTick {
  const lateMs = now - at
  if (lateMs <= ON_TIME_MS) return { at, outcome: 'ran', reason: null }
  const late = `it was fired ${Math.round(lateMs / 1000)} s late`
  if (missed === 'skip') return { at, outcome: 'skipped', reason: `${late}, and missed ticks are skipped` }
  return { at, outcome: 'caught up', reason: late }
}

function skippedRun({ count, isMore, first, last }: NonNullable<DueTicks['older']>, missed: Missed): DecidedTick {
  const why = {
    skip: 'missed ticks are skipped',
    once: 'a later tick ran for them',
    all: `at most ${MISSED_MAX} are caught up with`,
  }[missed]
  const many = isMore ? `more than ${count} missed ticks` : count === 1 ? 'a missed tick' : `${count} missed ticks`
  const span = count === 1 && !isMore ? '' : ` from ${new Date(first).toISOString()}`
  return { at: last, outcome: 'skipped', reason: `${many}${span} up to ${new Date(last).toISOString()}: ${why}` }
}
