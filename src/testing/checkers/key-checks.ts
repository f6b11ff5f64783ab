import type { Census, CensusJob } from '../../store/census.js'
import { isFinal } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'

/**
 * Keys (I7): at most one unfinished job per (job, key), and beside it at most one successor, which is not claimed and waits for
 * the end of the other. Every unfinished job holds its key, and no other job does.
 */
export function checkKeys(
  before: ReadonlyMap<string, CensusJob>,
  census: Census,
  { count }: { readonly count: (what: string) => void },
): void {
  const holders = new Map<string, CensusJob[]>()
  const held = new Set(census.keys.map(({ name, key, seq }) => `${name}\n${key}\n${seq}`))
  for (const job of census.jobs) {
    if (job.key === null || job.state === null || isFinal(job.state)) continue
    if (!held.delete(`${job.name}\n${job.key}\n${job.seq}`))
      throw new BrokenPromise(`I7: job ${job.id} does not hold its key`)
    const name = `${job.name}\n${job.key}`
    holders.set(name, [...(holders.get(name) ?? []), job])
  }
  if (held.size > 0) throw new BrokenPromise(`I7: ${held.size} keys are held by no unfinished job`)
  for (const jobs of holders.values()) if (jobs.length > 1) checkSuccessor(jobs, before, count)
}

function checkSuccessor(
  jobs: readonly CensusJob[],
  before: ReadonlyMap<string, CensusJob>,
  count: (what: string) => void,
): void {
  const [first, second, third] = jobs.toSorted((a, b) => a.seq - b.seq) as [CensusJob, CensusJob, CensusJob?]
  const both = `jobs ${first.id} (${first.state}) and ${second.id} (${second.state}) hold key ${JSON.stringify(first.key)}`
  if (third !== undefined) throw new BrokenPromise(`I7: ${both}, and so does ${third.id}`)
  if (second.fence !== null || (second.state !== 'blocked' && second.state !== 'paused'))
    throw new BrokenPromise(`I7: ${both}, and the second does not wait`)
  if (!second.after.includes(first.id))
    throw new BrokenPromise(`I7: ${both}, and the second does not wait for the first`)
  if (before.has(second.id)) return
  if (first.fence === null && (before.get(first.id)?.fence ?? null) === null && !hadSuccessor(first, before))
    throw new BrokenPromise(`I7: ${both}, and no worker had the first when the second was written`)
  count('successors of running jobs')
}

/** A successor that is replaced makes room for the next one, also when the first job waits again by then. */
function hadSuccessor(first: CensusJob, before: ReadonlyMap<string, CensusJob>): boolean {
  return [...before.values()].some(
    ({ name, key, after, id }) =>
      name === first.name && key === first.key && id !== first.id && after.includes(first.id),
  )
}
