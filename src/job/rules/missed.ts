/** What becomes of ticks that nobody fired in time: none of them runs, one for all of them, or each (at most 1,000). */
export type Missed = 'skip' | 'once' | 'all'

/** Missed ticks of one schedule that are caught up with at once. */
export const MISSED_MAX = 1_000

/** A tick that is fired no later than so long after its time is on time: a restart, or a busy machine, is no miss. */
export const ON_TIME_MS = 60_000

/** Ticks that have come due: the newest of them in order, and how many older ones there are. */
export interface DueTicks {
  readonly newest: readonly number[]
  /** The newest of the older ones, as far as they were counted. */
  readonly older: {
    readonly count: number
    readonly isMore: boolean
    readonly first: number
    readonly last: number
  } | null
}

/** A tick as the ledger will tell of it; one that is skipped gets no job. */
export interface DecidedTick {
  readonly at: number
  readonly outcome: 'ran' | 'caught up' | 'skipped'
  readonly reason: string | null
}

/** How many of the due ticks a policy wants to see. */
export function ticksWanted(missed: Missed): number {
  return missed === 'all' ? MISSED_MAX : 1
}

/** Which ticks run. What is skipped is told in one line for all of it: a year of seconds would be a long ledger. */
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
