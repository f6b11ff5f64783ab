import { CycleError, ParentMissingError } from '../errors.js'
import { decideLink, parentFateOf, findCycle, parentReason } from '../job/rules/links.js'
import type { LinkPolicy } from '../job/rules/links.js'
import type { State } from '../job/rules/states.js'
import { isFinal } from '../job/rules/states.js'
import { cannotConflict } from './conflicts.js'
import type { Inserted, NewJob } from './store.js'

/** Links between jobs: the parts that both stores share. */

/** A parent: named by id, or by (job, key), which means the unfinished job of the key, else the newest that had it. */
export type Parent = { readonly id: string } | { readonly name: string; readonly key: string }

/** Parents added to a job that waits. */
export interface AddedParents {
  readonly parents: readonly Parent[]
  readonly onFailure: LinkPolicy
  /** How long the job is kept if a parent cancels it. */
  readonly keepMs: number
}

/** A job that was cancelled because a parent failed, was cancelled or was deleted. */
export interface CancelledByParent {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly reason: string
}

/** A parent as the transaction that links to it reads it. */
export interface FoundParent {
  readonly id: string
  readonly name: string
  readonly key: string | null
  readonly state: State
}

export function hasParents(job: NewJob): boolean {
  return job.after !== undefined && job.after.length > 0
}

/** The parents of a bulk that must be read from the store; those in the bulk itself are known. */
export function requestedParents(jobs: readonly NewJob[]): { ids: string[]; keys: { name: string; key: string }[] } {
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

/** Throws one error that lists all missing parents, before anything is written. `jobs`: the bulk that names them. */
export function refuseMissing(
  parents: readonly Parent[],
  found: ReadonlyMap<string, FoundParent>,
  jobs: readonly NewJob[] = [],
): void {
  const missing = parents.filter((parent) => !found.has(nameOf(parent)))
  if (missing.length === 0) return
  const names = new Set(missing.map(nameOf))
  const item = jobs.findIndex(({ after }) => after?.some((parent) => names.has(nameOf(parent))))
  throw new ParentMissingError(missing, jobs.length > 1 && item !== -1 ? ` of item ${item}` : '')
}

/**
 * The job of a schedule or group, stored long before it is enqueued, some of whose parents are deleted by now. It is
 * treated as if they had been deleted while it was blocked by them. With a `reason` it is cancelled.
 */
export function withoutGone(job: NewJob, gone: readonly Parent[]): { job: NewJob; reason: string | null } {
  const names = new Set(gone.map(nameOf))
  const left = { ...job, after: (job.after ?? []).filter((parent) => !names.has(nameOf(parent))) }
  const [first] = gone
  if (first === undefined || decideLink('gone', job.onParentFailure ?? 'wait') !== 'cancels')
    return { job: left, reason: null }
  return { job: left, reason: parentReason('gone', 'id' in first ? first : { name: first.name, id: first.key }) }
}

/** The state of the bulk's jobs and of their parents after the bulk was written. */
export interface RecheckedStates {
  /** Replaced and deleted at once, because they are kept for no time. */
  readonly gone: ReadonlySet<string>
  /** Replaced by a later job of the same bulk: they wait for nothing any more. */
  readonly over: ReadonlySet<string>
}

/**
 * The jobs to read again after a bulk with parents was written: an item may have resolved to an existing job, and may
 * have replaced a parent of an item, or an item. Empty when no job of the bulk can conflict.
 */
export function parentsToRecheck(
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

/** Adds what that second read found. */
export function recheckedStates<Row extends FoundParent>(
  ids: readonly string[],
  rows: readonly Row[],
  inserted: readonly Inserted[],
  found: Map<string, Row>,
): RecheckedStates {
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
  /** The ids of all its parents, in the order given, without duplicates. */
  readonly after: readonly string[]
  /** The parents that block it. */
  readonly open: readonly string[]
  /** Why it is cancelled at once; null when it is not. */
  readonly reason: string | null
}

/**
 * The links to write for the new jobs of a bulk. A parent in the bulk may have resolved to the existing holder of its
 * key: then that job is the parent, and `found` contains it.
 */
export function linksOf(
  jobs: readonly NewJob[],
  inserted: readonly InsertResult[],
  found: ReadonlyMap<string, FoundParent>,
  { gone, over }: RecheckedStates,
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

/**
 * Refuses a cycle that exists only after the bulk was written: two items of a flow can be one job, because the second
 * holds the key or the unique slot of the first. A graph without a cycle can have one then.
 */
export function refuseCycleAmongNew(inserted: readonly Inserted[], links: readonly NewLinks[]): void {
  const isNew = new Set(inserted.filter((one) => one.isNew).map((one) => one.id))
  if (!inserted.some((one) => !one.isNew && isNew.has(one.id))) return
  const byId = new Map(links.map((each) => [each.job.id, each]))
  const path = findCycle([...byId.keys()], (id) => byId.get(id)?.open ?? [])
  if (path !== undefined) throw new CycleError(path.map((id) => `${byId.get(id)?.job.name} ${id}`))
}

function followedBy(one: InsertResult | undefined): string[] {
  return one?.follows === undefined ? [] : [one.follows.id]
}

function idsOf(parents: readonly { readonly id: string }[]): string[] {
  return [...new Set(parents.map(({ id }) => id))]
}

/** A parent of an item: a new job of the bulk itself, or a job that existed before. */
function resolved(
  parent: Parent,
  own: ReadonlyMap<string, Inserted>,
  found: ReadonlyMap<string, FoundParent>,
): { readonly id: string; readonly known: FoundParent | undefined } {
  const fresh = 'id' in parent ? own.get(parent.id) : undefined
  const known = found.get(fresh === undefined ? nameOf(parent) : fresh.id)
  const id = fresh?.id ?? known?.id
  if (id === undefined) throw new Error(`parent ${nameOf(parent)} was read and not found`)
  return { id, known }
}

/** The result of inserting a job that may have conflicted with another. */
export interface InsertResult extends Inserted {
  /** The conflicting job was moved; it must be linked to the parents that the new one names. */
  readonly isMoved?: true
  /** The job was written under the key of this claimed job, and must be blocked until that one ends. */
  readonly follows?: { readonly id: string }
}

export function moveResult(job: NewJob, id: string): InsertResult {
  return hasParents(job) ? { id, isNew: false, isMoved: true } : { id, isNew: false }
}

/** The parents that a moved job waits for, in addition to those it has. */
export interface MovedLinks {
  readonly id: string
  readonly added: AddedParents
}

/**
 * The links of items that moved an existing job instead of being inserted. Add them after the links of all new jobs are
 * written.
 */
export function movedLinksOf(
  jobs: readonly NewJob[],
  inserted: readonly InsertResult[],
  found: ReadonlyMap<string, FoundParent>,
): MovedLinks[] {
  if (!inserted.some((one) => one.isMoved)) return []
  const own = new Map(jobs.map((job, index) => [job.id, inserted[index] as InsertResult]))
  return jobs.flatMap((job) => {
    const one = own.get(job.id) as InsertResult
    // A tick that would wait for the earlier ones moved a job instead, which may be one of these: it must not wait for itself.
    if (one.isMoved !== true || job.onParentFailure === 'run-if-parked') return []
    const parents = (job.after ?? []).map((parent) => ({ id: resolved(parent, own, found).id }))
    const [onFailure, keepMs] = [job.onParentFailure ?? 'wait', job.keepCancelledMs ?? Infinity]
    return [{ id: one.id, added: { parents, onFailure, keepMs } }]
  })
}

/**
 * A failed parent keeps a child blocked under the policy 'wait', because it may be retried; under 'cancel' it cancels
 * the child.
 */
export function isOpen(state: State, policy: LinkPolicy): boolean {
  return decideLink(parentFateOf(state, 'recheck'), policy) !== 'resolves'
}

/**
 * Refuses a job that would wait for the retry of a job with its own key: that job needs the key to be retried, and gets
 * it only when the first has ended. Each would wait for the other.
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
  const why = `the second was ${own.state === 'failed' ? 'failed' : 'cancelled'}, and has the same key, so it can run again only when the first has ended`
  throw new CycleError([child, parent, child], `${why}; give onParentFailure: 'run' or 'cancel', or another key`)
}

/**
 * The policy to write for a parent that is added to a job. A successor runs however its predecessor ends: to be
 * retried, the predecessor would need the key, which the successor holds.
 */
export function policyFor(job: Pick<NewJob, 'name' | 'key'>, parent: FoundParent, policy: LinkPolicy): LinkPolicy {
  const isOwnKey = job.key !== null && job.key === parent.key && job.name === parent.name
  return isOwnKey && policy === 'wait' && !isFinal(parent.state) ? 'run' : policy
}

/** An open link above the parents that are to be added. */
export interface Edge {
  readonly child: string
  readonly parent: string
}

/** Refuses parents that depend, over any number of links, on the job itself. `label` is how an id is shown. */
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
