import { CycleError, ParentMissingError } from '../errors.js'
import { decideLink, findCycle, parentReason } from '../job/links.js'
import type { OnParentFailure } from '../job/links.js'
import type { State } from '../job/states.js'
import type { Inserted, NewJob } from './store.js'

/** What jobs that come after others have in common on both stores. */

/** A job to come after: by id, or the unfinished one of a (job, key), else the newest that had it. */
export type Parent = { readonly id: string } | { readonly name: string; readonly key: string }

/** Parents that are added to a job that waits. */
export interface AddedParents {
  readonly parents: readonly Parent[]
  readonly onFailure: OnParentFailure
  /** How long the job is kept if a parent cancels it. */
  readonly keepMs: number
}

/** A job that was called off because a parent failed, was cancelled or is gone. */
export interface CalledOff {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly reason: string
}

/** A parent as it stands in the transaction that comes after it. */
export interface FoundParent {
  readonly id: string
  readonly name: string
  readonly state: State
}

export function hasParents(job: NewJob): boolean {
  return job.after !== undefined && job.after.length > 0
}

/** What is to be asked of the store about the parents of a bulk: those of the bulk itself are known. */
export function askedParents(jobs: readonly NewJob[]): { ids: string[]; keys: { name: string; key: string }[] } {
  const own = new Set(jobs.map((job) => job.id))
  const ids = new Set<string>()
  const keys = new Map<string, { name: string; key: string }>()
  for (const { after } of jobs)
    for (const parent of after ?? [])
      if (!('id' in parent)) keys.set(nameOf(parent), parent)
      else if (!own.has(parent.id)) ids.add(parent.id)
  return { ids: [...ids], keys: [...keys.values()] }
}

export function nameOf(parent: Parent): string {
  return 'id' in parent ? parent.id : `${parent.name}\n${parent.key}`
}

/** All that are missing in one error, before anything is written. */
export function refuseMissing(asked: readonly Parent[], found: ReadonlyMap<string, FoundParent>): void {
  const missing = asked.filter((parent) => !found.has(nameOf(parent)))
  if (missing.length > 0) throw new ParentMissingError(missing)
}

/**
 * A job that was written down long before it is enqueued, some of whose parents are gone by now: as if they had gone while it
 * waited for them. With a reason it is called off.
 */
export function withoutGone(job: NewJob, gone: readonly Parent[]): { job: NewJob; reason: string | null } {
  const names = new Set(gone.map(nameOf))
  const left = { ...job, after: (job.after ?? []).filter((parent) => !names.has(nameOf(parent))) }
  const [first] = gone
  if (first === undefined || decideLink('gone', job.onParentFailure ?? 'wait') !== 'cancels')
    return { job: left, reason: null }
  return { job: left, reason: parentReason('gone', 'id' in first ? first : { name: first.name, id: first.key }) }
}

/** The links of one new job. */
export interface NewLinks {
  readonly job: NewJob
  /** Ids of all its parents, in the order they were given, each once. */
  readonly after: readonly string[]
  /** Those it waits for. */
  readonly open: readonly string[]
}

/**
 * Which links are written for the jobs of a bulk that are new. One of the bulk itself may have turned out to be another job,
 * which holds its key: then that is the parent, and `found` has it too.
 */
export function linksOf(
  jobs: readonly NewJob[],
  inserted: readonly Inserted[],
  found: ReadonlyMap<string, FoundParent>,
): NewLinks[] {
  const own = new Map(jobs.map((job, index) => [job.id, inserted[index] as Inserted]))
  const links: NewLinks[] = []
  for (const job of jobs) {
    if (!hasParents(job) || own.get(job.id)?.isNew !== true) continue
    const after = new Set<string>()
    const open = new Set<string>()
    for (const parent of job.after ?? []) {
      const { id, fresh, known } = resolved(parent, own, found)
      after.add(id)
      if (fresh?.isNew === true || (known !== undefined && isOpen(known.state, job.onParentFailure ?? 'wait')))
        open.add(id)
    }
    links.push({ job, after: [...after], open: [...open] })
  }
  return links
}

/** A parent of a bulk's job: one of the bulk itself, or one that was there. */
function resolved(
  parent: Parent,
  own: ReadonlyMap<string, Inserted>,
  found: ReadonlyMap<string, FoundParent>,
): { readonly id: string; readonly fresh: Inserted | undefined; readonly known: FoundParent | undefined } {
  const fresh = 'id' in parent ? own.get(parent.id) : undefined
  const known = found.get(fresh === undefined ? nameOf(parent) : fresh.id)
  const id = fresh?.id ?? known?.id
  if (id === undefined) throw new Error(`parent ${nameOf(parent)} was looked for and not found`)
  return { id, fresh, known }
}

/** What became of a job that may have met another. */
export interface Met extends Inserted {
  /** The one it met is moved, and is to be linked to the parents that the new one names. */
  readonly isMoved?: true
}

export function movedFor(job: NewJob, id: string): Met {
  return hasParents(job) ? { id, isNew: false, isMoved: true } : { id, isNew: false }
}

/** What a job that was moved comes after from now on, beside what it waits for already. */
export interface MovedLinks {
  readonly id: string
  readonly added: AddedParents
}

/** Of those of a bulk that moved a job instead of coming themselves. To be added when the links of all new ones are written. */
export function movedLinksOf(
  jobs: readonly NewJob[],
  inserted: readonly Met[],
  found: ReadonlyMap<string, FoundParent>,
): MovedLinks[] {
  if (!inserted.some((one) => one.isMoved)) return []
  const own = new Map(jobs.map((job, index) => [job.id, inserted[index] as Met]))
  return jobs.flatMap((job) => {
    const one = own.get(job.id) as Met
    if (one.isMoved !== true) return []
    const parents = (job.after ?? []).map((parent) => ({ id: resolved(parent, own, found).id }))
    const [onFailure, keepMs] = [job.onParentFailure ?? 'wait', job.keepCancelledMs ?? Infinity]
    return [{ id: one.id, added: { parents, onFailure, keepMs } }]
  })
}

/** Those of a bulk that were named as parents and turned out to be other jobs. */
export function standIns(jobs: readonly NewJob[], inserted: readonly Inserted[]): string[] {
  const named = new Set(jobs.flatMap((job) => (job.after ?? []).map(nameOf)))
  return jobs.flatMap((job, index) => {
    const one = inserted[index] as Inserted
    return !one.isNew && named.has(job.id) ? [one.id] : []
  })
}

/** A parent that failed stays in the way of who waits, since it may be retried, and calls off who wants that. */
export function isOpen(state: State, onFailure: OnParentFailure): boolean {
  if (state === 'done') return false
  return onFailure !== 'run' || (state !== 'failed' && state !== 'cancelled')
}

/** An open link above those that are to be added. */
export interface Edge {
  readonly child: string
  readonly parent: string
}

/** Refuses parents that come, by whatever way, after the job itself. `label` is how an id is shown. */
export function refuseCycle(
  id: string,
  added: readonly string[],
  edges: readonly Edge[],
  label: (id: string) => string,
): void {
  const parents = new Map<string, string[]>([[id, [...added]]])
  for (const { child, parent } of edges) {
    const known = parents.get(child)
    if (known === undefined) parents.set(child, [parent])
    else known.push(parent)
  }
  const path = findCycle([id], (node) => parents.get(node) ?? [])
  if (path !== undefined) throw new CycleError(path.map(label))
}
