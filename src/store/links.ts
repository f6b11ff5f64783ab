import { CycleError, ParentMissingError } from '../errors.js'
import { decideLink, parentFateOf, findCycle, parentReason } from '../job/rules/links.js'
import type { LinkPolicy } from '../job/rules/links.js'
import type { State } from '../job/rules/states.js'
import { isFinal } from '../job/rules/states.js'
import { cannotConflict } from './conflicts.js'
import type { Inserted, NewJob } from './store.js'

/** What jobs that come after others have in common on both stores. */

/** A job to come after: by id, or the unfinished one of a (job, key), else the newest that had it. */
export type Parent = { readonly id: string } | { readonly name: string; readonly key: string }

/** Parents that are added to a job that waits. */
export interface AddedParents {
  readonly parents: readonly Parent[]
  readonly onFailure: LinkPolicy
  /** How long the job is kept if a parent cancels it. */
  readonly keepMs: number
}

/** A job that was called off because a parent failed, was cancelled or is gone. */
export interface CancelledByParent {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly reason: string
}

/** A parent as it stands in the transaction that comes after it. */
export interface FoundParent {
  readonly id: string
  readonly name: string
  readonly key: string | null
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

/** All that are missing in one error, before anything is written. `jobs`: the bulk in which they are named. */
export function refuseMissing(
  asked: readonly Parent[],
  found: ReadonlyMap<string, FoundParent>,
  jobs: readonly NewJob[] = [],
): void {
  const missing = asked.filter((parent) => !found.has(nameOf(parent)))
  if (missing.length === 0) return
  const names = new Set(missing.map(nameOf))
  const item = jobs.findIndex(({ after }) => after?.some((parent) => names.has(nameOf(parent))))
  throw new ParentMissingError(missing, jobs.length > 1 && item !== -1 ? ` of item ${item}` : '')
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

/** What became of the jobs of a bulk, and of those it comes after, by the time it was written. */
export interface Looked {
  /** Replaced, and kept for no time. */
  readonly gone: ReadonlySet<string>
  /** Replaced, by a later one of the same bulk: nothing is to be waited for any more. */
  readonly over: ReadonlySet<string>
}

/**
 * What is looked at once more when a bulk with parents is written: a job of it may have turned out to be another one, and may
 * have replaced one that a child comes after, or a child. Nothing, where no job of the bulk can conflict.
 */
export function metIn(
  jobs: readonly NewJob[],
  inserted: readonly Inserted[],
  found: ReadonlyMap<string, FoundParent>,
): string[] {
  if (jobs.every(cannotConflict)) return []
  const named = new Set(jobs.flatMap((job) => (job.after ?? []).map(nameOf)))
  const own = inserted.filter((_, index) => {
    const job = jobs[index] as NewJob
    return hasParents(job) || named.has(job.id)
  })
  return [...new Set([...own, ...found.values()].map((one) => one.id))]
}

/** Takes in what that look has found. */
export function lookedAt<Row extends FoundParent>(
  ids: readonly string[],
  rows: readonly Row[],
  inserted: readonly Inserted[],
  found: Map<string, Row>,
): Looked {
  const byId = new Map(rows.map((row) => [row.id, row]))
  const isNew = new Set(inserted.filter((one) => one.isNew).map((one) => one.id))
  for (const [name, parent] of found) found.set(name, byId.get(parent.id) ?? parent)
  for (const row of rows) if (!isNew.has(row.id) || isFinal(row.state)) found.set(row.id, row)
  const gone = new Set(ids.filter((id) => !byId.has(id)))
  return { gone, over: new Set([...gone, ...rows.filter((row) => isFinal(row.state)).map((row) => row.id)]) }
}

/** The links of one new job. */
export interface NewLinks {
  readonly job: NewJob
  /** Ids of all its parents, in the order they were given, each once. */
  readonly after: readonly string[]
  /** Those it waits for. */
  readonly open: readonly string[]
  /** Why it is called off at once; null: it is not. */
  readonly reason: string | null
}

/**
 * Which links are written for the jobs of a bulk that are new. One of the bulk itself may have turned out to be another job,
 * which holds its key: then that is the parent, and `found` has it too.
 */
export function linksOf(
  jobs: readonly NewJob[],
  inserted: readonly InsertResult[],
  found: ReadonlyMap<string, FoundParent>,
  { gone, over }: Looked,
): NewLinks[] {
  const own = new Map(jobs.map((job, index) => [job.id, inserted[index] as InsertResult]))
  return jobs.flatMap((job) => {
    if (!hasParents(job) || own.get(job.id)?.isNew !== true || gone.has(job.id)) return []
    const policy = job.onParentFailure ?? 'wait'
    const parents = (job.after ?? []).map((parent) => resolved(parent, own, found))
    const after = [...new Set([...idsOf(parents), ...followedBy(own.get(job.id))])]
    if (over.has(job.id)) return [{ job, after, open: [], reason: null }]
    refuseOwnKey(
      job,
      parents.flatMap(({ known }) => known ?? []),
      policy,
    )
    const lost = parents.find(({ id }) => gone.has(id) && decideLink('gone', policy) === 'cancels')
    const followed = followedBy(own.get(job.id))
    const open = parents.filter(
      ({ id, known }) =>
        !gone.has(id) && !followed.includes(id) && (known === undefined || isOpen(known.state, policy)),
    )
    return [{ job, after, open: idsOf(open), reason: lost === undefined ? null : parentReason('gone', lost) }]
  })
}

function followedBy(one: InsertResult | undefined): string[] {
  return one?.follows === undefined ? [] : [one.follows.id]
}

function idsOf(parents: readonly { readonly id: string }[]): string[] {
  return [...new Set(parents.map(({ id }) => id))]
}

/** A parent of a bulk's job: a new one of the bulk itself, or one that is known from before. */
function resolved(
  parent: Parent,
  own: ReadonlyMap<string, Inserted>,
  found: ReadonlyMap<string, FoundParent>,
): { readonly id: string; readonly known: FoundParent | undefined } {
  const fresh = 'id' in parent ? own.get(parent.id) : undefined
  const known = found.get(fresh === undefined ? nameOf(parent) : fresh.id)
  const id = fresh?.id ?? known?.id
  if (id === undefined) throw new Error(`parent ${nameOf(parent)} was looked for and not found`)
  return { id, known }
}

/** What became of a job that may have met another. */
export interface InsertResult extends Inserted {
  /** The one it met is moved, and is to be linked to the parents that the new one names. */
  readonly isMoved?: true
  /** It is written under the key of this one, which is claimed, and must be blocked until this one ends. */
  readonly follows?: { readonly id: string }
}

export function movedFor(job: NewJob, id: string): InsertResult {
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
  inserted: readonly InsertResult[],
  found: ReadonlyMap<string, FoundParent>,
): MovedLinks[] {
  if (!inserted.some((one) => one.isMoved)) return []
  const own = new Map(jobs.map((job, index) => [job.id, inserted[index] as InsertResult]))
  return jobs.flatMap((job) => {
    const one = own.get(job.id) as InsertResult
    if (one.isMoved !== true) return []
    const parents = (job.after ?? []).map((parent) => ({ id: resolved(parent, own, found).id }))
    const [onFailure, keepMs] = [job.onParentFailure ?? 'wait', job.keepCancelledMs ?? Infinity]
    return [{ id: one.id, added: { parents, onFailure, keepMs } }]
  })
}

/** A failed parent blocks a child that waits, since it may be retried, and cancels one whose policy says so. */
export function isOpen(state: State, policy: LinkPolicy): boolean {
  return decideLink(parentFateOf(state, 'look'), policy) !== 'resolves'
}

/**
 * A job that waits until one with its own key is retried: that one needs the key for it, and would get it only when the job has
 * ended. So each would wait for the other.
 */
export function refuseOwnKey(
  job: Pick<NewJob, 'id' | 'name' | 'key'>,
  parents: readonly FoundParent[],
  policy: LinkPolicy,
): void {
  if (job.key === null || policy !== 'wait') return
  const stopped = (state: State): boolean => state === 'failed' || state === 'cancelled'
  const own = parents.find(({ name, key, state }) => key === job.key && name === job.name && stopped(state))
  if (own === undefined) return
  const [child, parent] = [`${job.name} ${job.id}`, `${own.name} ${own.id}`]
  const why = `the second was ${own.state === 'failed' ? 'tried and failed' : 'cancelled'}, and has the same key, so it can run again only when the first has ended`
  throw new CycleError([child, parent, child], `${why}; give onParentFailure: 'run' or 'cancel', or another key`)
}

/**
 * What is written for a parent that is added to a job. A successor runs however the job before it ends: to be retried, that
 * one would need the key, which the successor has.
 */
export function policyFor(job: Pick<NewJob, 'name' | 'key'>, parent: FoundParent, asked: LinkPolicy): LinkPolicy {
  const isOwnKey = job.key !== null && job.key === parent.key && job.name === parent.name
  return isOwnKey && asked === 'wait' && !isFinal(parent.state) ? 'run' : asked
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
