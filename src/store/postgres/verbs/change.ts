import { DuplicateJobError, DuplicateKeyError } from '../../../errors.js'
import { logCommand } from '../../../job/attempt/attempt-log.js'
import { resumedState, timedState } from '../../../job/rules/command.js'
import type { FinalState, State } from '../../../job/rules/states.js'
import { isFinal, isTimed } from '../../../job/rules/states.js'
import { readOptions } from '../../../job/definition/stored-options.js'
import { decideUniqueSlot } from '../../../job/rules/unique.js'
import { instant } from '../../ordering.js'
import type { Changed, GuardedChange } from '../../store.js'
import { countMoves } from './groups.js'
import { lockNames } from './insert-meeting.js'
import { placeNow, readPlace } from './unique.js'
import { addParents, linkedAmong } from './links.js'
import { endAll, forgetAll, freeKeys, laneIn, putIn, takeOut } from './moves.js'
import type { KeyedEnd, Placed } from './moves.js'
import { readById, readStanding } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf, textOf } from '../connection/session.js'

/** A job that others keep moving is left to them. */
const TRIES = 20

/** Does a command, if the job is still as the decision saw it. Within a transaction. */
export async function changeJob(s: Session, change: GuardedChange): Promise<Changed> {
  const now = await s.now()
  for (let tries = 0; tries < TRIES; tries += 1) {
    const job = await readById(s, change.id)
    // A held job is claimed and yet `ready`: it can be taken from its holder, who asks before it begins one.
    if (job === undefined || job.state !== change.from || job.state === 'running') return 'stale'
    if (job.claimed && !mayBeTaken(change.to)) return 'stale'
    if (!(await takeOut(s, job))) continue
    // Only now: a key taken for a job that then turned out to be gone would be nobody's for ever.
    if (isFinal(job.state) && change.to !== 'gone') await retake(s, job, now)
    await put(s, job, change, now)
    await countMoves(s)
    if (!job.claimed) return 'changed'
    s.note({ requested: true })
    return 'taken'
  }
  return 'stale'
}

function mayBeTaken(to: GuardedChange['to']): boolean {
  return to === 'gone' || to === 'paused' || isFinal(to)
}

async function put(s: Session, job: Standing, change: GuardedChange, now: number): Promise<void> {
  if (change.to === 'gone') await forget(s, job)
  else if (isFinal(change.to)) await endAll(s, [endOf(job, change, change.to)])
  else if (isTurn(job.state, change.to)) await turnAll(s, [{ job, change, to: change.to }], now)
  else await move(s, job, change, change.to, now)
}

export function endOf(job: Standing, { keepMs, reason }: GuardedChange, to: FinalState): KeyedEnd {
  return { ...job, to, keepMs, reason: reason ?? null, result: null }
}

/** A pause, a resume, or the retry of one that ended. */
export function isTurn(from: State, to: State): boolean {
  return isFinal(from) || (to === 'paused') !== (from === 'paused')
}

/** A job that was taken out, and what it is turned into. */
export interface Turn {
  readonly job: Standing
  readonly change: GuardedChange
  readonly to: State
}

export async function turnAll(s: Session, turns: readonly Turn[], now: number): Promise<void> {
  const jobs = turns.map(({ job }) => job)
  const linked = await linkedAmong(
    s,
    jobs.filter((job) => job.state === 'paused'),
  )
  const back = jobs.filter((job) => isFinal(job.state)).map((job) => job.ref)
  if (back.length > 0) await s.query(s.queries.forgetLeases, arrayOf(back))
  await putIn(
    s,
    turns.map((turn) => turned(turn, now, linked)),
    now,
  )
}

/** `linked`: those that have parents to wait for. */
function turned({ job, change, to }: Turn, now: number, linked: ReadonlySet<number>): Placed {
  const log = logCommand(job.log, change.exit, now)
  if (isFinal(job.state)) return { state: to, job: { ...revived(job, change, now), log } }
  if (to === 'paused') return { state: 'paused', job: { ...job, reason: change.reason ?? null, log } }
  const isBlocked = linked.has(job.ref)
  const state = resumedState({ isDue: job.dueAt <= now, hasFailed: job.error !== null, isBlocked })
  return { state, job: { ...job, reason: null, log } }
}

function revived(job: Standing, change: GuardedChange, now: number): Standing {
  const retries = change.freshRetries === true ? 0 : job.retries
  return { ...job, dueAt: now, expiresAt: null, retries, streak: 0, error: null, reason: null }
}

async function forget(s: Session, job: Standing): Promise<void> {
  await s.query(s.queries.freePlaces, arrayOf([job.ref]))
  await forgetAll(s, [{ ref: job.ref, what: job.state === 'done' ? 'done' : 'gone' }])
  await freeKeys(s, [job])
  s.note({ settled: true })
}

/** A finished job that is made live again must take its key and its place anew. */
async function retake(s: Session, job: Standing, now: number): Promise<void> {
  const { unique } = readOptions(job.options)
  const place =
    unique === undefined
      ? undefined
      : { key: unique.key, while: unique.while, onDuplicate: 'reject' as const, forMs: null }
  await lockNames(s, [{ name: job.name, key: job.key, unique: place }])
  await takeKey(s, job)
  if (place !== undefined) await takePlace(s, job, place, now)
}

async function takeKey(s: Session, job: Standing): Promise<void> {
  if (job.key === null) return
  const taken = await s.query(s.queries.takeKey, job.name, job.key, String(job.ref))
  if (taken.length > 0) return
  const [row] = await s.query<{ ref: unknown }>(
    s.queries.keyHolders,
    JSON.stringify([{ name: job.name, key: job.key }]),
  )
  const holder = (await readStanding(s, [Number(row?.ref)])).get(Number(row?.ref))
  throw new DuplicateKeyError(job.name, job.key, holder?.id, 'is now held by another unfinished job')
}

/** A window that runs does not refuse it: windows hold back enqueues, and a retry was asked for by a person. */
async function takePlace(
  s: Session,
  job: Standing,
  place: { readonly key: string; readonly while: 'unfinished' | 'waiting'; readonly onDuplicate: 'reject' },
  now: number,
): Promise<void> {
  const row = await readPlace(s, job.name, place.key)
  const { holder, windowRuns } = placeNow(row, now)
  const other = row?.id === job.id ? null : holder
  if (row !== undefined && decideUniqueSlot({ holder: other, windowRuns: false }, place) === 'reject')
    throw new DuplicateJobError(job.name, place.key, row.id, 'is now unfinished')
  const until = row !== undefined && windowRuns ? row.until : null
  await s.query(s.queries.takePlace, job.name, place.key, String(job.ref), job.id, textOf(until))
}

async function move(s: Session, job: Standing, change: GuardedChange, to: State, now: number): Promise<void> {
  const { edit } = change
  const leftParked = job.state === 'parked'
  const dueAt = change.due === undefined ? job.dueAt : instant(change.due, now)
  const opened = edit?.after === undefined ? [] : await addParents(s, job, edit.after)
  const wanted = isTimed(job.state) || to === 'ready' ? timedState(job.state, to, dueAt <= now) : to
  const state = opened.length > 0 && wanted !== 'paused' ? 'blocked' : wanted
  const moved: Standing = {
    ...job,
    dueAt,
    retries: change.freshRetries === true ? 0 : job.retries,
    streak: 0,
    priority: edit?.priority ?? job.priority,
    queue: edit?.queue ?? job.queue,
    lane: await laneIn(s, job, edit?.queue ?? job.queue),
    payload: edit?.payload ?? job.payload,
    options: edit?.options === undefined ? job.options : edit.options,
    error: leftParked ? null : job.error,
    reason: leftParked ? null : job.reason,
    log: logCommand(job.log, change.exit, now),
  }
  await putIn(s, [{ job: moved, state }], now)
}
