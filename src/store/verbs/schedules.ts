import { CycleError, DuplicateJobError, DuplicateKeyError, GroupSealedError, ParentMissingError } from '../../errors.js'
import { decideCommand } from '../../job/rules/command.js'
import { decideOverlap, isOverlapping, openAfter } from '../../job/rules/overlap.js'
import type { Overlap } from '../../job/rules/overlap.js'
import type { State } from '../../job/rules/states.js'
import { isPlainJob } from '../conflicts.js'
import { hasParents } from '../links.js'
import { booleanOf, numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { BINNED_MAX, TICKS_KEPT, TRIM_EVERY } from '../schedules.js'
import type {
  DueSchedules,
  Fired,
  Firing,
  PlannedTick,
  PutSchedule,
  ScheduleRow,
  ScheduleStore,
  TickRow,
  UpcomingCounts,
  UpcomingJobs,
} from '../schedules.js'
import type { NewJob } from '../store.js'
import type { JobSteps } from './job-steps.js'
import type { AuditNote } from '../../job/command-options.js'
import { entryOf, iso, writeAudit } from './audit.js'
import { requestChange } from './requests.js'
import { awaited } from './verb.js'
import type { Verb, VerbRunner, VerbSession } from './verb.js'

type Session = VerbSession & JobSteps

/** The schedules role, for both stores. */
export class Schedules implements ScheduleStore {
  readonly #verbs: VerbRunner

  constructor(verbs: VerbRunner) {
    this.#verbs = verbs
  }

  readSchedule(id: string): Promise<{ now: number; schedule: ScheduleRow | undefined }> {
    return this.#verbs.read(function* (session) {
      const [row] = yield* awaited(session.rows<StoredSchedule>('readSchedule', id))
      return { now: yield* awaited(session.now()), schedule: row === undefined ? undefined : toSchedule(row) }
    })
  }

  listSchedules(after: string, limit: number): Promise<{ now: number; schedules: readonly ScheduleRow[] }> {
    return this.#verbs.read(function* (session) {
      const rows = yield* awaited(session.rows<StoredSchedule>('listSchedules', after, limit))
      return { now: yield* awaited(session.now()), schedules: rows.map(toSchedule) }
    })
  }

  putSchedule(schedule: PutSchedule, revision: number | null): Promise<boolean> {
    return this.#verbs.write((session) => putSchedule(session, schedule, revision))
  }

  dropSchedule(id: string, audit?: AuditNote): Promise<boolean> {
    return this.#verbs.write(function* (session) {
      const dropped = yield* awaited(session.rows('dropSchedule', id))
      yield* awaited(session.run('dropTicks', id))
      if (dropped.length > 0) yield* writeAudit(session, entryOf(audit, `schedule ${id}`, null, 'deleted'))
      return dropped.length > 0
    })
  }

  dueSchedules(limit: number): Promise<DueSchedules> {
    return this.#verbs.read((session) => dueSchedules(session, limit))
  }

  fireTicks(firing: Firing): Promise<Fired> {
    return this.#verbs.write((session) => fireTicks(session, firing), { jobs: jobsOf(firing.ticks) })
  }

  readTicks(id: string, before: number | null, limit: number): Promise<readonly TickRow[]> {
    return this.#verbs.read(function* (session) {
      const end = before ?? Number.MAX_SAFE_INTEGER
      return (yield* awaited(session.rows<StoredTick>('readTicks', id, end, limit))).map(toTick)
    })
  }

  upcomingJobs(withinMs: number, limit: number): Promise<UpcomingJobs> {
    return this.#verbs.read((session) => upcomingJobs(session, withinMs, limit))
  }

  upcomingCounts(span: { readonly withinMs: number; readonly binMs: number }): Promise<UpcomingCounts> {
    return this.#verbs.read((session) => upcomingCounts(session, span))
  }
}

function* putSchedule(session: Session, schedule: PutSchedule, revision: number | null): Verb<boolean> {
  const { id, spec, createdAt, pausedAt, nextAt, audit } = schedule
  const written =
    revision === null
      ? yield* awaited(session.rows('addSchedule', id, spec, createdAt, pausedAt, nextAt))
      : yield* awaited(session.rows('putSchedule', spec, createdAt, pausedAt, nextAt, id, revision))
  if (written.length === 0) return false
  yield* writeAudit(session, entryOf(audit, `schedule ${id}`, null, textOf(schedule)))
  if (nextAt !== null) session.note({ dueInMs: Math.max(0, nextAt - (yield* awaited(session.now()))) })
  return true
}

function* dueSchedules(session: Session, limit: number): Verb<DueSchedules> {
  const [row] = yield* awaited(session.rows<{ next: Numeric | null; now: Numeric }>('nextSchedule', session.givenNow))
  const [now, next] = [numberOf(row?.now), numberOrNull(row?.next)]
  const due = yield* awaited(session.rows<StoredSchedule>('dueSchedules', now, limit))
  return { now, due: due.map(toSchedule), nextInMs: next === null ? null : next - now }
}

/** Locks the schedule first: a process that read another revision, or finds the row locked, writes nothing. */
function* fireTicks(session: Session, firing: Firing): Verb<Fired> {
  const [row] = yield* awaited(session.rows<StoredSchedule>('lockSchedule', firing.id, firing.revision))
  if (row === undefined) return 'stale'
  const { open, lastAt } = toSchedule(row)
  const now = yield* awaited(session.now())
  const ticks = lastOfCancelled(firing.overlap, yield* unfiredTicks(session, firing))
  const fired = canFireTogether(firing, ticks)
    ? yield* fireTogether(session, ticks, { open, firing, now })
    : yield* fireOneByOne(session, ticks, { open: yield* stillOpen(session, firing, open), firing, now })
  yield* putTicks(session, firing.id, fired.ticks)
  const { pausedAt, nextAt } = firing
  const last = latestOf(lastAt, fired.ticks)
  yield* awaited(session.run('moveSchedule', pausedAt, nextAt, last, JSON.stringify(fired.open), firing.id))
  if (numberOf(row.fired) % TRIM_EVERY === TRIM_EVERY - 1)
    yield* awaited(session.run('trimTicks', firing.id, TICKS_KEPT - 1))
  if (nextAt !== null) session.note({ dueInMs: Math.max(0, nextAt - now) })
  yield* writeFiringAudit(session, firing, toSchedule(row), fired.ticks)
  return fired.ticks
}

function* writeFiringAudit(
  session: Session,
  firing: Firing,
  before: ScheduleRow,
  ticks: readonly TickRow[],
): Verb<void> {
  const [entry] = entryOf(firing.audit, `schedule ${firing.id}`, textOf(before), textOf(firing))
  // A pause or a resume changes the schedule; another command enqueues jobs.
  const jobs = ticks.filter((tick) => tick.job !== null).length
  if (entry !== undefined) yield* writeAudit(session, [{ ...entry, count: Math.max(1, jobs) }])
}

function textOf({ pausedAt, nextAt }: { readonly pausedAt: number | null; readonly nextAt: number | null }): string {
  if (pausedAt !== null) return 'paused'
  return nextAt === null ? 'ended' : `next ${iso(nextAt)}`
}

/** The ticks that have no job yet. */
function* unfiredTicks(session: Session, { id, ticks }: Firing): Verb<readonly PlannedTick[]> {
  if (ticks.length === 0) return []
  const wanted = JSON.stringify(ticks.map(({ at, byHand }) => ({ at, by_hand: byHand })))
  const rows = yield* awaited(session.rows<{ at: Numeric; by_hand: unknown }>('firedTicks', id, wanted))
  const fired = new Set(rows.map((row) => `${numberOf(row.at)} ${booleanOf(row.by_hand)}`))
  return ticks.filter(({ at, byHand }) => !fired.has(`${at} ${byHand}`))
}

/**
 * When several ticks fire together and a later one would cancel the earlier, only the last gets a job: the others would
 * be cancelled before a worker could claim them.
 */
function lastOfCancelled(overlap: Overlap, ticks: readonly PlannedTick[]): readonly PlannedTick[] {
  if (overlap !== 'cancel') return ticks
  const last = ticks.findLast((tick) => tick.job !== null)
  return ticks.map((tick) =>
    tick.job === null || tick === last
      ? tick
      : { ...tick, outcome: 'skipped', reason: 'a later tick ran instead', job: null },
  )
}

interface Situation {
  /** Unfinished jobs of earlier ticks. */
  readonly open: readonly string[]
  readonly firing: Firing
  readonly now: number
}

interface FiredTicks {
  readonly ticks: readonly TickRow[]
  readonly open: readonly string[]
}

/** The overlap rule does not matter and no job can be refused: one insert writes all jobs. */
function canFireTogether(firing: Firing, ticks: readonly PlannedTick[]): boolean {
  return firing.overlap === 'allow' && jobsOf(ticks).every(isPlainJob)
}

function* fireTogether(session: Session, ticks: readonly PlannedTick[], situation: Situation): Verb<FiredTicks> {
  const { firing, now } = situation
  const jobs = jobsOf(ticks)
  yield* awaited(session.insertJobs(jobs, insertOptionsOf(firing)))
  return {
    ticks: ticks.map(({ job, ...tick }) => ({ ...tick, job: job?.id ?? null, firedAt: now })),
    open: jobs.reduce((open, { id }) => openAfter('run', open, id), situation.open),
  }
}

function* fireOneByOne(session: Session, planned: readonly PlannedTick[], situation: Situation): Verb<FiredTicks> {
  const ticks: TickRow[] = []
  let { open } = situation
  for (const each of planned) {
    const one = yield* fireTick(session, each, { ...situation, open })
    ticks.push(one.tick)
    open = one.open
  }
  return { ticks, open }
}

function* stillOpen(session: Session, firing: Firing, open: readonly string[]): Verb<readonly string[]> {
  if (firing.overlap === 'allow' || open.length === 0) return open
  const rows = yield* awaited(session.readJobs(open))
  return open.filter((_, i) => isOverlapping(rows[i]?.state))
}

function* fireTick(
  session: Session,
  { job, ...tick }: PlannedTick,
  { open, firing, now }: Situation,
): Verb<{ readonly tick: TickRow; readonly open: readonly string[] }> {
  const skipped = (reason: string | null, advice?: string): { tick: TickRow; open: readonly string[] } => ({
    tick: { ...tick, outcome: 'skipped', reason, advice, job: null, firedAt: now },
    open,
  })
  if (job === null) return skipped(tick.reason)
  const verdict = decideOverlap(firing.overlap, open.length)
  if (verdict === 'skip') return skipped(`job ${open.at(-1)} of an earlier tick is unfinished`)
  if (verdict === 'cancel') for (const id of open) yield* cancelOpen(session, id, firing)
  const refused = yield* insertTick(session, verdict === 'wait' ? afterAll(job, open) : job, firing)
  if (refused !== null) return skipped(refused.reason, refused.advice)
  return { tick: { ...tick, job: job.id, firedAt: now }, open: openAfter(verdict, open, job.id) }
}

/** Blocks the job until the earlier jobs have ended, in any state, or are parked. */
function afterAll(job: NewJob, before: readonly string[]): NewJob {
  return { ...job, after: before.map((id) => ({ id })), onParentFailure: 'run-if-parked' }
}

/**
 * Null when the job was written; else the reason: another job holds its key or slot, a parent is missing or waits for
 * the job itself, or its group is sealed.
 */
function* insertTick(session: Session, job: NewJob, firing: Firing): Verb<Refused | null> {
  try {
    const insert = hasParents(job) ? 'insertApart' : 'insertJobs'
    const [inserted] = yield* awaited(session[insert]([job], insertOptionsOf(firing)))
    return inserted?.isNew === true ? null : { reason: `job ${inserted?.id ?? ''} holds its key or its unique slot` }
  } catch (error) {
    // A refused job must not stop the schedule. The error was thrown before anything was written, or that is undone: only
    // a job that is written with its parents can be found to wait for itself.
    return whyRefused(error)
  }
}

/** Why a tick has no job, and what to do when the next tick would have none either. */
interface Refused {
  readonly reason: string
  readonly advice?: string | undefined
}

function whyRefused(error: unknown): Refused {
  if (error instanceof ParentMissingError) return { reason: error.message, advice: KEEP_PARENTS }
  if (error instanceof GroupSealedError) return { reason: error.message, advice: OTHER_GROUP }
  if (error instanceof CycleError) return { reason: error.message, advice: OTHER_PARENTS }
  const isDuplicate = error instanceof DuplicateKeyError || error instanceof DuplicateJobError
  if (!isDuplicate) throw error
  return { reason: error.message }
}

const KEEP_PARENTS =
  'a finished job is pruned when its keep time is over: give the jobs that "after" names a longer keep (keep: Infinity), or call recurring() again with other jobs'
const OTHER_PARENTS = 'call recurring() again with other jobs in "after", or without them'
const OTHER_GROUP = 'call recurring() again with another group, or without one'

/** Give up after this many lost races with other processes for the same job. */
const TRIES = 20

/** A worker may claim or end the job meanwhile: then the cancel is requested, or nothing is left to do. */
function* cancelOpen(session: Session, id: string, firing: Firing): Verb<void> {
  const reason = `the next tick of schedule ${JSON.stringify(firing.id)} came`
  for (let tries = 0; tries < TRIES; tries += 1) {
    const [row] = yield* awaited(session.readJobs([id]))
    const move = row === undefined ? null : decideCommand(row.state, 'cancel')
    if (row === undefined || move === null) return
    const keepMs = firing.keepCancelledMsOf?.(row.name) ?? firing.keepCancelledMs
    const done =
      move.request === undefined
        ? yield* awaited(session.changeJob({ id, from: row.state, to: move.to, reason, keepMs }))
        : yield* requestChange(session, { id, verb: move.request, reason, keepMs })
    if (done !== 'stale') return
  }
}

function* putTicks(session: Session, id: string, ticks: readonly TickRow[]): Verb<void> {
  if (ticks.length === 0) return
  const rows = ticks.map(({ at, byHand, outcome, reason, job, firedAt }) => ({
    at,
    by_hand: byHand,
    outcome,
    reason: session.storable(reason),
    job,
    fired_at: firedAt,
  }))
  yield* awaited(session.run('putTicks', id, JSON.stringify(rows)))
}

function* upcomingJobs(session: Session, withinMs: number, limit: number): Verb<UpcomingJobs> {
  const now = yield* awaited(session.now())
  const waiting = yield* awaited(session.rows<StoredUpcoming>('waitingDue', now + withinMs, limit))
  const ready = yield* awaited(session.rows<StoredUpcoming>('readyDue', limit))
  const jobs = [...ready, ...waiting].map(({ due_at, ...job }) => ({ ...job, dueAt: numberOf(due_at) }))
  return { now, jobs: jobs.sort((a, b) => a.dueAt - b.dueAt).slice(0, limit) }
}

function* upcomingCounts(
  session: Session,
  { withinMs, binMs }: { readonly withinMs: number; readonly binMs: number },
): Verb<UpcomingCounts> {
  const now = yield* awaited(session.now())
  const rows = yield* awaited(
    session.rows<{ readonly queue: string; readonly bin: Numeric; readonly count: Numeric }>(
      'waitingBins',
      now,
      binMs,
      now + withinMs,
      BINNED_MAX + 1,
    ),
  )
  return { now, counts: rows.map(({ queue, bin, count }) => ({ queue, bin: numberOf(bin), count: numberOf(count) })) }
}

function jobsOf(ticks: readonly PlannedTick[]): NewJob[] {
  return ticks.flatMap(({ job }) => (job === null ? [] : [job]))
}

function insertOptionsOf({ onDuplicate, keepCancelledMs }: Firing): Pick<Firing, 'onDuplicate' | 'keepCancelledMs'> {
  return { onDuplicate, keepCancelledMs }
}

/** The latest tick of the rule: the known one, or one of these. */
function latestOf(lastAt: number | null, ticks: readonly TickRow[]): number | null {
  const times = ticks.filter((tick) => !tick.byHand).map((tick) => tick.at)
  if (lastAt !== null) times.push(lastAt)
  return times.length === 0 ? null : Math.max(...times)
}

interface StoredUpcoming {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly state: State
  readonly due_at: Numeric
  readonly options: string | null
}

interface StoredSchedule {
  readonly id: string
  readonly revision: Numeric
  readonly spec: string
  readonly created_at: Numeric
  readonly paused_at: Numeric | null
  readonly next_at: Numeric | null
  readonly last_at: Numeric | null
  readonly open: string
  readonly fired: Numeric
}

function toSchedule(row: StoredSchedule): ScheduleRow {
  return {
    id: row.id,
    revision: numberOf(row.revision),
    spec: row.spec,
    createdAt: numberOf(row.created_at),
    pausedAt: numberOrNull(row.paused_at),
    nextAt: numberOrNull(row.next_at),
    lastAt: numberOrNull(row.last_at),
    open: JSON.parse(row.open) as string[],
  }
}

interface StoredTick {
  readonly at: Numeric
  readonly by_hand: unknown
  readonly outcome: TickRow['outcome']
  readonly reason: string | null
  readonly job: string | null
  readonly fired_at: Numeric
}

function toTick({ at, by_hand, outcome, reason, job, fired_at }: StoredTick): TickRow {
  return { at: numberOf(at), byHand: booleanOf(by_hand), outcome, reason, job, firedAt: numberOf(fired_at) }
}
