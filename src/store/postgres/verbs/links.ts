import type { Inserted, InsertOptions, NewJob } from '../../store.js'
import {
  askedParents,
  isOpen,
  linksOf,
  lookedAt,
  metIn,
  movedLinksOf,
  nameOf,
  policyFor,
  refuseCycle,
  refuseMissing,
  refuseOwnKey,
} from '../../links.js'
import type { AddedParents, MovedLinks, NewLinks, Parent } from '../../links.js'
import { isFinal } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import { numberOf } from '../connection/executor.js'
import { addLinks, byId, lookAt, toParent } from './link-rows.js'
import type { ParentRow, StandingParent } from './link-rows.js'
import { callOff, putIn, takeOut } from './moves.js'
import { DAY_MS, NUMBER_BITS } from '../queries/numbers.js'
import { readById } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf, finite } from '../connection/session.js'
import { insertAmong } from './successors.js'
import type { PlannedJob } from './write.js'

/*
 * Writing jobs that come after others. A parent that is unfinished, or may be retried, is only read here: a to-do is written
 * beside the link, and `promoteJobs` sees to it (link-todos.ts) that its end is told. So a caller's transaction, which may stay
 * open for as long as it likes, holds up nobody who runs or ends a parent.
 */

type Found = Map<string, StandingParent>

/** Writes a bulk in which jobs have parents. */
export async function insertLinked(
  s: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Inserted[]> {
  const found = await findParents(s, jobs)
  const inserted = await insertAmong(s, planned(jobs, found), options)
  const met = metIn(jobs, inserted, found)
  const links = linksOf(jobs, inserted, found, lookedAt(met, await byId(s, met), inserted, found))
  await writeLinks(s, links, found)
  for (const { job, reason } of links) if (reason !== null) await callOff(s, job, reason)
  for (const moved of movedLinksOf(jobs, inserted, found)) await linkMoved(s, moved)
  return inserted
}

/** The parents of a bulk as they stand before it is written, held against deletion. Those missing are refused. */
export async function findParents(s: Session, jobs: readonly NewJob[]): Promise<Found> {
  const { ids, keys } = askedParents(jobs)
  return lookFor(s, [...ids.map((id) => ({ id })), ...keys], jobs)
}

async function lookFor(s: Session, parents: readonly Parent[], jobs: readonly NewJob[] = []): Promise<Found> {
  const found: Found = new Map()
  const ids = parents.flatMap((parent) => ('id' in parent ? [parent.id] : []))
  const keys = parents.filter((parent) => !('id' in parent))
  for (const row of await byId(s, ids)) found.set(row.id, row)
  const keyed = keys.length === 0 ? [] : await s.query<KeyedRow>(s.queries.parentsByKey, JSON.stringify(keys))
  for (const row of keyed) found.set(nameOf({ name: row.askedName, key: row.askedKey }), toParent(row))
  await hold(s, found)
  refuseMissing(parents, found, jobs)
  return found
}

/** One that was forgotten between the look and the lock is missing. */
async function hold(s: Session, found: Found): Promise<void> {
  const open = [...found.values()].filter((parent) => parent.state !== 'done').map((parent) => parent.ref)
  if (open.length === 0) return
  const held = await s.query<{ ref: unknown }>(s.queries.holdParents, arrayOf(open))
  const there = new Set(held.map((row) => numberOf(row.ref)))
  for (const [name, parent] of found) if (parent.state !== 'done' && !there.has(parent.ref)) found.delete(name)
}

type KeyedRow = ParentRow & { readonly askedName: string; readonly askedKey: string }

/** Parents as they are now, by their numbers. */
export async function parentsByRef(s: Session, refs: readonly number[]): Promise<Map<number, StandingParent>> {
  if (refs.length === 0) return new Map()
  const rows = await s.query<ParentRow>(s.queries.parentsByRef, arrayOf(refs))
  return new Map(rows.map((row) => [numberOf(row.ref), toParent(row)]))
}

/** What a row says from the start: nobody may claim a child before its links are written. */
function planned(jobs: readonly NewJob[], found: Found): PlannedJob[] {
  const own = new Set(jobs.map((job) => job.id))
  const parents = new Set(jobs.flatMap((job) => (job.after ?? []).map(nameOf)))
  return jobs.map((job) => {
    const names = (job.after ?? []).map(nameOf)
    const isWaiting = (name: string): boolean => {
      const parent = found.get(name)
      return own.has(name) || (parent !== undefined && isOpen(parent.state, job.onParentFailure ?? 'wait'))
    }
    const after = [...new Set(names.map((name) => found.get(name)?.id ?? name))]
    return {
      ...job,
      planned: {
        after: names.length === 0 ? undefined : JSON.stringify(after),
        blocked: names.some(isWaiting) || undefined,
        is_parent: parents.has(job.id) || undefined,
      },
    }
  })
}

async function writeLinks(s: Session, links: readonly NewLinks[], found: Found): Promise<void> {
  const byParent = new Map([...found.values()].map((parent) => [parent.id, parent]))
  const refs = await newRefs(s, links)
  const refOf = (id: string): number => (byParent.get(id)?.ref ?? refs.get(id)) as number
  await addLinks(
    s,
    links.flatMap(({ job, open }) =>
      open.map((id) => ({
        parent: refOf(id),
        child: refs.get(job.id) as number,
        onFailure: job.onParentFailure ?? 'wait',
        keepMs: finite(job.keepCancelledMs ?? Infinity),
      })),
    ),
  )
  await correct(s, links, refs)
  const open = new Set(links.flatMap((each) => each.open))
  await lookAt(
    s,
    [...byParent.values()].filter((parent) => open.has(parent.id)),
  )
}

async function newRefs(s: Session, links: readonly NewLinks[]): Promise<Map<string, number>> {
  const ids = [...new Set(links.flatMap(({ job, open }) => [job.id, ...open]))]
  const today = BigInt(Math.floor((await s.now()) / DAY_MS) - 1) << BigInt(NUMBER_BITS)
  const rows = await s.query<{ ref: unknown; id: string }>(s.queries.newRefs, JSON.stringify(ids), String(today))
  return new Map(rows.map((row) => [row.id, numberOf(row.ref)]))
}

/** Where a job of the bulk turned out to be another one, its children were planned for one that is not there. */
async function correct(s: Session, links: readonly NewLinks[], refs: ReadonlyMap<string, number>): Promise<void> {
  const changed = links.filter(({ job, after }) => after.some((id, index) => !isNamed(job, id, index)))
  const rows = changed.map(({ job, after }) => ({ ref: refs.get(job.id), after: JSON.stringify(after) }))
  if (rows.length > 0) await s.query(s.queries.putAfter, JSON.stringify(rows))
  const free = links.filter(({ open }) => open.length === 0).map(({ job }) => refs.get(job.id) as number)
  if (free.length === 0) return
  await freeJobs(s, arrayOf(free))
  s.note({ dueInMs: 0 })
}

/** Those that wait for nobody any more wait for their time. */
export async function freeJobs(s: Session, refs: string): Promise<void> {
  const freed = await s.query<{ grp: string | null; queue: string; state: State }>(s.queries.freeJobs, refs)
  for (const { grp, queue, state } of freed) {
    s.tally.leave({ group: grp, queue }, 'blocked')
    s.tally.enter({ group: grp, queue }, state)
  }
}

function isNamed(job: NewJob, id: string, index: number): boolean {
  const parent = job.after?.[index]
  return parent !== undefined && 'id' in parent && parent.id === id
}

/** A job that this transaction has moved is nobody else's until it ends: it is taken out once more, and blocked. */
async function linkMoved(s: Session, { id, added }: MovedLinks): Promise<void> {
  const job = await readById(s, id)
  // A later one of the bulk has replaced it.
  if (job === undefined || isFinal(job.state)) return
  if (!(await takeOut(s, job))) throw new Error(`job ${id} was moved and is not where it was put`)
  const open = await addParents(s, job, added)
  const state = open.length > 0 && job.state !== 'paused' ? 'blocked' : job.state
  await putIn(s, [{ job, state }], await s.now())
}

/** Adds parents to a job that was taken out of where it waits; gives those it must wait for. */
export async function addParents(s: Session, job: Standing, added: AddedParents): Promise<readonly string[]> {
  await s.query(s.queries.lockLinking)
  const found = await lookFor(s, added.parents)
  const parents = [...new Map([...found.values()].map((parent) => [parent.id, parent])).values()]
  refuseOwnKey(job, parents, added.onFailure)
  await refuseRing(s, job, parents)
  const open = parents.filter(({ state }) => isOpen(state, added.onFailure))
  const keepMs = finite(added.keepMs)
  await addLinks(
    s,
    open.map((parent) => ({
      parent: parent.ref,
      child: job.ref,
      onFailure: policyFor(job, parent, added.onFailure),
      keepMs,
    })),
  )
  await lookAt(s, open)
  const after = [...new Set([...job.after, ...parents.map(({ id }) => id)])]
  await s.query(s.queries.putAfter, JSON.stringify([{ ref: job.ref, after: JSON.stringify(after) }]))
  return open.map(({ id }) => id)
}

async function refuseRing(s: Session, job: Standing, added: readonly StandingParent[]): Promise<void> {
  const refs = arrayOf(added.map(({ ref }) => ref))
  const above = await s.query<{ child: unknown; parent: unknown }>(s.queries.linksAbove, refs)
  const edges = above.map(({ child, parent }) => ({ child: String(numberOf(child)), parent: String(numberOf(parent)) }))
  const seen = new Set([job.ref, ...added.map(({ ref }) => ref), ...edges.map(({ parent }) => Number(parent))])
  const known = edges.some(({ parent }) => Number(parent) === job.ref)
    ? await parentsByRef(s, [...seen])
    : new Map<number, StandingParent>()
  for (const parent of added) known.set(parent.ref, parent)
  known.set(job.ref, job)
  const label = (ref: string): string =>
    `${known.get(Number(ref))?.name ?? 'a job'} ${known.get(Number(ref))?.id ?? ref}`
  refuseCycle(
    String(job.ref),
    added.map(({ ref }) => String(ref)),
    edges,
    label,
  )
}

/** Which of these have parents to wait for. */
export async function linkedAmong(s: Session, jobs: readonly Standing[]): Promise<ReadonlySet<number>> {
  if (jobs.length === 0) return new Set()
  const rows = await s.query<{ child: unknown }>(s.queries.haveLinks, arrayOf(jobs.map((job) => job.ref)))
  return new Set(rows.map((row) => numberOf(row.child)))
}
