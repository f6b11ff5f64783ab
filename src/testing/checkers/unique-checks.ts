import type { Census, CensusJob } from '../../store/census.js'
import { isFinal } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'

/** How jobs of one name are unique, as far as their rows do not say it. */
export interface UniqueRule {
  /** The window that the first of a place opens; null when there is none. */
  readonly forMs: number | null
  /** Duplicates put the one that waits off, until the end of its window at the latest. */
  readonly putsOff: boolean
}

export interface PlaceFacts {
  /** How jobs are unique, by name; of those not named only what their rows say is known. */
  readonly uniques: ReadonlyMap<string, UniqueRule> | undefined
  /** Something worth counting was seen to happen. */
  readonly met: (what: string) => void
  /** See `SimClock`: a window that the clock has left once may be forgotten, though the clock was set back since. */
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
 * Uniqueness (E6): at most one unfinished job at a place where all asked for that, at most one for each window, none beside one
 * that still waits, and no job put off beyond its window. It keeps a book of places of its own.
 */
export class PlaceChecker {
  readonly #holders = new Map<string, Holder>()
  #soonest = -Infinity

  look(before: ReadonlyMap<string, CensusJob>, census: Census, { uniques, met, soonest }: PlaceFacts): void {
    this.#soonest = Math.floor(soonest)
    for (const [place, jobs] of byPlace(census)) {
      this.#checkUnfinished(place, jobs)
      const rule = uniques?.get(jobs[0]?.name ?? '') ?? NO_WINDOW
      for (const job of jobs) {
        const was = before.get(job.id)
        if (was === undefined) met(`unique: ${this.#arrives(place, job, jobs, before, rule)}`)
        else if (isOver(was) && !isOver(job)) this.#revives(place, job)
        if (rule.putsOff) checkBound(job, rule)
      }
      this.#forgetVoid(place, jobs)
    }
  }

  #checkUnfinished(place: string, jobs: readonly CensusJob[]): void {
    if (jobs.some((job) => job.while !== 'unfinished')) return
    const [first, second] = jobs.filter((job) => !isOver(job))
    if (first !== undefined && second !== undefined)
      throw new BrokenPromise(`E6: jobs ${first.id} and ${second.id} are both unfinished at ${place}`)
  }

  #arrives(
    place: string,
    job: CensusJob,
    jobs: readonly CensusJob[],
    before: ReadonlyMap<string, CensusJob>,
    { forMs, putsOff }: UniqueRule,
  ): 'replaced' | 'written' {
    const holder = this.#holders.get(place)
    const first = jobs.find((each) => each.id === holder?.id)
    const was = before.get(first?.id ?? '')
    if (first !== undefined && waits(was) && waits(first))
      throw new BrokenPromise(`E6: job ${job.id} was written at ${place} beside ${first.id}, which waits there`)
    const leftMs = first === undefined || holder === undefined ? 0 : holder.until - job.createdAt
    if (leftMs > 0 && this.#soonest < (holder?.soonestUntil ?? 0) && first?.state !== 'cancelled' && !putsOff)
      throw new BrokenPromise(`E6: job ${job.id} was written at ${place} ${leftMs} ms before its window ends`)
    const opened = forMs === null ? -Infinity : job.createdAt + forMs
    // One that came in the same bulk may be replaced before anybody has seen it.
    const isReplacing = first?.state === 'cancelled' && (was === undefined || waits(was))
    // A job that replaces a waiting one takes over its window.
    const until = isReplacing && leftMs > 0 ? job.createdAt + leftMs : opened
    this.#holders.set(place, { id: job.id, until, soonestUntil: this.#soonest + until - job.createdAt })
    return isReplacing ? 'replaced' : 'written'
  }

  /** A retry takes the slot again, with the present window. */
  #revives(place: string, job: CensusJob): void {
    const { until, soonestUntil } = this.#holders.get(place) ?? { until: -Infinity, soonestUntil: -Infinity }
    this.#holders.set(place, { id: job.id, until, soonestUntil })
  }

  /** A cancelled or deleted job gives up the slot with its window. */
  #forgetVoid(place: string, jobs: readonly CensusJob[]): void {
    const holder = jobs.find((each) => each.id === this.#holders.get(place)?.id)
    if (holder === undefined || holder.state === 'cancelled') this.#holders.delete(place)
  }
}

const NO_WINDOW: UniqueRule = { forMs: null, putsOff: false }

/** Jobs by name and place, oldest first. */
function byPlace(census: Census): Map<string, CensusJob[]> {
  const places = new Map<string, CensusJob[]>()
  for (const job of census.jobs) {
    if (job.place === null) continue
    const place = `${job.name} ${job.place}`
    const jobs = places.get(place)
    if (jobs === undefined) places.set(place, [job])
    else jobs.push(job)
  }
  for (const jobs of places.values()) jobs.sort((a, b) => a.seq - b.seq)
  return places
}

/** A new job that no command has changed is due at the end of its window at the latest. */
function checkBound(job: CensusJob, { forMs }: UniqueRule): void {
  const isUntouched = job.attempt === 0 && job.lines === 0 && job.streak === 0 && !isOver(job)
  if (forMs !== null && isUntouched && job.dueAt > job.createdAt + forMs)
    throw new BrokenPromise(
      `E6: job ${job.id} was put off ${job.dueAt - job.createdAt} ms, beyond its window of ${forMs} ms`,
    )
}

function isOver(job: CensusJob | undefined): boolean {
  return job === undefined || job.state === null || isFinal(job.state)
}

function waits(job: CensusJob | undefined): boolean {
  return !isOver(job) && job?.state !== 'running' && job?.fence === null
}
