import { decideCommand } from '../../../job/rules/command.js'
import { decideOverlap, isOverlapping, openAfter } from '../../../job/rules/overlap.js'
import { calledOffFor, heldUp, keyHeld, lastAtOf, nextOnes, waitsFor, whyNotWritten } from '../../firing.js'
import type { NotWritten } from '../../firing.js'
import { TICKS_KEPT, TRIM_EVERY } from '../../schedules.js'
import type { Fired, Firing, PlannedTick, TickRow } from '../../schedules.js'
import type { NewJob } from '../../store.js'
import { changeJob } from './change.js'
import { insertJobs } from './insert.js'
import { clean } from './moves.js'
import { readJobs } from './read.js'
import { toSchedule } from './schedule-rows.js'
import type { StoredSchedule } from './schedule-rows.js'
import type { Session } from '../connection/session.js'
import { textOf } from '../connection/session.js'
import { requestChange } from './request.js'
import { isPlain } from './write.js'

/** One that others keep moving is left to them. */
const TRIES = 20

/** Within a transaction. Whoever read another revision comes second, and writes nothing. */
export async function fireTicks(s: Session, firing: Firing): Promise<Fired> {
  const [row] = await s.query<StoredSchedule>(s.queries.lockSchedule, firing.id, String(firing.revision))
  if (row === undefined) return 'stale'
  const { open } = toSchedule(row)
  const now = await s.now()
  const ticks = nextOnes(firing.overlap, await freshTicks(s, firing))
  const fired = areTogether(firing, ticks)
    ? await fireTogether(s, ticks, { open, firing, now })
    : await fireInTurn(s, ticks, { open: await stillOpen(s, firing, open), firing, now })
  await putTicks(s, firing.id, fired.ticks)
  const lastAt = textOf(lastAtOf(fired.ticks))
  const moved = [textOf(firing.pausedAt), textOf(firing.nextAt), lastAt, JSON.stringify(fired.open)] as const
  await s.query(s.queries.moveSchedule, firing.id, ...moved)
  if (Number(row.fired) % TRIM_EVERY === TRIM_EVERY - 1)
    await s.query(s.queries.trimTicks, firing.id, String(TICKS_KEPT))
  if (firing.nextAt !== null) s.note({ dueInMs: Math.max(0, firing.nextAt - now) })
  return fired.ticks
}

/** Those that have no job yet. */
async function freshTicks(s: Session, { id, ticks }: Firing): Promise<PlannedTick[]> {
  if (ticks.length === 0) return []
  const asked = JSON.stringify(ticks.map(({ at, byHand }) => ({ at, by_hand: byHand })))
  const rows = await s.query<{ at: unknown; by_hand: boolean }>(s.queries.firedTicks, id, asked)
  const fired = new Set(rows.map((row) => `${Number(row.at)} ${row.by_hand}`))
  return ticks.filter(({ at, byHand }) => !fired.has(`${at} ${byHand}`))
}

interface Situation {
  readonly open: readonly string[]
  readonly firing: Firing
  readonly now: number
}

interface FiredTicks {
  readonly ticks: readonly TickRow[]
  readonly open: readonly string[]
}

/** Nobody stands in the way of any of them, and none can be refused: then they are written in one go. */
function areTogether(firing: Firing, ticks: readonly PlannedTick[]): boolean {
  return firing.overlap === 'allow' && ticks.every(({ job }) => job === null || isPlain(job))
}

async function fireTogether(s: Session, ticks: readonly PlannedTick[], situation: Situation): Promise<FiredTicks> {
  const { firing, now } = situation
  const jobs = ticks.flatMap(({ job }) => (job === null ? [] : [job]))
  await insertJobs(s, jobs, { onDuplicate: firing.onDuplicate, keepCancelledMs: firing.keepCancelledMs })
  return {
    ticks: ticks.map(({ job, ...tick }) => ({ ...tick, job: job?.id ?? null, firedAt: now })),
    open: jobs.reduce((open, { id }) => openAfter('run', open, id), situation.open),
  }
}

async function fireInTurn(s: Session, planned: readonly PlannedTick[], situation: Situation): Promise<FiredTicks> {
  const ticks: TickRow[] = []
  let { open } = situation
  for (const each of planned) {
    const one = await fireTick(s, each, { ...situation, open })
    ticks.push(one.tick)
    open = one.open
  }
  return { ticks, open }
}

async function stillOpen(s: Session, firing: Firing, open: readonly string[]): Promise<readonly string[]> {
  if (firing.overlap === 'allow' || open.length === 0) return open
  const rows = await readJobs(s, open)
  return open.filter((_, i) => isOverlapping(rows[i]?.state))
}

async function fireTick(
  s: Session,
  { job, ...tick }: PlannedTick,
  { open, firing, now }: Situation,
): Promise<{ readonly tick: TickRow; readonly open: readonly string[] }> {
  const skipped = (reason: string | null, advice?: string): { tick: TickRow; open: readonly string[] } => ({
    tick: { ...tick, outcome: 'skipped', reason, advice, job: null, firedAt: now },
    open,
  })
  if (job === null) return skipped(tick.reason)
  const verdict = decideOverlap(firing.overlap, open.length)
  if (verdict === 'skip') return skipped(heldUp(open))
  if (verdict === 'cancel') for (const id of open) await callOff(s, id, firing)
  const not = await insertTick(s, verdict === 'wait' ? waitsFor(job, open) : job, firing)
  if (not !== null) return skipped(not.reason, not.advice)
  return { tick: { ...tick, job: job.id, firedAt: now }, open: openAfter(verdict, open, job.id) }
}

/** Null when it is there; else why it is not: its key or its place is another's, a parent is missing, or its group is sealed. */
async function insertTick(
  s: Session,
  job: NewJob,
  { onDuplicate, keepCancelledMs }: Firing,
): Promise<NotWritten | null> {
  try {
    const [inserted] = await insertJobs(s, [job], { onDuplicate, keepCancelledMs })
    return inserted?.isNew === true ? null : keyHeld(inserted?.id)
  } catch (error) {
    // Thrown before anything was written. The schedule goes on all the same.
    return whyNotWritten(error)
  }
}

/** A worker may take it meanwhile, or end it: then it is asked, or there is nothing left to do. */
async function callOff(s: Session, id: string, firing: Firing): Promise<void> {
  const [reason, keepMs] = [calledOffFor(firing.id), firing.keepCancelledMs]
  for (let tries = 0; tries < TRIES; tries += 1) {
    const [row] = await readJobs(s, [id])
    const move = row === undefined ? null : decideCommand(row.state, 'cancel')
    if (row === undefined || move === null) return
    const done =
      move.request === undefined
        ? await changeJob(s, { id, from: row.state, to: move.to, reason, keepMs })
        : await requestChange(s, { id, verb: move.request, reason, keepMs })
    if (done !== 'stale') return
  }
}

async function putTicks(s: Session, id: string, ticks: readonly TickRow[]): Promise<void> {
  if (ticks.length === 0) return
  const rows = ticks.map(({ at, byHand, outcome, reason, job, firedAt }) => ({
    at,
    by_hand: byHand,
    outcome,
    reason: clean(reason),
    job,
    fired_at: firedAt,
  }))
  await s.query(s.queries.putTicks, id, JSON.stringify(rows))
}
