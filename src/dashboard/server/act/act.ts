import type { AuditRecord } from '../../../client/read/audit.js'
import { MillraceError } from '../../../errors.js'
import { inWords } from '../../../job/why/words.js'
import { canDo, STATES_OF, VERBS, withArticle } from '../../protocol/verbs.js'
import type { ActAnswer, ActArguments, ActRequest, JobVerb, Role, Verb } from '../../protocol/verbs.js'
import { isUuid } from '../ids.js'
import { Refusal } from '../parts.js'
import type { Parts } from '../parts.js'
import { link } from '../views/reads.js'

/** Who acts. */
export interface Actor {
  readonly role: Role
  readonly actor: string
}

interface Given {
  readonly actor: string
  readonly role: string
  readonly reason?: string
}

type Act = (parts: Parts, request: ActRequest, given: Given, by: Actor) => Promise<ActAnswer>

/** Does what a user asks for, once: with the role's right, and only in the state for which the button was drawn. */
export async function act(parts: Parts, request: ActRequest, by: Actor): Promise<ActAnswer> {
  const { verb, reason } = request
  if (!canDo(by.role, verb))
    throw new Refusal('not-allowed', `${withArticle(by.role)} cannot do this.`, {
      hint: `Ask for the role ${VERBS[verb]}.`,
    })
  const given: Given = { actor: by.actor, role: by.role, ...(reason === undefined || reason === '' ? {} : { reason }) }
  try {
    return await actOf(verb)(parts, request, given, by)
  } catch (error) {
    if (error instanceof MillraceError && REFUSED.includes(error.code)) throw new Refusal('bad-request', error.message)
    throw error
  }
}

/** Errors whose message is for the user who gave the value. */
const REFUSED: readonly string[] = [
  'E_INVALID_OPTIONS',
  'E_INVALID_PAYLOAD',
  'E_PAYLOAD_TOO_LARGE',
  'E_DUPLICATE_KEY',
  'E_DUPLICATE_JOB',
  'E_UNKNOWN_JOB',
  'E_UNKNOWN_SCHEDULE',
  'E_UNKNOWN_EVENT',
  'E_INBOX_FULL',
  'E_GROUP_SEALED',
]

function actOf(verb: Verb): Act {
  if (verb === 'enqueue') return enqueue
  const [kind] = verb.split('.')
  return ACTS[kind as keyof typeof ACTS]
}

const ACTS = { job: onJob, queue: onQueue, recurring: onRecurring, group: onGroup, sequence: onSequence, bulk: onBulk }

function answer(changed: boolean, text: string, more: Partial<ActAnswer> = {}): ActAnswer {
  return { changed, text, state: null, link: null, undo: null, id: null, count: null, ...more }
}

const short = (id: string): string => id.slice(0, 8)

async function onJob(parts: Parts, request: ActRequest, given: Given): Promise<ActAnswer> {
  const { verb, target, expect } = request as ActRequest & { readonly verb: JobVerb }
  const record = isUuid(target) ? await parts.mill.get(target) : undefined
  if (record === undefined) throw new Refusal('not-found', 'This job was pruned or never existed.')
  const { job, state } = record
  const name = `${job} ${short(target)}`
  if (state !== expect || !STATES_OF[verb].includes(state)) return leftState(parts, target, name, state)
  const changed = await command(parts, request, given)
  if (!changed) return leftState(parts, target, name, (await parts.mill.get(target))?.state ?? null)
  const after = verb === 'job.delete' ? null : ((await parts.mill.get(target))?.state ?? null)
  // A running job keeps running until its attempt ends: what changed is only that the request is noted, and there is nothing to take back.
  const requested = after === 'running' ? REQUESTED[verb] : undefined
  if (requested !== undefined)
    return answer(true, `${requested(name)}.`, { state: after, link: link('job', target), id: target })
  const undo = verb === 'job.pause' ? 'job.resume' : verb === 'job.resume' ? 'job.pause' : null
  return answer(true, `${DONE[verb]} ${name}.`, {
    state: after,
    link: after === null ? null : link('job', target),
    undo,
    id: target,
  })
}

const DONE: Readonly<Record<JobVerb, string>> = {
  'job.retry': 'Retried',
  'job.cancel': 'Cancelled',
  'job.pause': 'Paused',
  'job.resume': 'Resumed',
  'job.runNow': 'Made due now:',
  'job.send': 'Sent an event to',
  'job.delete': 'Deleted',
  'job.edit': 'Changed',
}

const REQUESTED: Partial<Readonly<Record<JobVerb, (name: string) => string>>> = {
  'job.pause': (name) => `Pause of ${name} requested; it stops after this attempt`,
  'job.cancel': (name) => `Cancel of ${name} requested; its handler is asked to stop`,
}

function command({ mill }: Parts, { verb, target, args = {} }: ActRequest, given: Given): Promise<boolean> {
  switch (verb as JobVerb) {
    case 'job.retry':
      return mill.retry(target, args.fresh === true ? { ...given, fresh: true } : given)
    case 'job.cancel':
      return mill.cancel(target, args.unwind === false ? { ...given, unwind: false } : given)
    case 'job.pause':
      return mill.pause(target, given)
    case 'job.resume':
      return mill.resume(target, given)
    case 'job.runNow':
      return mill.edit(target, { in: 0 }, given)
    case 'job.delete':
      return mill.delete(target, given)
    case 'job.edit':
      return mill.edit(target, changeOf(args), given)
    case 'job.send':
      return sendEvent(mill, target, args, given)
    default:
      throw new Refusal('bad-request', 'There is no such verb.')
  }
}

function changeOf({
  payload,
  title,
  labels,
  queue,
  priority,
  dueAt,
}: ActArguments): Parameters<Parts['mill']['edit']>[1] {
  return {
    ...(payload === undefined ? {} : { payload: fromJson(payload, 'payload') }),
    ...(title === undefined ? {} : { title }),
    ...(labels === undefined ? {} : { labels: [...labels] }),
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(dueAt === undefined ? {} : { at: new Date(dueAt) }),
  }
}

async function sendEvent(
  mill: Parts['mill'],
  target: string,
  { event, payload }: ActArguments,
  given: Given,
): Promise<boolean> {
  if (event === undefined) throw new Refusal('bad-request', 'The name of the event is missing.')
  const value = payload === undefined || payload === '' ? undefined : fromJson(payload, 'payload')
  return mill.send(target, event, value, given)
}

function fromJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new Refusal('bad-request', `The ${what} is no JSON: ${(error as Error).message}.`)
  }
}

/** The job has left the state for which the button was drawn: says who moved it, where that is known. */
async function leftState({ mill, world }: Parts, id: string, name: string, state: string | null): Promise<ActAnswer> {
  if (state === null) return answer(false, `${name} was deleted. Nothing was changed.`)
  const { rows } = await mill.audit({ target: `job ${id}`, limit: 1 })
  const record = await mill.get(id)
  const worker = record?.attempts.at(-1)
  const ended = record?.settledAt
  const now = world.clock.now()
  const byUser =
    rows[0] !== undefined && (ended === undefined || rows[0].at >= ended) ? userText(rows[0], now) : undefined
  const byWorker =
    ended === undefined || worker === undefined
      ? undefined
      : `Worker ${short(worker.worker)} ended it ${inWords(Math.max(0, now - ended.getTime()))} ago`
  return answer(false, `${byUser ?? byWorker ?? `${name} is ${state} now`}. Nothing was changed.`, {
    state,
    link: link('job', id),
    id,
  })
}

function userText({ actor, verb, at }: AuditRecord, now: number): string {
  return `${actor} called ${verb} ${inWords(Math.max(0, now - at.getTime()))} ago`
}

async function onQueue(
  parts: Parts,
  { verb, target, expect, args = {} }: ActRequest,
  given: Given,
): Promise<ActAnswer> {
  if (verb === 'queue.retryOne') return retryOne(parts, target, given)
  const queue = parts.mill.queue(target)
  const { paused } = await queue.get()
  const state = paused ? 'paused' : 'open'
  const more = { link: link('queues', target) }
  if (expect !== undefined && expect !== state && !(expect === 'open' && state === 'open'))
    return answer(false, `Queue ${target} is ${state} now. Nothing was changed.`, { ...more, state })
  if (verb === 'queue.resume') {
    if (!paused) return answer(false, `Queue ${target} is not paused. Nothing was changed.`, { ...more, state })
    await queue.resume(given)
    return answer(true, `Resumed queue ${target}.`, { ...more, state: 'open', undo: 'queue.pause' })
  }
  if (args.until === undefined) await queue.pause(given)
  else await queue.pauseUntil(new Date(args.until), given)
  const until = args.until === undefined ? '' : ` until ${new Date(args.until).toISOString()}`
  return answer(true, `Paused queue ${target}${until}.`, { ...more, state: 'paused', undo: 'queue.resume' })
}

/** Runs the oldest error of a queue, in this process. */
async function retryOne({ mill }: Parts, queue: string, given: Given): Promise<ActAnswer> {
  const retried = await mill.retryOne(queue, given)
  if (retried === null) return answer(false, `Queue ${queue} has no error that can be retried here.`)
  const { record } = retried
  const text = `Ran the oldest error of ${queue}: it is ${record.state}.`
  return answer(true, text, { id: record.id, link: link('job', record.id), state: record.state })
}

async function onRecurring(
  { mill }: Parts,
  { verb, target, expect, args = {} }: ActRequest,
  given: Given,
): Promise<ActAnswer> {
  const { schedules } = mill
  const record = await schedules.get(target)
  if (record === undefined) throw new Refusal('not-found', `There is no recurring job ${target}.`)
  const state = record.paused ? 'paused' : 'running'
  const more = { link: link('recurring', target) }
  if (expect !== undefined && expect !== state)
    return answer(false, `${target} is ${state} now. Nothing was changed.`, { ...more, state })
  switch (verb as Extract<Verb, `recurring.${string}`>) {
    case 'recurring.pause':
      await schedules.pause(target, given)
      return answer(true, `Paused ${target}.`, { ...more, state: 'paused', undo: 'recurring.resume' })
    case 'recurring.resume':
      await schedules.resume(target, given)
      return answer(true, `Resumed ${target}.`, { ...more, state: 'running', undo: 'recurring.pause' })
    case 'recurring.runNow': {
      const handle = await schedules.runNow(target, given)
      if (handle === undefined) return answer(false, `${target} did not run; its ledger has the reason.`, more)
      return answer(true, `${target} runs now.`, { id: handle.id, link: link('job', handle.id) })
    }
    case 'recurring.backfill': {
      if (args.from === undefined || args.to === undefined)
        throw new Refusal('bad-request', 'A backfill needs from and to.')
      const count = await schedules.backfill(target, new Date(args.from), new Date(args.to), given)
      return answer(count > 0, `Enqueued ${count} missing ${count === 1 ? 'tick' : 'ticks'} of ${target}.`, {
        ...more,
        count,
      })
    }
    case 'recurring.delete':
      return answer(await mill.deleteRecurring(target, given), `Deleted ${target} and its ledger.`)
    default:
      throw new Refusal('bad-request', 'There is no such verb.')
  }
}

async function onGroup({ mill }: Parts, { verb, target }: ActRequest, given: Given): Promise<ActAnswer> {
  const group = mill.group(target)
  const more = { link: link('groups', target) }
  if (verb === 'group.seal') {
    const changed = await group.seal(given)
    return answer(
      changed,
      changed ? `Sealed group ${target}.` : `Group ${target} was sealed before. Nothing was changed.`,
      more,
    )
  }
  const name = verb.slice('group.'.length) as 'pause' | 'resume' | 'cancel' | 'retryFailed'
  const count = await group[name](given)
  const undo = name === 'pause' ? 'group.resume' : name === 'resume' ? 'group.pause' : null
  const jobs = `${count} ${count === 1 ? 'job' : 'jobs'}`
  return answer(count > 0, `${GROUP_DONE[name]} ${jobs} of group ${target}.`, { ...more, count, undo })
}

const GROUP_DONE = { pause: 'Paused', resume: 'Resumed', cancel: 'Cancelled', retryFailed: 'Retried' }

async function onSequence({ mill }: Parts, { verb, target, expect }: ActRequest, given: Given): Promise<ActAnswer> {
  const sequence = mill.sequence(target)
  const before = await sequence.progress().catch(() => undefined)
  if (before === undefined) throw new Refusal('not-found', 'This sequence was deleted or never existed.')
  const more = { link: link('sequences', target), id: target }
  if (expect !== before.state)
    return answer(false, `The sequence is ${before.state} now. Nothing was changed.`, { ...more, state: before.state })
  const name = verb.slice('sequence.'.length) as 'start' | 'pause' | 'resume' | 'cancel' | 'reset'
  const changed = await sequence[name](given)
  const { state, requested, done } = await sequence.progress()
  const text = !changed
    ? `The sequence is ${state} now. Nothing was changed.`
    : requested === 'pause'
      ? `Pauses after item ${done + 1}.`
      : `The sequence is ${state}.`
  const undo = name === 'pause' ? 'sequence.resume' : name === 'resume' ? 'sequence.pause' : null
  return answer(changed, text, { ...more, state, undo: changed ? undo : null })
}

async function onBulk(parts: Parts, { verb, target }: ActRequest, given: Given, by: Actor): Promise<ActAnswer> {
  if (verb === 'bulk.stop') {
    const stopped = parts.bulks.stop(target)
    return answer(stopped, stopped ? 'It stops after the jobs in hand.' : 'It has ended already.', { id: target })
  }
  const bulkVerb = verb as Exclude<Extract<Verb, `bulk.${string}`>, 'bulk.stop'>
  const bulk = parts.bulks.begin(parts, { target, verb: bulkVerb, given, show: parts.showFor(by.role) })
  return answer(true, 'It runs.', { id: bulk.id, count: bulk.total.n })
}

async function enqueue(
  { mill, internals }: Parts,
  { target, args = {} }: ActRequest,
  given: Given,
): Promise<ActAnswer> {
  if (!mill.has(target)) throw new Refusal('not-found', `No job ${target} is registered in this process.`)
  const { payload, queue, priority, labels, title, key, group, dueAt } = args
  const value = payload === undefined || payload === '' ? undefined : fromJson(payload, 'payload')
  const handle = await internals.enqueueBy(given, target, value, {
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(labels === undefined ? {} : { labels: [...labels] }),
    ...(title === undefined ? {} : { title }),
    ...(key === undefined ? {} : { key }),
    ...(group === undefined ? {} : { group }),
    ...(dueAt === undefined ? {} : { at: new Date(dueAt) }),
  })
  const text = handle.isNew
    ? `Enqueued ${target} ${short(handle.id)}.`
    : `A job of this key is unfinished: ${short(handle.id)}. Nothing was enqueued.`
  return answer(handle.isNew, text, { id: handle.id, link: link('job', handle.id) })
}
