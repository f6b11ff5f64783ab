import type { Census, CensusJob } from '../../store/census.js'
import type { Facts } from './checks.js'

/** Which jobs were pruned when their time was over (S7). A job that is removed before that is lost, and the checker of I1 reports it. */
export class PruneChecker {
  readonly #pruned = new Set<string>()

  check(before: ReadonlyMap<string, CensusJob>, jobs: ReadonlyMap<string, CensusJob>, facts: Facts): void {
    for (const job of before.values()) {
      if (jobs.has(job.id) || job.keepUntil === null || job.keepUntil > facts.databaseNow) continue
      this.#pruned.add(job.id)
      facts.count('jobs pruned')
    }
  }

  has(id: string): boolean {
    return this.#pruned.has(id)
  }
}

/** Faults have stopped for as long as the fleet may take to drain: what was kept long enough must have been pruned. */
export function findUnpruned(census: Census, now: number): string | undefined {
  const late = census.jobs.filter(({ keepUntil }) => keepUntil !== null && keepUntil <= now)
  const oldest = late.reduce((longest, job) => Math.max(longest, now - (job.keepUntil ?? now)), 0)
  return late.length === 0
    ? undefined
    : `S7: ${late.length} jobs were kept long enough and are not pruned, the oldest for ${oldest.toFixed(0)} ms`
}
