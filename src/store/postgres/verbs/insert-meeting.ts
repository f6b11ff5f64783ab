import { DuplicateJobError, DuplicateKeyError } from '../../../errors.js'
import { readOptions, withSlotOf, withTickOf } from '../../../job/definition/stored-options.js'
import { decideDuplicate, decideUniqueSlot } from '../../../job/rules/unique.js'
import type { UniqueSlotRequest, UniqueSlotVerdict } from '../../../job/rules/unique.js'
import { instant } from '../../ordering.js'
import { movedFor } from '../../links.js'
import type { Met } from '../../links.js'
import { cannotConflict, describeConflict, putOff, whyRefused, windowEnd } from '../../conflicts.js'
import type { InsertOptions, NewJob } from '../../store.js'
import { endAll, laneIn, putIn, takeOut } from './moves.js'
import { placeNow, toPlace } from './unique.js'
import type { PlaceRow, RawPlace } from './unique.js'
import { readStanding } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import { asNew, writePlaced } from './write.js'
import type { PlannedJob, Written } from './write.js'

/** Somebody who keeps being faster is let go first. */
const TRIES = 50

/**
 * Jobs that may meet others, by key or by place. Names are locked first, in one order; then nobody else gives a key or a
 * place away, though workers may still take the holder. Most find nobody, and those are written together.
 */
export async function insertMeeting(
  s: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Met[]> {
  await lockNames(s, jobs)
  return new Meeting(s, jobs, options, await s.now()).run()
}

/** For as long as the transaction lasts nobody else asks for these keys and places. */
export async function lockNames(s: Session, jobs: readonly Pick<NewJob, 'name' | 'key' | 'unique'>[]): Promise<void> {
  const names = jobs.flatMap(namesOf)
  if (names.length > 0) await s.query(s.queries.lockNames, JSON.stringify(names))
}

class Meeting {
  readonly #s: Session
  readonly #jobs: readonly NewJob[]
  readonly #options: InsertOptions
  readonly #now: number
  readonly #fresh: Written[] = []
  /** Keys and places of what is to be written. */
  readonly #coming = new Set<string>()
  /** Those that this bulk itself has changed since they were looked at. */
  readonly #changed = new Set<string>()
  /** The unfinished jobs of each key, the newest first. */
  #keys = new Map<string, KeyHolder[]>()
  #places = new Map<string, PlaceRow>()

  constructor(s: Session, jobs: readonly NewJob[], options: InsertOptions, now: number) {
    this.#s = s
    this.#jobs = jobs
    this.#options = options
    this.#now = now
  }

  async run(): Promise<Met[]> {
    await this.#look(this.#jobs)
    const inserted: Met[] = []
    for (const [index, job] of this.#jobs.entries()) inserted.push(await this.#insert(job, index))
    await this.#write()
    return inserted
  }

  async #insert(job: NewJob, index: number): Promise<Met> {
    if (cannotConflict(job)) {
      this.#fresh.push({ job })
      return asNew(job)
    }
    // One of the same bulk is met like any other: it is written first.
    if (namesOf(job).some((name) => this.#coming.has(name))) await this.#write()
    if (namesOf(job).some((name) => this.#changed.has(name))) await this.#look([job])
    for (let tries = 0; tries < TRIES; tries += 1) {
      const answer = await this.#meet(job, index)
      if (answer !== undefined) return answer
      await this.#look([job])
    }
    throw new Error(`job ${job.id}: those in its way were moved by others ${TRIES} times`)
  }

  /** Undefined: the one in the way moved meanwhile, and it must be asked again. Nothing was written then. */
  async #meet(job: NewJob, index: number): Promise<Met | undefined> {
    const [holder, older] = (job.key === null ? undefined : this.#keys.get(`${job.name}\n${job.key}`)) ?? []
    if (holder !== undefined) {
      const verdict = decideDuplicate(holder, this.#options.onDuplicate)
      if (verdict === 'return') return { id: holder.id, isNew: false }
      if (verdict === 'reject') throw this.#keyHeld(job, holder, index)
      if (verdict === 'move')
        // It has the place it was enqueued for, whatever the new payload would ask for.
        return this.#moveHolder({ ...job, options: withSlotOf(holder.options, job.options) }, holder)
      if (verdict === 'follow') return this.#insertInPlace(job, { follows: holder }, index)
    }
    return this.#insertInPlace(job, { replaced: holder, follows: older }, index)
  }

  async #insertInPlace(job: NewJob, { replaced, follows }: Others, index: number): Promise<Met | undefined> {
    const { unique } = job
    const row = unique === undefined ? undefined : this.#places.get(`${job.name}\n${unique.key}`)
    // The one whose key is taken over gives up its place too.
    const taken = row?.id === replaced?.id ? undefined : row
    const verdict = unique === undefined ? 'free' : decideUniqueSlot(placeNow(taken, this.#now), unique)
    const answer = taken === undefined ? 'go on' : await this.#answerPlace(job, taken, verdict, index)
    if (answer !== 'go on') return answer
    if (follows !== undefined && !(await this.#hold(follows))) return undefined
    const replacing = taken !== undefined && verdict === 'replace' ? taken : undefined
    const old = [replaced, replacing?.holder].filter((one) => one !== undefined)
    for (const one of old) if (!(await this.#replaceHolder(job, one))) return this.#moved(old[0] === one)
    for (const name of namesOf(job)) this.#coming.add(name)
    const written = follows === undefined ? job : blockedBy(job, follows)
    const turn = follows === undefined ? undefined : follows.turn + 1
    const placed = unique === undefined ? { job: written } : this.#placed(written, unique, replacing?.until ?? null)
    this.#fresh.push({ ...placed, turn })
    return follows === undefined ? asNew(job) : { id: job.id, isNew: true, follows }
  }

  /** Until the end of the transaction no other process prunes it, so that its end is seen; false when it is gone already. */
  async #hold({ ref }: Standing): Promise<boolean> {
    return (await this.#s.query(this.#s.queries.holdParents, arrayOf([ref]))).length > 0
  }

  /** Of two to be replaced the second was gone: all is undone and done again, since the first was ended already. */
  #moved(isFirst: boolean): undefined {
    if (isFirst) return undefined
    throw Object.assign(new Error('the one to be replaced was taken by a worker meanwhile'), { code: '40001' })
  }

  async #answerPlace(
    job: NewJob,
    taken: PlaceRow,
    verdict: UniqueSlotVerdict,
    index: number,
  ): Promise<Met | undefined | 'go on'> {
    switch (verdict) {
      case 'ignore':
        return { id: taken.id, isNew: false }
      case 'reject': {
        const { existingId, where } = describeConflict(taken.id, this.#jobs, index)
        const why = whyRefused(taken.holder ?? null)
        throw new DuplicateJobError(job.name, job.unique?.key ?? '', existingId, `${why}${where}`)
      }
      case 'reschedule': {
        const holder = taken.holder as Standing
        const moved = { ...job, options: withTickOf(holder.options, job.options) }
        return this.#moveHolder(putOff(moved, taken.until, this.#now), holder)
      }
      case 'free':
      case 'replace':
        return 'go on'
      default:
        return verdict satisfies never
    }
  }

  /** `window`: where the place's window ends that the job comes into; one that is over, or null, makes it open its own. */
  #placed(job: NewJob, unique: UniqueSlotRequest, window: number | null): Written {
    const until = window !== null && window > this.#now ? window : windowEnd(unique, this.#now)
    return { job: unique.onDuplicate === 'reschedule' ? putOff(job, until, this.#now) : job, until }
  }

  async #replaceHolder(job: NewJob, holder: Standing): Promise<boolean> {
    if (!(await takeOut(this.#s, holder))) return false
    this.#hasChanged(holder)
    const keepMs = job.keepCancelledMs ?? this.#options.keepCancelledMs
    await endAll(this.#s, [{ ...holder, to: 'cancelled', keepMs, reason: `replaced by ${job.id}`, result: null }])
    return true
  }

  /** The one that waits gets the new time and payload and keeps its id and its group. One that is paused or blocked stays so. */
  async #moveHolder(job: NewJob, holder: Standing): Promise<Met | undefined> {
    if (!(await takeOut(this.#s, holder))) return undefined
    this.#hasChanged(holder)
    const dueAt = instant(job.due, this.#now)
    const moved: Standing = {
      ...holder,
      queue: job.queue,
      dueAt,
      expiresAt: job.expires === null ? null : instant(job.expires, this.#now),
      payload: job.payload,
      options: job.options,
      priority: job.priority,
      lane: await laneIn(this.#s, holder, job.queue),
      error: null,
      reason: null,
    }
    const isAside = holder.state === 'paused' || holder.state === 'blocked'
    const state = isAside ? holder.state : dueAt <= this.#now ? 'ready' : 'scheduled'
    await putIn(this.#s, [{ job: moved, state }], this.#now)
    return movedFor(job, holder.id)
  }

  async #write(): Promise<void> {
    // One moment for all of it: a job that was let in when a window ended must not seem to have come within it.
    await writePlaced(this.#s, this.#fresh.splice(0), this.#now)
    for (const name of this.#coming) this.#changed.add(name)
    this.#coming.clear()
  }

  #hasChanged({ name, key, options }: Standing): void {
    for (const each of namesOf({ name, key, unique: readOptions(options).unique })) this.#changed.add(each)
  }

  async #look(jobs: readonly NewJob[]): Promise<void> {
    const keyed = jobs.filter((job) => job.key !== null).map(({ name, key }) => ({ name, key }))
    const placed = jobs.flatMap(({ name, unique }) => (unique === undefined ? [] : [{ name, key: unique.key }]))
    const keys =
      keyed.length === 0 ? [] : await this.#s.query<KeyRow>(this.#s.queries.keyHolders, JSON.stringify(keyed))
    const places =
      placed.length === 0 ? [] : await this.#s.query<RawPlace>(this.#s.queries.placeHolders, JSON.stringify(placed))
    const standing = await readStanding(
      this.#s,
      [...keys, ...places].map((row) => Number(row.ref)),
    )
    for (const name of jobs.flatMap(namesOf)) this.#changed.delete(name)
    for (const { name, key } of keyed) this.#keys.delete(`${name}\n${key}`)
    for (const { name, key } of placed) this.#places.delete(`${name}\n${key}`)
    for (const row of keys) {
      const holder = standing.get(Number(row.ref))
      // One that ended between the two looks has given its key back.
      if (holder === undefined || holder.place === 'history') continue
      const name = `${row.askedName}\n${row.askedKey}`
      this.#keys.set(name, [...(this.#keys.get(name) ?? []), { ...holder, turn: Number(row.turn) }])
    }
    for (const row of places) this.#places.set(`${row.name}\n${row.key}`, toPlace(row, standing.get(Number(row.ref))))
  }

  #keyHeld(job: NewJob, holder: Standing, index: number): DuplicateKeyError {
    const why =
      this.#options.onDuplicate === 'replace'
        ? 'is held by a job that is running and cannot be replaced'
        : 'is held by an unfinished job'
    const { existingId, where } = describeConflict(holder.id, this.#jobs, index)
    return new DuplicateKeyError(job.name, job.key ?? '', existingId, `${why}${where}`)
  }
}

interface KeyRow {
  readonly askedName: string
  readonly askedKey: string
  readonly ref: unknown
  readonly turn: unknown
}

/** An unfinished job that holds a key; a successor's turn is one higher than that of the job before it. */
type KeyHolder = Standing & { readonly turn: number }

/** What is known of the other jobs of a key when a job is written under it. */
interface Others {
  /** It waits, and is cancelled if the new one is written. */
  readonly replaced?: KeyHolder | undefined
  /** It is unfinished, and the new one is blocked until it ends. */
  readonly follows?: KeyHolder | undefined
}

/** No worker may claim it before its link is written. */
function blockedBy(job: NewJob, { id }: KeyHolder): PlannedJob {
  const { planned } = job as Partial<PlannedJob>
  const after = typeof planned?.after === 'string' ? (JSON.parse(planned.after) as string[]) : []
  const all = JSON.stringify([...new Set([...after, id])])
  return { ...job, planned: { is_parent: undefined, ...planned, after: all, blocked: true } }
}

function namesOf(
  job: Pick<NewJob, 'name' | 'key'> & { readonly unique?: { readonly key: string } | undefined },
): string[] {
  return [
    ...(job.key === null ? [] : [`key ${job.name}\n${job.key}`]),
    ...(job.unique === undefined ? [] : [`place ${job.name}\n${job.unique.key}`]),
  ]
}
