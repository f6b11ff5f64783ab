import type { LinkPolicy } from '../../job/rules/links.js'
import type { State } from '../../job/rules/states.js'
import {
  requestedParents,
  hasParents,
  isOpen,
  linksOf,
  recheckedStates,
  parentsToRecheck,
  movedLinksOf,
  nameOf,
  policyFor,
  refuseCycleAmongNew,
  refuseMissing,
  refuseOwnKey,
} from '../links.js'
import type { AddedParents, FoundParent, InsertResult, MovedLinks, NewLinks, Parent } from '../links.js'
import type { JobRow, NewJob } from '../store.js'
import { awaited } from './verb.js'
import type { Answer, Verb } from './verb.js'

/* Writes jobs that have parents. Each store handles the end of a parent in its own way. */

/** Found parents by `nameOf` of the reference that named them. */
export type FoundParents<Found extends FoundParent> = Map<string, Found>

export interface NewLink<Found, Job> {
  readonly parent: Found
  readonly child: Job
  readonly onFailure: LinkPolicy
  readonly keepMs: number
}

export interface LinkSteps<Found extends FoundParent, Job extends JobRow> {
  parentsById(ids: readonly string[]): Answer<readonly Found[]>
  /** Each with the name and key that it was found by. */
  parentsByKey(
    keys: readonly { readonly name: string; readonly key: string }[],
  ): Answer<readonly (readonly [Parent, Found])[]>
  /**
   * Locks these, so that no other process deletes them before the transaction ends; removes those already deleted from
   * the map.
   */
  holdParents(found: FoundParents<Found>): Answer<unknown>
  /**
   * Only one transaction at a time adds parents to existing jobs, so that no two transactions make a cycle together.
   */
  lockLinking(): Answer<unknown>
  /** Refuses parents that depend, over any number of links, on the job itself. */
  refuseCycle(job: Job, parents: readonly Found[]): Answer<unknown>
  addLinks(links: readonly NewLink<Found, Job>[]): Answer<unknown>
  /** Makes the ends of these parents reach their children. An end that has passed is handled as if it came now. */
  watchParents(parents: readonly Found[]): Answer<unknown>
  putAfter(job: Job, after: readonly string[]): Answer<unknown>
  /** Writes the links of a bulk's new jobs, which these links block. */
  writeLinks(links: readonly NewLinks[], found: FoundParents<Found>): Answer<unknown>
  cancelNew(job: NewJob, reason: string): Answer<unknown>
  /**
   * Adds parents to a job that this transaction has moved, and blocks it. Skips a job that a later item of the bulk
   * replaced.
   */
  linkMoved(moved: MovedLinks): Answer<unknown>
}

/** The parents of a bulk as they are before it is written. Throws when one is missing. */
export function* findParents<Found extends FoundParent, Job extends JobRow>(
  steps: LinkSteps<Found, Job>,
  jobs: readonly NewJob[],
): Verb<FoundParents<Found>> {
  if (!jobs.some(hasParents)) return new Map()
  const { ids, keys } = requestedParents(jobs)
  return yield* lookFor(steps, [...ids.map((id) => ({ id })), ...keys], jobs)
}

function* lookFor<Found extends FoundParent, Job extends JobRow>(
  steps: LinkSteps<Found, Job>,
  parents: readonly Parent[],
  jobs: readonly NewJob[] = [],
): Verb<FoundParents<Found>> {
  const found: FoundParents<Found> = new Map()
  const ids = parents.flatMap((parent) => ('id' in parent ? [parent.id] : []))
  const keys = parents.flatMap((parent) => ('id' in parent ? [] : [parent]))
  if (ids.length > 0) for (const row of yield* awaited(steps.parentsById(ids))) found.set(row.id, row)
  if (keys.length > 0)
    for (const [parent, row] of yield* awaited(steps.parentsByKey(keys))) found.set(nameOf(parent), row)
  yield* awaited(steps.holdParents(found))
  refuseMissing(parents, found, jobs)
  return found
}

/** Blocks the jobs of a bulk that have open parents: first the new jobs, then the moved ones. */
export function* linkJobs<Found extends FoundParent, Job extends JobRow>(
  steps: LinkSteps<Found, Job>,
  jobs: readonly NewJob[],
  inserted: readonly InsertResult[],
  found: FoundParents<Found>,
): Verb<void> {
  const ids = parentsToRecheck(jobs, inserted, found)
  const rows = ids.length === 0 ? [] : yield* awaited(steps.parentsById(ids))
  const links = linksOf(jobs, inserted, found, recheckedStates(ids, rows, inserted, found))
  refuseCycleAmongNew(inserted, links)
  yield* awaited(steps.writeLinks(links, found))
  for (const { job, reason } of links) if (reason !== null) yield* awaited(steps.cancelNew(job, reason))
  for (const moved of movedLinksOf(jobs, inserted, found)) yield* awaited(steps.linkMoved(moved))
}

/** Adds parents to a waiting job; returns those that block it. */
export function* addParents<Found extends FoundParent, Job extends JobRow>(
  steps: LinkSteps<Found, Job>,
  job: Job,
  { parents: added, onFailure, keepMs }: AddedParents,
): Verb<readonly string[]> {
  yield* awaited(steps.lockLinking())
  const found = yield* lookFor(steps, added)
  const parents = [...new Map([...found.values()].map((parent) => [parent.id, parent])).values()]
  refuseOwnKey(job, parents, onFailure)
  yield* awaited(steps.refuseCycle(job, parents))
  const open = parents.filter(({ state }) => isOpen(state, onFailure) || mayHaveLink(job, state))
  yield* awaited(
    steps.addLinks(
      open.map((parent) => ({ parent, child: job, onFailure: policyFor(job, parent, onFailure), keepMs })),
    ),
  )
  yield* awaited(steps.watchParents(open))
  yield* awaited(steps.putAfter(job, [...new Set([...job.after, ...parents.map(({ id }) => id)])]))
  return open.map(({ id }) => id)
}

/**
 * The job may have a link to this stopped parent already, under an earlier policy. The new policy replaces it, and the
 * to-do of `watchParents` applies it.
 */
function mayHaveLink(job: JobRow, parent: State): boolean {
  return (job.state === 'blocked' || job.state === 'paused') && (parent === 'failed' || parent === 'cancelled')
}
