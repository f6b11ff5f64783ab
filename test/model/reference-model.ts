/**
 * Millrace as one small program: the rules of a mill that a user can observe, with maps and a clock, and without SQL, leases,
 * batches or speed. It is written from the guides and not from the engine, so it uses nothing of src/. Random programs run against
 * it and against both stores, and every record must be equal (test/model.test.ts).
 *
 * A verb changes the model and gives what the public verb gives; a refused verb throws `Refused` with the public code and
 * changes nothing. Time moves by `advance` alone.
 */

export type State =
  | 'scheduled'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'blocked'
  | 'paused'
  | 'parked'
  | 'done'
  | 'failed'
  | 'cancelled'

export type ParentPolicy = 'wait' | 'cancel' | 'run'

export interface Unique {
  readonly value: string
  readonly forMs?: number
  readonly while?: 'unfinished' | 'waiting'
  readonly onDuplicate?: 'ignore' | 'reject' | 'replace' | 'reschedule'
}

export interface Enqueue {
  readonly queue?: string
  readonly priority?: number
  readonly inMs?: number
  readonly expiresMs?: number
  readonly key?: string
  readonly onDuplicate?: 'return' | 'reject' | 'replace'
  readonly unique?: Unique
  readonly group?: string
  /** Numbers of jobs, in the order in which they were made. */
  readonly after?: readonly number[]
  readonly onParentFailure?: ParentPolicy
}

export interface ModelJob {
  /** Its number: jobs are numbered in the order in which they were written. */
  readonly number: number
  readonly name: string
  readonly key: string | null
  readonly group: string | null
  unique: Unique | null
  queue: string
  priority: number
  state: State | 'gone'
  dueAt: number
  expiresAt: number | null
  attempt: number
  /** Failed attempts since it was enqueued or retried by hand. */
  retries: number
  hasFailed: boolean
  /** How it ended, where it is kept for no time and so is gone; null when it was deleted. */
  forgotten: 'done' | 'failed' | 'cancelled' | null
  /** What it was asked while it ran; applied when the attempt ends. */
  request: 'cancel' | 'pause' | null
  /** All it ever came after, and those it still waits for with what their failure means. */
  after: number[]
  waitsFor: Map<number, ParentPolicy>
}

interface Slot {
  holder: number
  until: number | null
}

interface Group {
  sealedAt: number | null
  completed: boolean
  /** Enqueues the job that follows the group. */
  whenDone: (() => void) | null
}

export class Refused extends Error {
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/** How an attempt ends. */
export type Outcome =
  | { readonly kind: 'return' }
  | { readonly kind: 'throw' }
  | { readonly kind: 'abort' }
  | { readonly kind: 'snooze'; readonly ms: number }

export const RETRY_LIMIT = 2
export const BACKOFF_MS = 10_000
/** One point of priority is worth ten minutes of waiting. */
const POINT_MS = 600_000

const isFinal = (state: ModelJob['state']): boolean => state === 'done' || state === 'failed' || state === 'cancelled'
const isUnfinished = (job: ModelJob): boolean => job.state !== 'gone' && !isFinal(job.state)
const isTimed = (state: ModelJob['state']): boolean => state === 'scheduled' || state === 'retrying'

export class ReferenceModel {
  now: number
  readonly jobs: ModelJob[] = []
  readonly #slots = new Map<string, Slot>()
  readonly #groups = new Map<string, Group>()
  /** Paused queues, with the time at which they resume; null: until a caller resumes them. */
  readonly #paused = new Map<string, number | null>()

  /** Names of jobs that are kept for no time (`keep: 'none'`). */
  readonly #unkept: ReadonlySet<string>

  constructor(now: number, unkept: readonly string[] = []) {
    this.now = now
    this.#unkept = new Set(unkept)
  }

  // ── Enqueue ────────────────────────────────────────────────────────────────

  /** Gives the job's number and whether it is new. `by`: the running job whose handler enqueues it as a child. */
  enqueue(name: string, given: Enqueue, by?: ModelJob): { number: number; isNew: boolean } {
    return this.#insert(name, given, given.onDuplicate ?? 'return', by)
  }

  /** A timer by key: moves the job that waits, and follows the one that runs. */
  schedule(name: string, key: string, inMs: number, given: Omit<Enqueue, 'key' | 'inMs' | 'onDuplicate'> = {}) {
    return this.#insert(name, { ...given, key, inMs }, 'move')
  }

  unschedule(name: string, key: string): boolean {
    const holder = this.#holderOf(name, key)
    if (holder === undefined || holder.state === 'running' || holder.state === 'parked') return false
    this.#end(holder, 'cancelled')
    return true
  }

  #insert(
    name: string,
    given: Enqueue,
    onDuplicate: 'return' | 'reject' | 'replace' | 'move',
    by?: ModelJob,
  ): { number: number; isNew: boolean } {
    const parents = (given.after ?? []).map((number) => this.jobs[number] as ModelJob)
    const group = given.group === undefined ? undefined : this.#groups.get(given.group)
    if (group !== undefined && group.sealedAt !== null && !(by?.group === given.group && by?.state === 'running'))
      throw new Refused('E_GROUP_SEALED')
    if (parents.some((parent) => parent.state === 'gone')) throw new Refused('E_PARENT_MISSING')

    let replaced: ModelJob | undefined
    let follows: ModelJob | undefined
    const holder = given.key === undefined ? undefined : this.#holderOf(name, given.key)
    if (holder !== undefined) {
      const waits = holder.state !== 'running'
      if (onDuplicate === 'return') return { number: holder.number, isNew: false }
      if (onDuplicate === 'reject' || (onDuplicate === 'replace' && !waits)) throw new Refused('E_DUPLICATE_KEY')
      if (onDuplicate === 'move' && waits) {
        // A move keeps the unique slot that the job took when it was enqueued.
        this.#refuseCycle(holder, parents)
        this.#move(holder, given)
        this.#link(holder, parents, given.onParentFailure ?? 'wait')
        return { number: holder.number, isNew: false }
      }
      if (onDuplicate === 'move') follows = holder
      else {
        replaced = holder
        // What the replaced successor followed, the new one follows.
        follows = this.jobs.find((job) => job.name === name && job.key === given.key && job.state === 'running')
      }
    }

    const unique = given.unique
    let window: number | null = null
    let rival: ModelJob | undefined
    if (unique !== undefined) {
      const slot = this.#slots.get(`${name}\n${unique.value}`)
      const taken = slot === undefined || slot.holder === replaced?.number ? undefined : slot
      const verdict = this.#slotVerdict(taken, unique)
      if (verdict === 'ignore') return { number: (taken as Slot).holder, isNew: false }
      if (verdict === 'reject') throw new Refused('E_DUPLICATE_JOB')
      if (verdict === 'reschedule') {
        const waiting = this.jobs[(taken as Slot).holder] as ModelJob
        this.#refuseCycle(waiting, parents)
        this.#move(waiting, this.#putOff(given, (taken as Slot).until))
        this.#link(waiting, parents, given.onParentFailure ?? 'wait')
        return { number: waiting.number, isNew: false }
      }
      if (verdict === 'replace') {
        rival = this.jobs[(taken as Slot).holder] as ModelJob
        window = (taken as Slot).until
      }
    }
    this.#refuseOwnKey(name, given, parents, [replaced, rival])
    if (replaced !== undefined) this.#end(replaced, 'cancelled')
    if (rival !== undefined) this.#end(rival, 'cancelled')
    return { number: this.#write(name, given, window, parents, follows).number, isNew: true }
  }

  #write(
    name: string,
    given: Enqueue,
    window: number | null,
    parents: readonly ModelJob[],
    follows: ModelJob | undefined,
  ): ModelJob {
    const { unique } = given
    const number = this.jobs.length
    let dueAt = this.now + (given.inMs ?? 0)
    if (unique !== undefined) {
      const opened = unique.forMs === undefined ? null : this.now + unique.forMs
      const until = window !== null && window > this.now ? window : opened
      if (unique.onDuplicate === 'reschedule' && until !== null) dueAt = Math.min(dueAt, until)
      this.#slots.set(`${name}\n${unique.value}`, { holder: number, until })
    }
    const job: ModelJob = {
      number,
      name,
      key: given.key ?? null,
      group: given.group ?? null,
      unique: unique ?? null,
      queue: given.queue ?? 'default',
      priority: given.priority ?? 0,
      state: dueAt > this.now ? 'scheduled' : 'ready',
      dueAt,
      expiresAt: given.expiresMs === undefined ? null : this.now + given.expiresMs,
      attempt: 0,
      retries: 0,
      hasFailed: false,
      forgotten: null,
      request: null,
      after: [],
      waitsFor: new Map(),
    }
    this.jobs.push(job)
    if (given.group !== undefined && !this.#groups.has(given.group))
      this.#groups.set(given.group, { sealedAt: null, completed: false, whenDone: null })
    this.#link(job, parents, given.onParentFailure ?? 'wait')
    if (follows !== undefined) this.#link(job, [follows], 'run')
    return job
  }

  /** A waiting job gets the new time, payload and options, and keeps its id, its group and its retries. */
  #move(job: ModelJob, given: Enqueue): void {
    job.dueAt = this.now + (given.inMs ?? 0)
    job.queue = given.queue ?? 'default'
    job.priority = given.priority ?? 0
    job.expiresAt = given.expiresMs === undefined ? null : this.now + given.expiresMs
    if (job.state !== 'paused' && job.state !== 'blocked') job.state = job.dueAt > this.now ? 'scheduled' : 'ready'
  }

  // ── Keys and unique slots ──────────────────────────────────────────────────

  /** The unfinished job that has the key; of a running job and its successor, the successor. */
  #holderOf(name: string, key: string): ModelJob | undefined {
    return this.jobs.findLast((job) => job.name === name && job.key === key && isUnfinished(job))
  }

  #slotVerdict(slot: Slot | undefined, asked: Unique): 'free' | 'ignore' | 'reject' | 'replace' | 'reschedule' {
    const onDuplicate = asked.onDuplicate ?? 'ignore'
    const unfinishedOnly = (asked.while ?? (onDuplicate === 'reschedule' ? 'waiting' : 'unfinished')) === 'unfinished'
    const job = slot === undefined ? undefined : (this.jobs[slot.holder] as ModelJob)
    const isThere = job !== undefined && isUnfinished(job)
    const waits = isThere && job.state !== 'running'
    const inWindow = slot !== undefined && slot.until !== null && slot.until > this.now && onDuplicate !== 'reschedule'
    if (!inWindow && !(unfinishedOnly ? isThere : waits)) return 'free'
    if (onDuplicate === 'replace' || onDuplicate === 'reschedule') return waits ? onDuplicate : 'reject'
    return onDuplicate
  }

  #putOff(given: Enqueue, until: number | null): Enqueue {
    const inMs = given.inMs ?? 0
    return until === null || this.now + inMs <= until ? given : { ...given, inMs: until - this.now }
  }

  /** A cancelled or deleted job gives up its slot, window or not. */
  #freeSlot(job: ModelJob): void {
    for (const [name, slot] of this.#slots) if (slot.holder === job.number) this.#slots.delete(name)
  }

  // ── Links ──────────────────────────────────────────────────────────────────

  #refuseOwnKey(
    name: string,
    given: Enqueue,
    parents: readonly ModelJob[],
    cancelled: readonly (ModelJob | undefined)[],
  ): void {
    if (given.key === undefined || (given.onParentFailure ?? 'wait') !== 'wait') return
    const isStopped = (job: ModelJob): boolean =>
      job.state === 'failed' || job.state === 'cancelled' || cancelled.includes(job)
    if (parents.some((parent) => parent.name === name && parent.key === given.key && isStopped(parent)))
      throw new Refused('E_CYCLE')
  }

  /** A job that waits gets more parents: none of them may wait for the job itself. */
  #refuseCycle(job: ModelJob, parents: readonly ModelJob[]): void {
    if (parents.some((parent) => this.#waitsFor(parent, job))) throw new Refused('E_CYCLE')
  }

  #waitsFor(job: ModelJob, other: ModelJob): boolean {
    if (job === other) return true
    return [...job.waitsFor.keys()].some((number) => this.#waitsFor(this.jobs[number] as ModelJob, other))
  }

  /** What was said last about a parent holds. */
  #link(job: ModelJob, parents: readonly ModelJob[], policy: ParentPolicy): void {
    for (const parent of parents) {
      if (!job.after.includes(parent.number)) job.after.push(parent.number)
      // A successor runs however the job before it ends: to be retried, that one would need the key.
      const isOwnKey = job.key !== null && job.key === parent.key && job.name === parent.name && isUnfinished(parent)
      if (parent.state !== 'done') job.waitsFor.set(parent.number, isOwnKey && policy === 'wait' ? 'run' : policy)
    }
    if (job.waitsFor.size > 0 && (job.state === 'ready' || isTimed(job.state))) job.state = 'blocked'
  }

  /** What the end of parents means for those that wait for them. */
  #resolveLinks(): boolean {
    let moved = false
    for (const job of this.jobs) {
      if (!isUnfinished(job)) continue
      for (const [number, policy] of job.waitsFor) {
        const parent = this.jobs[number] as ModelJob
        if (isUnfinished(parent)) continue
        const isResolved = parent.state === 'done' || parent.forgotten === 'done' || policy === 'run'
        if (!isResolved && policy === 'wait' && parent.state !== 'gone') continue
        moved = true
        job.waitsFor.delete(number)
        if (isResolved) continue
        this.#end(job, 'cancelled')
        break
      }
      if (job.state === 'blocked' && job.waitsFor.size === 0) {
        job.state = this.#resumedState(job)
        moved = true
      }
    }
    return moved
  }

  #resumedState(job: ModelJob): State {
    if (job.waitsFor.size > 0) return 'blocked'
    if (job.dueAt <= this.now) return 'ready'
    return job.hasFailed ? 'retrying' : 'scheduled'
  }

  // ── Commands ───────────────────────────────────────────────────────────────

  cancel(job: ModelJob): boolean {
    if (job.state === 'running') {
      job.request = 'cancel'
      return true
    }
    if (!isUnfinished(job) || job.state === 'parked') return false
    this.#end(job, 'cancelled')
    return true
  }

  pause(job: ModelJob): boolean {
    if (job.state === 'running') {
      if (job.request === 'cancel') return false
      job.request = 'pause'
      return true
    }
    if (!isUnfinished(job) || job.state === 'parked') return false
    job.state = 'paused'
    return true
  }

  resume(job: ModelJob): boolean {
    if (job.state === 'running') {
      if (job.request !== 'pause') return false
      job.request = null
      return true
    }
    if (job.state !== 'paused') return false
    job.state = this.#resumedState(job)
    return true
  }

  retry(job: ModelJob): boolean {
    if (job.state === 'retrying') {
      Object.assign(job, { state: 'ready', dueAt: this.now, retries: 0 })
      return true
    }
    if (job.state !== 'failed' && job.state !== 'cancelled') return false
    if (job.key !== null && this.#holderOf(job.name, job.key) !== undefined) throw new Refused('E_DUPLICATE_KEY')
    if (job.unique !== null) this.#retakeSlot(job, job.unique)
    Object.assign(job, { state: 'ready', dueAt: this.now, retries: 0, expiresAt: null })
    job.hasFailed = false
    return true
  }

  #retakeSlot(job: ModelJob, unique: Unique): void {
    const name = `${job.name}\n${unique.value}`
    const slot = this.#slots.get(name)
    const other = slot === undefined || slot.holder === job.number ? undefined : (this.jobs[slot.holder] as ModelJob)
    const whileWaiting = unique.while ?? (unique.onDuplicate === 'reschedule' ? 'waiting' : 'unfinished')
    const isInTheWay =
      other !== undefined && isUnfinished(other) && (whileWaiting === 'unfinished' || other.state !== 'running')
    if (isInTheWay) throw new Refused('E_DUPLICATE_JOB')
    const until = slot !== undefined && slot.until !== null && slot.until > this.now ? slot.until : null
    this.#slots.set(name, { holder: job.number, until })
  }

  delete(job: ModelJob): boolean {
    if (job.state === 'gone' || job.state === 'running') return false
    job.state = 'gone'
    job.waitsFor.clear()
    this.#freeSlot(job)
    return true
  }

  edit(
    job: ModelJob,
    change: { readonly priority?: number; readonly queue?: string; readonly inMs?: number },
  ): boolean {
    if (!isUnfinished(job) || job.state === 'running') return false
    if (change.priority !== undefined) job.priority = change.priority
    if (change.queue !== undefined) job.queue = change.queue
    if (change.inMs !== undefined) job.dueAt = this.now + change.inMs
    if (job.state === 'ready' || isTimed(job.state)) {
      const later = job.state === 'retrying' ? 'retrying' : 'scheduled'
      job.state = job.dueAt <= this.now ? 'ready' : later
    }
    return true
  }

  addParents(job: ModelJob, parents: readonly ModelJob[], policy: ParentPolicy): boolean {
    if (!isUnfinished(job) || job.state === 'running') return false
    if (parents.some((parent) => parent.state === 'gone')) throw new Refused('E_PARENT_MISSING')
    this.#refuseCycle(job, parents)
    this.#link(job, parents, policy)
    return true
  }

  // ── Queues and groups ──────────────────────────────────────────────────────

  pauseQueue(queue: string, forMs: number | null): void {
    this.#paused.set(queue, forMs === null ? null : this.now + forMs)
  }

  resumeQueue(queue: string): boolean {
    return this.#paused.delete(queue)
  }

  seal(group: string, whenDone: (() => void) | null): boolean {
    const known = this.#groups.get(group) ?? { sealedAt: null, completed: false, whenDone: null }
    this.#groups.set(group, known)
    if (known.sealedAt !== null) return false
    known.sealedAt = this.now
    known.whenDone = whenDone
    return true
  }

  /** Members by state. Forgotten ones stay counted as they ended, deleted ones do not. */
  progress(group: string): { readonly [state: string]: number } {
    const counts: { [state: string]: number } = {}
    for (const job of this.jobs) {
      const state = job.state === 'gone' ? job.forgotten : job.state
      if (job.group === group && state !== null) counts[state] = (counts[state] ?? 0) + 1
    }
    return counts
  }

  #completeGroups(): boolean {
    let moved = false
    for (const [name, group] of this.#groups) {
      const isOpen = this.jobs.some((job) => job.group === name && isUnfinished(job))
      if (group.completed || group.sealedAt === null || isOpen) continue
      group.completed = true
      group.whenDone?.()
      moved = true
    }
    return moved
  }

  // ── Work ───────────────────────────────────────────────────────────────────

  /** The next job of a queue begins; undefined when there is none. */
  begin(queue: string): ModelJob | undefined {
    if (this.#paused.has(queue)) return undefined
    const sortOf = (job: ModelJob): number => job.dueAt - job.priority * POINT_MS
    const [first] = this.jobs
      .filter((job) => job.state === 'ready' && job.queue === queue)
      .toSorted((one, other) => sortOf(one) - sortOf(other) || one.number - other.number)
    if (first !== undefined) first.state = 'running'
    return first
  }

  /** The attempt ends. What was asked while it ran is applied: done stays done, everything else obeys. */
  end(job: ModelJob, outcome: Outcome): void {
    const { request } = job
    job.request = null
    // It has begun, so it can no longer expire before it begins.
    job.expiresAt = null
    // A snooze is no attempt, unless the job was cancelled while it ran.
    if (outcome.kind !== 'snooze' || request === 'cancel') job.attempt += 1
    if (outcome.kind === 'return') return this.#end(job, 'done')
    if (request === 'cancel') return this.#end(job, 'cancelled')
    if (outcome.kind === 'abort' || (outcome.kind === 'throw' && job.retries >= RETRY_LIMIT))
      return this.#end(job, 'failed')
    if (outcome.kind === 'throw') {
      job.retries += 1
      job.hasFailed = true
    } else job.hasFailed = false
    job.dueAt = this.now + (outcome.kind === 'snooze' ? outcome.ms : BACKOFF_MS)
    job.state = request === 'pause' ? 'paused' : outcome.kind === 'snooze' ? 'scheduled' : 'retrying'
  }

  #end(job: ModelJob, to: 'done' | 'failed' | 'cancelled'): void {
    job.state = to
    // A job that ended waits for nothing: a retry runs it, whatever its parents did.
    job.waitsFor.clear()
    if (to === 'cancelled') this.#freeSlot(job)
    if (!this.#unkept.has(job.name)) return
    job.state = 'gone'
    job.forgotten = to
  }

  // ── Time ───────────────────────────────────────────────────────────────────

  advance(ms: number): void {
    this.now += ms
    this.settle()
  }

  /** What the engine does by itself at this moment: due, expired, freed and completed. */
  settle(): void {
    for (const [queue, until] of this.#paused) if (until !== null && until <= this.now) this.#paused.delete(queue)
    for (let moved = true; moved;) {
      for (const job of this.jobs) {
        const waits = isUnfinished(job) && job.state !== 'running' && job.state !== 'parked'
        if (waits && job.expiresAt !== null && job.expiresAt <= this.now) this.#end(job, 'cancelled')
        if (isTimed(job.state) && job.dueAt <= this.now) job.state = 'ready'
      }
      moved = this.#resolveLinks() || this.#completeGroups()
    }
  }
}
