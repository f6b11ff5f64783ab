import { retake } from './conflicts.js'
import { cancel, countEnd, endJob, resumedState } from './ends.js'
import { enqueue } from './enqueue.js'
import type { Enqueued } from './enqueue.js'
import { BACKOFF_MS, isFinal, isUnfinished, jobOf, Refused, RETRY_LIMIT, wholly } from './state.js'
import type { Attempt, Enqueue, Model, ModelJob } from './state.js'

/** How an item ends. */
type ItemOutcome = { readonly kind: 'return' | 'throw' | 'abort' } | { readonly kind: 'snooze'; readonly ms: number }

export type SequenceVerb = 'start' | 'pause' | 'resume' | 'cancel' | 'reset'

/** A sequence is one job. The key of an unfinished one gives that one; a job that is no sequence is not given. */
export function makeSequence(model: Model, name: string, total: number, isStarted: boolean, given: Enqueue): Enqueued {
  return wholly(model, (all) => {
    const made = enqueue(all, name, given)
    const job = jobOf(all, made.number)
    if (!made.isNew) {
      if (job.sequence === null) throw new Refused('E_DUPLICATE_KEY')
      return made
    }
    job.sequence = { total, done: 0, attempts: 0, isStarted }
    if (total === 0) endJob(all, job, 'done')
    else if (!isStarted) job.state = 'paused'
    return made
  })
}

/** Ends a sequence that has no items; false for any other job. */
export function endEmpty(model: Model, job: ModelJob): boolean {
  if (job.sequence?.total !== 0) return false
  endJob(model, job, 'done')
  countEnd(model, job)
  return true
}

/** The table of states and verbs. */
export function commandSequence(model: Model, job: ModelJob, verb: SequenceVerb): boolean {
  switch (verb) {
    case 'start':
      return start(model, job)
    case 'pause':
      return pauseSequence(job)
    case 'resume':
      return resumeSequence(model, job)
    case 'cancel':
      return cancel(model, job)
    case 'reset':
      return reset(model, job)
  }
}

const listOf = (job: ModelJob): NonNullable<ModelJob['sequence']> => job.sequence as NonNullable<ModelJob['sequence']>

function start(model: Model, job: ModelJob): boolean {
  if (job.state !== 'paused' || listOf(job).isStarted) return false
  listOf(job).isStarted = true
  job.state = resumedState(model, job)
  return true
}

function pauseSequence(job: ModelJob): boolean {
  if (job.state === 'running') {
    if (job.request !== null) return false
    job.request = 'pause'
    return true
  }
  if (!isUnfinished(job) || job.state === 'paused' || job.state === 'parked') return false
  job.state = 'paused'
  return true
}

function resumeSequence(model: Model, job: ModelJob): boolean {
  const list = listOf(job)
  if (job.state === 'running') {
    if (job.request !== 'pause') return false
    job.request = null
    return true
  }
  if (job.state === 'paused' && list.isStarted) {
    job.state = resumedState(model, job)
    return true
  }
  if (job.state !== 'failed' && job.state !== 'parked') return false
  if (job.state === 'failed') retake(model, job)
  Object.assign(job, {
    state: 'ready',
    dueAt: model.now,
    expiresAt: null,
    keepUntil: null,
    hasFailed: false,
    streak: 0,
  })
  list.attempts = 0
  return true
}

/** Legal in every state. The item in hand goes on, and what it does is recorded nowhere. */
function reset(model: Model, job: ModelJob): boolean {
  if (job.state === 'gone') return false
  if (isFinal(job.state)) retake(model, job)
  else Object.assign(job, { crashes: 0, streak: 0 })
  for (const attempt of model.attempts) if (attempt.job === job.number) attempt.hasClaim = false
  Object.assign(job, { state: 'paused', request: null, dueAt: model.now, expiresAt: null, keepUntil: null })
  job.hasFailed = false
  Object.assign(listOf(job), { done: 0, attempts: 0, isStarted: false })
  return true
}

/** Whether another item follows in the same claim. */
export function endItem(model: Model, job: ModelJob, outcome: ItemOutcome): boolean {
  const list = listOf(job)
  const { request } = job
  job.request = null
  job.streak = 0
  job.expiresAt = null
  if (outcome.kind === 'return') return itemDone(model, job, request)
  if (outcome.kind !== 'snooze') list.attempts += 1
  job.hasFailed = outcome.kind === 'throw'
  if (request === 'cancel') {
    // A cancel that the handler threw at counts no attempt of the item.
    if (outcome.kind !== 'snooze') list.attempts -= 1
    endJob(model, job, 'cancelled')
  } else if (outcome.kind === 'abort' || (outcome.kind === 'throw' && list.attempts > RETRY_LIMIT))
    endJob(model, job, 'failed')
  else {
    job.dueAt = model.now + (outcome.kind === 'snooze' ? outcome.ms : BACKOFF_MS)
    job.state = request === 'pause' ? 'paused' : outcome.kind === 'snooze' ? 'scheduled' : 'retrying'
  }
  return false
}

function itemDone(model: Model, job: ModelJob, request: ModelJob['request']): boolean {
  const list = listOf(job)
  list.done += 1
  list.attempts = 0
  job.hasFailed = false
  const isLast = list.done === list.total
  if (!isLast) job.crashes = 0
  if (request === 'cancel') {
    if (!isLast) job.dueAt = model.now
    endJob(model, job, 'cancelled')
  } else if (isLast) endJob(model, job, 'done')
  else if (request === 'pause') Object.assign(job, { state: 'paused', dueAt: model.now })
  else if (model.paused.has(job.queue)) giveBack(model, job)
  else return true
  return false
}

/** Between two items: other jobs run first. */
export function giveBack(model: Model, job: ModelJob): void {
  Object.assign(job, { state: 'ready', dueAt: model.now })
}

/** The next item begins under the claim of the one before. */
export function beginNext(model: Model, before: Attempt): Attempt {
  const next: Attempt = { ...before, number: (model.begun += 1), graceUntil: null }
  model.attempts.push(next)
  return next
}

/** In this process an item of the sequence still runs whose claim is over: the next one waits for it to return. */
export function mustWait(model: Model, mill: number, job: ModelJob): boolean {
  return (
    job.sequence !== null &&
    model.attempts.some((attempt) => attempt.job === job.number && attempt.mill === mill && !attempt.hasLeft)
  )
}
