import type { Census, CensusJob } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'

type Count = 'done' | 'failed' | 'retried'
const COUNTS: readonly Count[] = ['done', 'failed', 'retried']

/**
 * Statistics (S1): the counts of each lane are those of the ends that were seen. One commit may hold several steps of a job, so
 * that an end is not seen, because the job was deleted or moved on: such a step may have been counted or not.
 */
export class StatisticsChecker {
  /** By lane: the ends that must be counted, and those that may be. */
  readonly #least = new Map<string, number>()
  readonly #unseen = new Map<string, number>()
  #before: ReadonlyMap<string, CensusJob> = new Map()

  check(census: Census): void {
    const before = this.#before
    const jobs = new Map(census.jobs.map((job) => [job.id, job]))
    this.#before = jobs
    for (const was of before.values()) if (was !== jobs.get(was.id)) this.#noteStep(was, jobs.get(was.id))
    // A job that is enqueued, claimed and ended within one commit.
    for (const job of jobs.values())
      if (!before.has(job.id) && job.attempt > 0) add(this.#unseen, laneOf(job), job.attempt)
    const counted = new Map(census.attempts.map((row) => [laneOf(row), row]))
    for (const lane of new Set([...counted.keys(), ...lanesOf(this.#least)]))
      for (const count of COUNTS) this.#checkCount(lane, count, counted.get(lane)?.[count] ?? 0)
  }

  #noteStep(was: CensusJob, job: CensusJob | undefined): void {
    const lane = laneOf(was)
    const seen = was.fence === null || job === undefined ? undefined : endOf(was, job)
    if (seen !== undefined) add(this.#least, `${lane} ${seen}`, 1)
    add(this.#unseen, lane, unseenIn(was, job) - (seen === undefined ? 0 : 1))
  }

  #checkCount(lane: string, count: Count, counted: number): void {
    const least = this.#least.get(`${lane} ${count}`) ?? 0
    const most = least + (this.#unseen.get(lane) ?? 0)
    if (counted >= least && counted <= most) return
    const wanted = least === most ? String(least) : `${least} to ${most}`
    throw new BrokenPromise(`S1: ${counted} attempts of ${lane} are counted as ${count}, and there were ${wanted}`)
  }
}

/** How the attempt of a claimed job was seen to end. */
function endOf(was: CensusJob, job: CensusJob): Count | undefined {
  if (job.fence !== null) return undefined
  if (job.state === 'done' || job.state === 'failed') return job.state
  return job.state === 'retrying' && job.attempt > was.attempt ? 'retried' : undefined
}

/** Attempts that may have ended in this step, the one that was seen included. */
function unseenIn(was: CensusJob, job: CensusJob | undefined): number {
  if (job === undefined) return 1
  // A sequence counts the attempts of its present item, which may be fewer; a workflow that is suspended counts none.
  const isEnd = was.fence !== null && job.fence !== was.fence && ENDED.has(String(job.state))
  return Math.max(isEnd ? 1 : 0, job.attempt - was.attempt)
}

const ENDED: ReadonlySet<string> = new Set(['done', 'failed', 'retrying'])

function laneOf({ queue, name }: { readonly queue: string; readonly name: string }): string {
  return `${queue}/${name}`
}

function lanesOf(counts: ReadonlyMap<string, number>): string[] {
  return [...counts.keys()].map((key) => key.slice(0, key.lastIndexOf(' ')))
}

function add(counts: Map<string, number>, key: string, count: number): void {
  if (count > 0) counts.set(key, (counts.get(key) ?? 0) + count)
}
