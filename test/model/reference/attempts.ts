import { countEnd, endJob } from './ends.js'
import { isLimited, noteStart, roomFor } from './limits.js'
import { endItem } from './sequences.js'
import { BACKOFF_MS, CRASH_BUDGET, isSuspect, jobOf, LEASE_MS, Refused, RETRY_LIMIT, STOP_MS } from './state.js'
import type { Attempt, Leaving, Model, ModelJob } from './state.js'
import { leaveHand } from './workflows.js'

/** How an attempt ends. */
export type Outcome =
  | { readonly kind: 'return' }
  | { readonly kind: 'throw' }
  | { readonly kind: 'abort' }
  | { readonly kind: 'snooze'; readonly ms: number }

/** One point of priority is worth ten minutes of waiting. */
const POINT_MS = 600_000
/** The first quarantine; each further crash in a row doubles it. */
const QUARANTINE_MS = 60_000

const sortOf = (job: ModelJob): number => job.dueAt - job.priority * POINT_MS

/** The jobs of a queue of which one begins next in this mill: the first, or those that are first alike. */
export function nextOf(model: Model, mill: number, queue: string): ModelJob[] {
  if (model.paused.has(queue) || isQuarantined(model, mill)) return []
  const ready = model.jobs
    .filter((job) => job.state === 'ready' && job.queue === queue)
    .toSorted((one, other) => sortOf(one) - sortOf(other) || one.call - other.call)
  const isIdle = handlersIn(model, mill).length === 0
  const plain = firstOf(
    ready.filter((job) => !isLimited(job)),
    isIdle,
  )
  const limited = ready.filter(isLimited)
  // Suspects come first, also those that their limits keep from beginning.
  const alone = isIdle ? limited.filter(isSuspect) : []
  const from = (alone.length > 0 ? alone : limited).filter((job) => roomFor(model, job) !== 'no')
  const firsts = [...new Set(from.map(({ name }) => name))].map((name) =>
    firstOf(
      from.filter((job) => job.name === name),
      isIdle,
    ),
  )
  const sure = firsts
    .filter(([job]) => job !== undefined && roomFor(model, job) === 'surely')
    .map(([job]) => job as ModelJob)
  const soonest = Math.min(...sure.map(sortOf))
  return [...plain, ...firsts.flat().filter((job) => alone.length > 0 || sortOf(job) <= soonest)]
}

/** The first of these jobs, or those of one call that are first alike. */
function firstOf(ready: readonly ModelJob[], isIdle: boolean): ModelJob[] {
  const suspects = isIdle ? ready.filter(isSuspect) : []
  const shortest = Math.min(...suspects.map((job) => job.streak))
  const from =
    suspects.length > 0 ? suspects.filter((job) => job.streak === shortest) : ready.filter((job) => !isSuspect(job))
  const [first] = from
  return first === undefined ? [] : from.filter((job) => sortOf(job) === sortOf(first) && job.call === first.call)
}

/** A suspect runs alone in its mill. */
export function isQuarantined(model: Model, mill: number): boolean {
  return handlersIn(model, mill).some(({ hasClaim, quarantinedUntil }) => hasClaim && quarantinedUntil !== null)
}

/** The handlers that run in this mill, also those whose claim is over. */
export function handlersIn(model: Model, mill: number): Attempt[] {
  return model.attempts.filter((attempt) => attempt.mill === mill && !attempt.hasLeft)
}

export function begin(model: Model, mill: number, job: ModelJob): Attempt {
  job.state = 'running'
  noteStart(model, job)
  const quarantineMs = isSuspect(job) ? QUARANTINE_MS * 2 ** (job.streak - 2) : null
  const attempt: Attempt = {
    number: (model.begun += 1),
    job: job.number,
    mill,
    hasClaim: true,
    isOver: false,
    hasLeft: false,
    quarantinedUntil: quarantineMs === null ? null : model.now + quarantineMs,
    graceUntil: null,
  }
  model.attempts.push(attempt)
  return attempt
}

/** The handler ended. If its claim is over, nothing is recorded. True: the next item of its sequence begins. */
export function finish(model: Model, attempt: Attempt, outcome: Outcome): boolean {
  model.attempts = model.attempts.filter((each) => each !== attempt)
  const job = jobOf(model, attempt.job)
  if (!attempt.hasClaim) return false
  const goesOn = job.sequence !== null && endItem(model, job, outcome)
  if (job.sequence === null) end(model, job, outcome)
  countEnd(model, job)
  return goesOn
}

/** The handler settled its job in its own transaction: done with it, and a rolled back one is a failed attempt. */
export function settleIn(model: Model, attempt: Attempt, commits: boolean): void {
  if (attempt.isOver) throw new Refused('E_ALREADY_SETTLED')
  if (!attempt.hasClaim) throw new Refused('E_LEASE_LOST')
  const job = jobOf(model, attempt.job)
  end(model, job, { kind: commits ? 'return' : 'throw' })
  countEnd(model, job)
}

/** What was asked while it ran is applied: done stays done, everything else obeys. */
export function end(model: Model, job: ModelJob, outcome: Outcome): void {
  const { request } = job
  job.request = null
  job.streak = 0
  // It has begun, so it can no longer expire before it begins.
  job.expiresAt = null
  // A snooze is no attempt, unless the job was cancelled while it ran.
  if (outcome.kind !== 'snooze' || request === 'cancel') job.attempt += 1
  if (outcome.kind === 'return') return endJob(model, job, 'done')
  if (request === 'cancel') return endJob(model, job, 'cancelled')
  if (outcome.kind === 'abort' || (outcome.kind === 'throw' && job.retries >= RETRY_LIMIT))
    return endJob(model, job, 'failed')
  if (outcome.kind === 'throw') job.retries += 1
  job.hasFailed = outcome.kind === 'throw'
  job.dueAt = model.now + (outcome.kind === 'snooze' ? outcome.ms : BACKOFF_MS)
  job.state = request === 'pause' ? 'paused' : outcome.kind === 'snooze' ? 'scheduled' : 'retrying'
}

/** After a lease without a heartbeat, or at once where its end is proven, the jobs of a mill are rescued; a stop gives them back. */
export function leave(model: Model, mill: number, how: Leaving): void {
  const handlers = handlersIn(model, mill)
  const attempts = handlers.map(({ number }) => number)
  for (const attempt of handlers) attempt.hasLeft = how !== 'frozen'
  model.mills[mill] = how === 'frozen' ? 'frozen' : 'gone'
  const waitMs = { proven: 0, stopped: STOP_MS, killed: LEASE_MS, frozen: LEASE_MS }[how]
  model.departures.push({ mill, how, freeAt: model.now + waitMs, attempts })
  freeDue(model)
}

/** A mill takes the place of one that is gone. */
export function restart(model: Model, mill: number): void {
  model.mills[mill] = 'up'
}

/** Jobs of mills that left run again. The handlers of a frozen one go on, and what they do is recorded nowhere. */
export function freeDue(model: Model): void {
  const due = model.departures.filter(({ freeAt }) => freeAt <= model.now)
  model.departures = model.departures.filter((each) => !due.includes(each))
  for (const { mill, how, attempts } of due) {
    for (const attempt of model.attempts.filter(({ number }) => attempts.includes(number))) {
      const job = jobOf(model, attempt.job)
      if (attempt.hasClaim && how === 'stopped') runAgain(model, job)
      else if (attempt.hasClaim) crash(model, job, attempt.quarantinedUntil !== null)
      attempt.hasClaim = false
    }
    if (how === 'frozen') model.mills[mill] = 'up'
    // The run of a workflow whose claim is lost is frozen, and its place is free at once.
    const isOver = ({ number, job }: Attempt): boolean =>
      attempts.includes(number) && (how !== 'frozen' || jobOf(model, job).workflow !== null)
    model.attempts = model.attempts.filter((attempt) => !isOver(attempt))
  }
}

/** A crash is charged to a job in quarantine alone; past the crash budget it is parked. */
function crash(model: Model, job: ModelJob, isQuarantined: boolean): void {
  if (isQuarantined) job.crashes += 1
  const isParked = isQuarantined && job.crashes >= CRASH_BUDGET
  job.streak = isParked ? 0 : job.streak + 1
  runAgain(model, job, isParked ? 'parked' : 'ready')
}

/** The attempt counts nothing. What was asked of the job is done now. */
function runAgain(model: Model, job: ModelJob, to: 'ready' | 'parked' = 'ready'): void {
  const { request } = job
  leaveHand(job)
  job.request = null
  job.expiresAt = null
  if (request === 'cancel') return endJob(model, job, 'cancelled')
  job.state = to === 'ready' && request === 'pause' ? 'paused' : to
}

/** Handlers that ignore their cancel for 30 seconds are settled without; suspects that outlive their quarantine leave it. */
export function attemptsDue(model: Model): void {
  for (const attempt of model.attempts) {
    if (!attempt.hasClaim || !isWorking(model, attempt)) continue
    const { quarantinedUntil, graceUntil } = attempt
    if (quarantinedUntil !== null && quarantinedUntil <= model.now) attempt.quarantinedUntil = null
    if (graceUntil === null || graceUntil > model.now) continue
    Object.assign(attempt, { hasClaim: false, isOver: true })
    const job = jobOf(model, attempt.job)
    job.attempt += 1
    endJob(model, job, 'cancelled')
  }
}

/** Its process runs, and may be about to stop. */
export function isWorking(model: Model, { number, mill, hasLeft }: Attempt): boolean {
  return (
    (model.mills[mill] === 'up' && !hasLeft) ||
    model.departures.some(({ how, attempts }) => how === 'stopped' && attempts.includes(number))
  )
}
