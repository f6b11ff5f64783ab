import { holderOf, slotName, slotVerdict } from './conflicts.js'
import { endJob } from './ends.js'
import { admit } from './groups.js'
import { link, refuseCycle, refuseOwnKey } from './links.js'
import { isUnfinished, jobOf, Refused, wholly, WORKFLOW } from './state.js'
import type { Enqueue, LinkPolicy, Model, ModelJob } from './state.js'
import { hasBegun, hasRun, newWorkflow } from './workflows.js'

/** The job's number and whether it is new. */
export interface Enqueued {
  readonly number: number
  readonly isNew: boolean
}

/** A job to enqueue; `afterItems` are other jobs of the same call, by their index. */
export interface Item {
  readonly name: string
  readonly given: Enqueue
  readonly afterItems?: readonly number[]
  readonly tick?: ModelJob['tick']
  /** When it is due, where that is no delay from now. */
  readonly dueAt?: number
  readonly policy?: LinkPolicy
}

type OnDuplicate = 'return' | 'reject' | 'replace' | 'move'

/** `by`: the running job whose handler enqueues it as a child. */
export function enqueue(model: Model, name: string, given: Enqueue, by?: ModelJob): Enqueued {
  return insert(model, [{ name, given }], given.onDuplicate ?? 'return', by)[0] as Enqueued
}

/** All of them or none. The items are taken one after the other, so that the second of two equal ones is a duplicate. */
export function enqueueMany(model: Model, items: readonly Item[], onDuplicate: OnDuplicate = 'return'): Enqueued[] {
  return insert(model, items, onDuplicate)
}

/** A whole graph. A node whose key or slot is held is the job that holds it. */
export function flow(model: Model, nodes: readonly Item[], onDuplicate: OnDuplicate = 'return'): Enqueued[] {
  const waits = (node: number, other: number, seen: readonly number[]): boolean =>
    (nodes[node]?.afterItems ?? []).some(
      (parent) => parent === other || (!seen.includes(parent) && waits(parent, other, [...seen, parent])),
    )
  if (nodes.some((_, index) => waits(index, index, []))) throw new Refused('E_CYCLE')
  return insert(model, nodes, onDuplicate)
}

/** A timer by key: moves the job that waits, and follows the one that runs. */
export function schedule(
  model: Model,
  name: string,
  key: string,
  inMs: number,
  given: Omit<Enqueue, 'key' | 'inMs' | 'onDuplicate'> = {},
): Enqueued {
  return insert(model, [{ name, given: { ...given, key, inMs } }], 'move')[0] as Enqueued
}

export function unschedule(model: Model, name: string, key: string): boolean {
  const holder = holderOf(model, name, key)
  if (holder === undefined || holder.state === 'running' || holder.state === 'parked' || hasRun(holder)) return false
  endJob(model, holder, 'cancelled')
  return true
}

/** What an item became: a new job, one that was there, or one that was there and is moved. */
interface Placed extends Enqueued {
  readonly isMoved?: boolean
  readonly follows?: ModelJob | undefined
}

export function insert(model: Model, items: readonly Item[], onDuplicate: OnDuplicate, by?: ModelJob): Enqueued[] {
  return wholly(model, (all) => insertAll(all, items, onDuplicate, by))
}

function insertAll(model: Model, items: readonly Item[], onDuplicate: OnDuplicate, by?: ModelJob): Enqueued[] {
  model.calls += 1
  for (const { given } of items) if (given.group !== undefined) admit(model, given.group, by)
  for (const { given } of items)
    if ((given.after ?? []).some((number) => jobOf(model, number).state === 'gone'))
      throw new Refused('E_PARENT_MISSING')
  const placed = items.map((item) => place(model, item, onDuplicate))
  const parentsOf = ({ given, afterItems = [] }: Item): ModelJob[] => [
    ...(given.after ?? []).map((number) => jobOf(model, number)),
    ...afterItems.map((index) => jobOf(model, (placed[index] as Placed).number)),
  ]
  for (const [index, item] of items.entries()) {
    const one = placed[index] as Placed
    if (one.isNew) linkNew(model, jobOf(model, one.number), item, parentsOf(item), one.follows)
  }
  for (const [index, item] of items.entries()) {
    const one = placed[index] as Placed
    const job = jobOf(model, one.number)
    // A tick that moves a job instead of waiting for the earlier ones adds no parents: the job may be one of these.
    if (one.isMoved !== true || !isUnfinished(job) || item.policy === 'run-if-parked') continue
    const [parents, policy] = [parentsOf(item), item.given.onParentFailure ?? 'wait'] as const
    refuseOwnKey(job, parents, policy)
    refuseCycle(model, job, parents)
    link(job, parents, policy)
  }
  return placed.map(({ number, isNew }) => ({ number, isNew }))
}

function linkNew(model: Model, job: ModelJob, item: Item, parents: readonly ModelJob[], follows?: ModelJob): void {
  const policy = item.policy ?? item.given.onParentFailure ?? 'wait'
  for (const parent of [...parents, ...(follows === undefined ? [] : [follows])])
    if (!job.after.includes(parent.number)) job.after.push(parent.number)
  // A later item of the call may have replaced it.
  if (!isUnfinished(job)) return
  refuseOwnKey(job, parents, policy)
  refuseCycle(model, job, parents)
  link(
    job,
    parents.filter((parent) => parent !== follows),
    policy,
  )
  if (follows !== undefined) link(job, [follows], 'run')
}

/** The key decides first, then the unique slot; nothing is changed unless both accept the job. */
function place(model: Model, item: Item, onDuplicate: OnDuplicate): Placed {
  const { name, given } = item
  const holder = given.key === undefined ? undefined : holderOf(model, name, given.key)
  if (holder === undefined) return placeInSlot(model, item, {})
  const waits = holder.state !== 'running' && !hasBegun(holder)
  if (onDuplicate === 'return') return { number: holder.number, isNew: false }
  if (onDuplicate === 'reject' || (onDuplicate === 'replace' && !waits)) throw new Refused('E_DUPLICATE_KEY')
  if (onDuplicate === 'move' && !waits) return placeInSlot(model, item, { follows: holder })
  if (onDuplicate === 'replace') {
    // What the replaced successor followed, the new one follows.
    const isFollowed = (job: ModelJob): boolean =>
      job.name === name && job.key === given.key && job !== holder && isUnfinished(job)
    const follows = model.jobs.find(isFollowed)
    return placeInSlot(model, item, { replaced: holder, follows })
  }
  if (holder.sequence !== null) throw new Refused('E_DUPLICATE_KEY')
  // A move keeps the unique slot that the job took when it was enqueued.
  move(model, holder, item)
  return { number: holder.number, isNew: false, isMoved: true }
}

function placeInSlot(
  model: Model,
  item: Item,
  { replaced, follows }: { readonly replaced?: ModelJob; readonly follows?: ModelJob | undefined },
): Placed {
  const { name, given } = item
  if (given.unique === undefined) {
    if (replaced !== undefined) endJob(model, replaced, 'cancelled')
    return { number: write(model, item, null).number, isNew: true, follows }
  }
  const slot = model.slots.get(slotName(name, given.unique))
  // The job whose key is taken over gives up its slot too.
  const taken = slot === undefined || slot.holder === replaced?.number ? undefined : slot
  const verdict = slotVerdict(model, taken, given.unique)
  if (verdict === 'reject') throw new Refused('E_DUPLICATE_JOB')
  if (taken !== undefined && verdict === 'ignore') return { number: taken.holder, isNew: false }
  if (taken !== undefined && verdict === 'reschedule') {
    // A debounced job is postponed until the end of its window at most.
    move(model, jobOf(model, taken.holder), item, taken.until ?? Infinity)
    return { number: taken.holder, isNew: false, isMoved: true }
  }
  if (replaced !== undefined) endJob(model, replaced, 'cancelled')
  if (taken !== undefined && verdict === 'replace') endJob(model, jobOf(model, taken.holder), 'cancelled')
  const window = taken !== undefined && verdict === 'replace' ? taken.until : null
  return { number: write(model, item, window).number, isNew: true, follows }
}

/** `window`: the end of the window of the job that it replaces, which goes on. */
function write(model: Model, { name, given, tick, dueAt: at }: Item, window: number | null): ModelJob {
  const { unique } = given
  const number = model.jobs.length
  let dueAt = at ?? model.now + (given.inMs ?? 0)
  if (unique !== undefined) {
    const opened = unique.forMs === undefined ? null : model.now + unique.forMs
    const until = window !== null && window > model.now ? window : opened
    if (unique.onDuplicate === 'reschedule' && until !== null) dueAt = Math.min(dueAt, until)
    model.slots.set(slotName(name, unique), { holder: number, until })
  }
  const job: ModelJob = {
    number,
    call: model.calls,
    name,
    key: given.key ?? null,
    group: given.group ?? null,
    tick: tick ?? null,
    unique: unique ?? null,
    queue: given.queue ?? 'default',
    priority: given.priority ?? 0,
    state: dueAt > model.now ? 'scheduled' : 'ready',
    dueAt,
    expiresAt: given.expiresMs === undefined ? null : (at ?? model.now) + given.expiresMs,
    attempt: 0,
    retries: 0,
    crashes: 0,
    streak: 0,
    hasFailed: false,
    forgotten: null,
    keepUntil: null,
    request: null,
    after: [],
    sequence: null,
    workflow: name === WORKFLOW ? newWorkflow(given.body ?? []) : null,
    endedAt: null,
    waitsFor: new Map(),
  }
  model.jobs.push(job)
  return job
}

/** A waiting job gets the new time, payload and options, and keeps its id, its group and its retries. */
function move(model: Model, job: ModelJob, { given, dueAt: at }: Item, latest = Infinity): void {
  if (job.workflow !== null) job.workflow.body = given.body ?? []
  job.dueAt = Math.min(latest, at ?? model.now + (given.inMs ?? 0))
  job.queue = given.queue ?? 'default'
  job.priority = given.priority ?? 0
  job.expiresAt = given.expiresMs === undefined ? null : (at ?? model.now) + given.expiresMs
  // What it failed with belongs to the time before the move.
  job.hasFailed = false
  if (job.state !== 'paused' && job.state !== 'blocked') job.state = job.dueAt > model.now ? 'scheduled' : 'ready'
}
