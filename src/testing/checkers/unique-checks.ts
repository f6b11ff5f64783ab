import type { Census, CensusJob } from '../../store/census.js'
import { isFinal } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'

/** How jobs of one name are unique, as far as their rows do not say it. */
export interface UniqueRule {
  /** The window that the first job of a slot opens; null when there is none. */
  readonly forMs: number | null
  /** Duplicates reschedule the waiting job, to the end of its window at the latest. */
  readonly reschedules: boolean
}

export interface SlotFacts {
  /** How jobs are unique, by name; of other names only what the rows contain is checked. */
  readonly uniques: ReadonlyMap<string, UniqueRule> | undefined
  /** Counts an event that the campaign must cover. */
  readonly count: (what: string) => void
  /** See `SimClock`: a window that the clock has left once may be deleted, though the clock was set back since. */
  readonly soonest: number
}

/** The holder of a unique slot, and until when its window lasts (-Infinity: it has none). */
interface Holder {
  readonly id: string
  readonly until: number
  /** The same, in the time of `soonest`. */
  readonly soonestUntil: number
}

/**
 * Uniqueness (E6): at most one unfinished job in a slot whose jobs all require that, at most one for each window, none beside one
 * that still waits, and no job rescheduled beyond its window. The checker keeps its own record of the slots.
 */
export class SlotChecker {
  readonly #holders = new Map<string, Holder>()
  #soonest = -Infinity

  check(before: ReadonlyMap<string, CensusJob>, census: Census, { uniques, count, soonest }: SlotFacts): void {
    this.#soonest = Math.floor(soonest)
    for (const [slot, jobs] of bySlot(census)) {
      this.#checkUnfinished(slot, jobs)
      const rule = uniques?.get(jobs[0]?.name ?? '') ?? NO_WINDOW
      for (const job of jobs) {
        const was = before.get(job.id)
        if (was === undefined) count(`unique: ${this.#arrives(slot, job, jobs, before, rule)}`)
        else if (isOver(was) && !isOver(job)) this.#revives(slot, job)
        if (rule.reschedules) checkBound(job, rule)
      }
      this.#removeFreed(slot, jobs)
    }
  }

  #checkUnfinished(slot: string, jobs: readonly CensusJob[]): void {
    if (jobs.some((job) => job.while !== 'unfinished')) return
    const [first, second] = jobs.filter((job) => !isOver(job))
    if (first !== undefined && second !== undefined)
      throw new BrokenPromise(`E6: jobs ${first.id} and ${second.id} are both unfinished in slot ${slot}`)
  }

  #arrives(
    slot: string,
    job: CensusJob,
    jobs: readonly CensusJob[],
    before: ReadonlyMap<string, CensusJob>,
    { forMs, reschedules }: UniqueRule,
  ): 'replaced' | 'written' {
    const holder = this.#holders.get(slot)
    const first = jobs.find((each) => each.id === holder?.id)
    const was = before.get(first?.id ?? '')
    if (first !== undefined && waits(was) && waits(first))
      throw new BrokenPromise(`E6: job ${job.id} was written in slot ${slot} beside ${first.id}, which waits there`)
    const leftMs = first === undefined || holder === undefined ? 0 : holder.until - job.createdAt
    if (leftMs > 0 && this.#soonest < (holder?.soonestUntil ?? 0) && first?.state !== 'cancelled' && !reschedules)
      throw new BrokenPromise(`E6: job ${job.id} was written in slot ${slot} ${leftMs} ms before its window ends`)
    const opened = forMs === null ? -Infinity : job.createdAt + forMs
    // A job of the same bulk may be replaced between two checks.
    const isReplacing = first?.state === 'cancelled' && (was === undefined || waits(was))
    // A job that replaces a waiting one takes over its window.
    const until = isReplacing && leftMs > 0 ? job.createdAt + leftMs : opened
    this.#holders.set(slot, { id: job.id, until, soonestUntil: this.#soonest + until - job.createdAt })
    return isReplacing ? 'replaced' : 'written'
  }

  /** A retry takes the slot again, with the present window. */
  #revives(slot: string, job: CensusJob): void {
    const { until, soonestUntil } = this.#holders.get(slot) ?? { until: -Infinity, soonestUntil: -Infinity }
    this.#holders.set(slot, { id: job.id, until, soonestUntil })
  }

  /** A cancelled or deleted job gives up the slot with its window. */
  #removeFreed(slot: string, jobs: readonly CensusJob[]): void {
    const holder = jobs.find((each) => each.id === this.#holders.get(slot)?.id)
    if (holder === undefined || holder.state === 'cancelled') this.#holders.delete(slot)
  }
}

const NO_WINDOW: UniqueRule = { forMs: null, reschedules: false }

/** Jobs by name and unique slot, oldest first. */
function bySlot(census: Census): Map<string, CensusJob[]> {
  const slots = new Map<string, CensusJob[]>()
  for (const job of census.jobs) {
    if (job.slot === null) continue
    const slot = `${job.name} ${job.slot}`
    const jobs = slots.get(slot)
    if (jobs === undefined) slots.set(slot, [job])
    else jobs.push(job)
  }
  for (const jobs of slots.values()) jobs.sort((a, b) => a.seq - b.seq)
  return slots
}

/** A new job that no command has changed is due at the end of its window at the latest. */
function checkBound(job: CensusJob, { forMs }: UniqueRule): void {
  const isUntouched = job.attempt === 0 && job.logEntries === 0 && job.streak === 0 && !isOver(job)
  if (forMs !== null && isUntouched && job.dueAt > job.createdAt + forMs)
    throw new BrokenPromise(
      `E6: job ${job.id} was rescheduled by ${job.dueAt - job.createdAt} ms, beyond its window of ${forMs} ms`,
    )
}

function isOver(job: CensusJob | undefined): boolean {
  return job === undefined || job.state === null || isFinal(job.state)
}

function waits(job: CensusJob | undefined): boolean {
  return !isOver(job) && job?.state !== 'running' && job?.fence === null
}
