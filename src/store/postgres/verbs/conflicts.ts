import { DuplicateJobError, DuplicateKeyError } from '../../../errors.js'
import { readOptions } from '../../../job/definition/stored-options.js'
import { booleanOf } from '../../rows/columns.js'
import { cannotConflict } from '../../conflicts.js'
import type { InsertResult } from '../../links.js'
import { instant } from '../../rows/ordering.js'
import type { InsertOptions, NewJob } from '../../store.js'
import { insertConflicting } from '../../verbs/conflicts.js'
import type { ConflictSteps, Slot, WritePlan } from '../../verbs/conflicts.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import { endAll, laneIn, putIn, takeOut } from './moves.js'
import { readStored } from './read.js'
import type { StoredJob } from './read.js'
import { asNew, writeRowsOf } from './write.js'
import type { PlannedJob, JobToWrite } from './write.js'

/**
 * Inserts jobs of which some have a key or a unique slot. The names of both are locked first, in a fixed order: then no
 * other process takes a key or a slot, though workers may still claim the holder. Most jobs find no holder, and are
 * written together.
 */
export async function insertAllConflicting(
  session: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly InsertResult[]> {
  await lockNames(session, jobs)
  return new PostgresConflicts(session, await session.now()).insert(jobs, options)
}

/** No other process takes these keys and unique slots before the transaction ends. */
export async function lockNames(session: Session, jobs: readonly Named[]): Promise<void> {
  const names = jobs.flatMap(namesOf)
  if (names.length > 0) await session.query(session.queries.lockNames, JSON.stringify(names))
}

/** The same without waiting for other transactions: returns the jobs of which all names are locked now. */
export async function tryLockNames<Job extends Named>(session: Session, jobs: readonly Job[]): Promise<Set<Job>> {
  const names = JSON.stringify(jobs.flatMap(namesOf))
  const rows = await session.query<{ name: string; locked: unknown }>(session.queries.tryLockNames, names)
  const others = new Set(rows.flatMap(({ name, locked }) => (booleanOf(locked) ? [] : [name])))
  return new Set(jobs.filter((job) => !namesOf(job).some((name) => others.has(name))))
}

/** A job that holds a key or a unique slot; the turn of a successor is one higher than that of its predecessor. */
type StoredHolderJob = StoredJob & { readonly turn: number }

/**
 * What `store/verbs/conflicts.ts` needs, for one bulk: its holders are read together, and its jobs written together.
 */
export class PostgresConflicts implements ConflictSteps<StoredHolderJob> {
  readonly #session: Session
  readonly #now: number
  readonly #unwritten: JobToWrite[] = []
  /** Keys and slots of the jobs that are not written yet. */
  readonly #coming = new Set<string>()
  /** Keys and slots that this bulk has changed since they were read. */
  readonly #changed = new Set<string>()
  /** The unfinished jobs of each key, the newest first. */
  readonly #keys = new Map<string, StoredHolderJob[]>()
  readonly #slots = new Map<string, Slot<StoredHolderJob>>()

  constructor(session: Session, now: number) {
    this.#session = session
    this.#now = now
  }

  async insert(jobs: readonly NewJob[], options: InsertOptions): Promise<InsertResult[]> {
    await this.#readHolders(jobs)
    const inserted: InsertResult[] = []
    for (const [index, job] of jobs.entries()) {
      if (cannotConflict(job)) this.#unwritten.push({ job })
      else await this.#rereadHolders(job)
      inserted.push(
        cannotConflict(job)
          ? asNew(job)
          : await awaitVerb(insertConflicting(this, job, { ...options, now: this.#now, jobs, index })),
      )
    }
    await this.#writeAll()
    return inserted
  }

  /** Inserts jobs of separate calls. Undefined: the job was refused, and nothing was written for it. */
  async insertCalls(calls: readonly InsertCall[]): Promise<(InsertResult | undefined)[]> {
    await this.#readHolders(calls.map(({ job }) => job))
    const inserted: (InsertResult | undefined)[] = []
    for (const { job, options } of calls) {
      await this.#rereadHolders(job)
      const insertion = { ...options, now: this.#now, jobs: [job], index: 0 }
      inserted.push(await awaitVerb(insertConflicting(this, job, insertion)).catch(undefinedIfRefused))
    }
    await this.#writeAll()
    return inserted
  }

  keyHolder({ name, key }: NewJob, before?: StoredHolderJob): StoredHolderJob | undefined {
    const holders = this.#keys.get(`${name}\n${key}`) ?? []
    return before === undefined ? holders[0] : holders.find(({ turn }) => turn < before.turn)
  }

  slotOf({ name, unique }: NewJob): Slot<StoredHolderJob> | undefined {
    return unique === undefined ? undefined : this.#slots.get(`${name}\n${unique.key}`)
  }

  async hasBegun({ id }: StoredHolderJob): Promise<boolean> {
    const [row] = await this.#session.query<{ begun: unknown }>(this.#session.queries.readWorkflow, id)
    return row !== undefined && booleanOf(row.begun)
  }

  async lockHolder({ ref }: StoredHolderJob): Promise<boolean> {
    return (await this.#session.query(this.#session.queries.holdParents, arrayOf([ref]))).length > 0
  }

  async cancel(holder: StoredHolderJob, reason: string, keepMs: number): Promise<boolean> {
    if (!(await takeOut(this.#session, holder))) return false
    this.#hasChanged(holder)
    await endAll(this.#session, [{ ...holder, to: 'cancelled', keepMs, reason, result: null }])
    return true
  }

  async move(holder: StoredHolderJob, job: NewJob): Promise<boolean> {
    if (!(await takeOut(this.#session, holder))) return false
    this.#hasChanged(holder)
    const dueAt = instant(job.due, this.#now)
    const moved: StoredJob = {
      ...holder,
      queue: job.queue,
      dueAt,
      expiresAt: job.expires === null ? null : instant(job.expires, this.#now),
      payload: job.payload,
      jobTurn: job.turn ?? { limit: null, rate: null, weight: null },
      options: job.options,
      priority: job.priority,
      lane: await laneIn(this.#session, holder, job.queue),
      error: null,
      reason: null,
    }
    const isAside = holder.state === 'paused' || holder.state === 'blocked'
    const state = isAside ? holder.state : dueAt <= this.#now ? 'ready' : 'scheduled'
    await putIn(this.#session, [{ job: moved, state }], this.#now)
    return true
  }

  /** Written together with the rest of the bulk. */
  write(job: NewJob, { follows, until }: WritePlan<StoredHolderJob>): void {
    for (const name of namesOf(job)) this.#coming.add(name)
    const turn = follows === undefined ? undefined : follows.turn + 1
    const written = { job: follows === undefined ? job : blockedBy(job, follows), turn }
    this.#unwritten.push(until === undefined ? written : { ...written, until })
  }

  rereadHolders(job: NewJob): Promise<void> {
    return this.#readHolders([job])
  }

  /** Thrown as a serialization failure: the transaction is rolled back and run again. */
  retryTransaction(why: string): never {
    throw Object.assign(new Error(why), { code: '40001' })
  }

  /** A job conflicts with earlier jobs of the bulk as with any other: those are written first, and read. */
  async #rereadHolders(job: NewJob): Promise<void> {
    const names = namesOf(job)
    if (names.some((name) => this.#coming.has(name))) await this.#writeAll()
    if (names.some((name) => this.#changed.has(name))) await this.#readHolders([job])
  }

  /**
   * Dated at the time at which the slots were read: a job that was accepted because a window had ended must not be
   * dated within it.
   */
  async #writeAll(): Promise<void> {
    await writeRowsOf(this.#session, this.#unwritten.splice(0), this.#now)
    for (const name of this.#coming) this.#changed.add(name)
    this.#coming.clear()
  }

  #hasChanged({ name, key, options }: StoredJob): void {
    for (const each of namesOf({ name, key, unique: readOptions(options).unique })) this.#changed.add(each)
  }

  async #readHolders(jobs: readonly NewJob[]): Promise<void> {
    const { keyHolders, slotHolders } = this.#session.queries
    const keyed = jobs.filter((job) => job.key !== null).map(({ name, key }) => ({ name, key }))
    const slotted = jobs.flatMap(({ name, unique }) => (unique === undefined ? [] : [{ name, key: unique.key }]))
    const keys = keyed.length === 0 ? [] : await this.#session.query<KeyRow>(keyHolders, JSON.stringify(keyed))
    const slots = slotted.length === 0 ? [] : await this.#session.query<SlotRow>(slotHolders, JSON.stringify(slotted))
    const stored = await readStored(
      this.#session,
      [...keys, ...slots].map((row) => Number(row.ref)),
    )
    for (const name of jobs.flatMap(namesOf)) this.#changed.delete(name)
    for (const { name, key } of keyed) this.#keys.delete(`${name}\n${key}`)
    for (const { name, key } of slotted) this.#slots.delete(`${name}\n${key}`)
    for (const row of keys) {
      const holder = stored.get(Number(row.ref))
      // A job that ended between the two reads has freed its key.
      if (holder === undefined || holder.table === 'history') continue
      const name = `${row.wantedName}\n${row.wantedKey}`
      this.#keys.set(name, [...(this.#keys.get(name) ?? []), { ...holder, turn: Number(row.turn) }])
    }
    for (const row of slots) this.#slots.set(`${row.name}\n${row.key}`, toSlot(row, stored.get(Number(row.ref))))
  }
}

/** An enqueue of one job that has a key or a unique slot. */
export interface InsertCall {
  readonly job: NewJob
  readonly options: InsertOptions
}

/** `insertConflicting` refuses a job before it writes anything. */
function undefinedIfRefused(error: unknown): undefined {
  if (!(error instanceof DuplicateKeyError || error instanceof DuplicateJobError)) throw error
}

interface KeyRow {
  readonly wantedName: string
  readonly wantedKey: string
  readonly ref: unknown
  readonly turn: unknown
}

interface SlotRow {
  readonly name: string
  readonly key: string
  readonly ref: unknown
  readonly id: string
  readonly until: unknown
}

function toSlot(row: SlotRow, job: StoredJob | undefined): Slot<StoredHolderJob> {
  const isUnfinished = job !== undefined && job.id === row.id && job.table !== 'history'
  const until = row.until === null ? null : Number(row.until)
  return { id: row.id, until, holder: isUnfinished ? { ...job, turn: 0 } : undefined }
}

/** Which job has a unique slot now. */
export async function readSlot(session: Session, name: string, key: string): Promise<Slot<StoredJob> | undefined> {
  const [row] = await session.query<SlotRow>(session.queries.slotHolders, JSON.stringify([{ name, key }]))
  if (row === undefined) return undefined
  return toSlot(row, (await readStored(session, [Number(row.ref)])).get(Number(row.ref)))
}

/** No worker may claim the job before its link is written. */
function blockedBy(job: NewJob, { id }: StoredJob): PlannedJob {
  const { planned } = job as Partial<PlannedJob>
  const after = typeof planned?.after === 'string' ? (JSON.parse(planned.after) as string[]) : []
  const all = JSON.stringify([...new Set([...after, id])])
  return { ...job, planned: { is_parent: undefined, ...planned, after: all, blocked: true } }
}

type Named = Pick<NewJob, 'name' | 'key'> & { readonly unique?: { readonly key: string } | undefined }

function namesOf(job: Named): string[] {
  return [
    ...(job.key === null ? [] : [`key ${job.name}\n${job.key}`]),
    ...(job.unique === undefined ? [] : [`slot ${job.name}\n${job.unique.key}`]),
  ]
}
