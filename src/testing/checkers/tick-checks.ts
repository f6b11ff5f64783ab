import type { Census } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'

/**
 * One job a tick (T5): no two jobs are of one tick of a rule, and each tick that has a job names one that is its own. `byHand`
 * keeps the jobs that were run by hand from check to check: they outlive the ledger of a schedule that is deleted.
 */
export function checkTicks(census: Census, byHand: Set<string>): void {
  for (const { byHand: isByHand, job } of census.ticks) if (isByHand === 1 && job !== null) byHand.add(job)
  const firsts = new Map<string, string>()
  const jobs = new Map<string, string>()
  for (const { id, tick } of census.jobs) {
    if (tick === null) continue
    jobs.set(id, tick)
    if (byHand.has(id)) continue
    const first = firsts.get(tick)
    if (first !== undefined) throw new BrokenPromise(`T5: jobs ${first} and ${id} are both of the tick ${tick}`)
    firsts.set(tick, id)
  }
  for (const { schedule, at, job } of census.ticks) {
    const own = job === null ? undefined : jobs.get(job)
    // A job without a row was deleted or pruned.
    if (own !== undefined && own !== `${schedule} ${at}`)
      throw new BrokenPromise(`T5: the ledger of ${schedule} has job ${job} for ${at}, which is of ${own}`)
  }
}

/** A schedule whose rule never changed, and which was never paused, has each tick in its ledger, from the first to the last. */
export function checkUnbroken(census: Census, schedule: string, everyMs: number): number {
  const times = census.ticks.filter((tick) => tick.schedule === schedule && tick.byHand === 0).map((tick) => tick.at)
  times.sort((a, b) => a - b)
  times.forEach((at, i) => {
    const before = times[i - 1]
    if (before !== undefined && at - before !== everyMs)
      throw new BrokenPromise(`T5: the ledger of ${schedule} has nothing between ${before} and ${at}`)
  })
  return times.length
}
