import type { Census } from '../../store/census.js'
import { isFinal } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'

/** Groups (G1): kept counts are those of a full count, and what follows a group comes once, and not before it is complete. */
export class GroupChecker {
  readonly #followers = new Map<string, string>()

  check(census: Census): void {
    checkCounts(census)
    const complete = new Set(census.groups.filter((each) => each.completedAt !== null).map(({ group }) => group))
    for (const { id, follows } of census.jobs) {
      if (follows === null) continue
      const first = this.#followers.get(follows) ?? id
      if (first !== id) throw new BrokenPromise(`G1: jobs ${first} and ${id} both follow group ${follows}`)
      if (!complete.has(follows))
        throw new BrokenPromise(`G1: job ${id} follows group ${follows}, which is not complete`)
      this.#followers.set(follows, id)
    }
  }
}

function checkCounts(census: Census): void {
  const wanted = new Map<string, number>()
  for (const job of census.jobs) {
    if (job.group === null || job.state === null) continue
    // A claim writes nothing about single jobs: one that runs is counted as ready.
    const name = `${job.group} ${job.queue} ${job.state === 'running' ? 'ready' : job.state}`
    wanted.set(name, (wanted.get(name) ?? 0) + 1)
  }
  for (const { group, queue, state, members } of census.counts) {
    const name = `${group} ${queue} ${state}`
    const there = wanted.get(name) ?? 0
    wanted.delete(name)
    // Members that ended and were deleted stay counted.
    if (members !== there && !(isFinal(state) && members > there))
      throw new BrokenPromise(`G1: ${members} members are counted as ${name}, and there are ${there}`)
  }
  for (const [name, there] of wanted) throw new BrokenPromise(`G1: ${there} members are ${name}, and none is counted`)
}

/** A sealed group without unfinished members is complete, once everything has drained. */
export function isWaiting(group: Census['groups'][number]): boolean {
  return group.sealedAt !== null && group.completedAt === null && group.unfinished === 0
}
