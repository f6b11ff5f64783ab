import type { State } from '../rules/states.js'
import { isFinal } from '../rules/states.js'
import { isSuspect } from '../rules/quarantine.js'
import { isPaused } from '../rules/queue-pause.js'
import { latestTurn, roomOf } from '../limits/latest-turn.js'
import type { RateUse, SlotUse } from '../limits/latest-turn.js'
import { inWords, listed } from './words.js'

/**
 * Why a job is not running: one true sentence, from a snapshot of the store. Pure. The checks come in the order in which
 * a claim would meet them: what holds the job itself, then its queue, then the workers, then limits.
 */
export interface WhySnapshot {
  /** The store's now. */
  readonly now: number
  readonly job: WhyJob
  /** The parents whose links block it. */
  readonly parents: readonly { readonly id: string; readonly job: string; readonly state: State }[]
  /** The worker whose claim has it. */
  readonly holder: { readonly worker: string; readonly host: string } | undefined
  /** The pause of its queue, over or not; `until` null: until a caller resumes it. */
  readonly pause: { readonly until: number | null } | undefined
  readonly workers: readonly WhyWorker[]
  /** The limits that bound it: of its job, of its key, of its queue. */
  readonly limits: readonly SlotUse[]
  readonly rates: readonly RateUse[]
  /** Its retries are held because of an outage. */
  readonly outage: { readonly waiting: number } | undefined
  /** What a workflow waits for: `event:<name>`, `call:<id>`; a sequence that was not started: `!start`. */
  readonly waits: readonly string[]
  /** It is a suspended workflow; a blocked one wakes at this time without an event. */
  readonly suspended: { readonly wakeAt: number | null } | undefined
}

export interface WhyJob {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly state: State
  /** A worker has claimed it. */
  readonly claimed: boolean
  readonly dueAt: number
  readonly startedAt: number | null
  readonly streak: number
  readonly reason: string | null
  /** The class and message of its last error. */
  readonly error: string | null
}

export interface WhyWorker {
  readonly id: string
  readonly host: string
  readonly isAlive: boolean
  /** Undefined: any. */
  readonly names: readonly string[] | undefined
  /** Undefined: not known. */
  readonly slots: number | undefined
  /** Slots of single queues, where it has bounds for them. */
  readonly queues: Readonly<Record<string, number>>
  readonly running: readonly {
    readonly job: string
    readonly queue: string
    readonly count: number
    readonly since: number
  }[]
}

export type WhyReason =
  | 'ended'
  | 'running'
  | 'held'
  | 'paused'
  | 'parked'
  | 'parents'
  | 'event'
  | 'time'
  | 'probing'
  | 'queue-paused'
  | 'no-worker'
  | 'unknown-name'
  | 'suspect'
  | 'slot'
  | 'limit'
  | 'rate'
  | 'turn'
  | 'starting'

/** What a job waits for: a job, a worker, a queue or an event. */
export interface Blocker {
  readonly kind: 'job' | 'worker' | 'queue' | 'event'
  readonly id: string
}

/** Why a job is not running. */
export interface Why {
  readonly reason: WhyReason
  /** One sentence. */
  readonly text: string
  readonly blockers: readonly Blocker[]
}

export function decideWhy(snapshot: WhySnapshot): Why {
  const { job } = snapshot
  if (isFinal(job.state)) return ended(job)
  switch (job.state) {
    case 'running':
      return running(snapshot)
    case 'paused':
      return paused(snapshot)
    case 'parked':
      return why(
        'parked',
        `It is parked and waits for a person: ${job.reason ?? job.error ?? 'no reason was recorded'}.`,
      )
    case 'blocked':
      return blocked(snapshot)
    case 'scheduled':
    case 'retrying':
      return timed(snapshot)
    case 'ready':
      return ready(snapshot)
    default:
      return job.state satisfies never
  }
}

function why(reason: WhyReason, text: string, blockers: readonly Blocker[] = []): Why {
  return { reason, text: text.replace(/\.+$/, '.'), blockers }
}

function ended({ state, reason, error }: WhyJob): Why {
  if (state === 'done') return why('ended', 'It is done.')
  const because = error ?? reason
  return why('ended', `It ${state === 'failed' ? 'failed' : 'was cancelled'}${because === null ? '' : `: ${because}`}.`)
}

function running({ now, job, holder }: WhySnapshot): Why {
  const since = job.startedAt === null ? '' : ` since ${inWords(now - job.startedAt)}`
  if (holder === undefined) return why('running', `It has been running${since}.`)
  return why('running', `It has been running${since} on ${holder.host}, by worker ${holder.worker}.`, [
    { kind: 'worker', id: holder.worker },
  ])
}

function paused({ job, waits }: WhySnapshot): Why {
  if (waits.includes('!start')) return why('paused', 'It waits for start().')
  return why('paused', `It is paused${job.reason === null ? '' : `: ${job.reason}`}.`)
}

function blocked({ now, parents, waits, suspended }: WhySnapshot): Why {
  // The link of a parent that is done is gone in a moment.
  const open = parents.filter(({ state }) => state !== 'done')
  if (open.length > 0) {
    const shown = open.map(({ id, job, state }) => `${job} ${id}, which is ${state}`)
    return why(
      'parents',
      `It waits for ${listed(shown)}.`,
      open.map(({ id }) => ({ kind: 'job', id })),
    )
  }
  const wakeAt = suspended?.wakeAt ?? null
  if (waits.length > 0) return waiting(waits, wakeAt === null ? '' : `, for ${timeAt(wakeAt, now)} at most`)
  return why('starting', 'The jobs that it waited for have ended; it becomes ready in a moment.')
}

/** What a suspended workflow waits for. */
function waiting(waits: readonly string[], until: string): Why {
  const blockers = waits.map((each): Blocker => {
    const [kind, ...rest] = each.split(':')
    return { kind: kind === 'call' ? 'job' : 'event', id: rest.join(':') }
  })
  const shown = blockers.map(({ kind, id }) => (kind === 'job' ? `job ${id}` : `event ${id}`))
  return why('event', `It waits for ${listed(shown)}${until}.`, blockers)
}

function timeAt(instant: number, now: number): string {
  return `${inWords(instant - now)} (${new Date(instant).toISOString()})`
}

function timed({ now, job, outage, waits, suspended }: WhySnapshot): Why {
  const inMs = job.dueAt - now
  const at = timeAt(job.dueAt, now)
  const events = waits.filter((each) => /^(event|call):/.test(each))
  if (events.length > 0) return waiting(events, inMs > 0 ? `, for ${at} at most` : '')
  if (inMs > 0 && job.state === 'retrying') return why('time', `It failed and is tried again in ${at}.`)
  if (inMs > 0) return why('time', suspended === undefined ? `It is due in ${at}.` : `It sleeps for ${at}.`)
  if (job.state === 'retrying' && outage !== undefined)
    return why(
      'probing',
      `Retries of ${job.job} in queue ${job.queue} are held because it keeps failing: one at a time is tried, ${outage.waiting} wait.`,
      [{ kind: 'queue', id: job.queue }],
    )
  return why('starting', 'It is due, and becomes ready in a moment.')
}

function ready(snapshot: WhySnapshot): Why {
  const { now, job, holder, pause, workers } = snapshot
  const queue: Blocker = { kind: 'queue', id: job.queue }
  if (pause !== undefined && isPaused({ until: pause.until ?? Infinity }, now)) {
    const until = pause.until === null ? '' : ` for another ${inWords(pause.until - now)}`
    return why('queue-paused', `Queue ${job.queue} is paused${until}.`, [queue])
  }
  if (job.claimed && holder !== undefined)
    return why('held', `Worker ${holder.worker} on ${holder.host} holds it and starts it next.`, [
      { kind: 'worker', id: holder.worker },
    ])
  const alive = workers.filter((worker) => worker.isAlive)
  if (alive.length === 0) return why('no-worker', 'No worker is running: call mill.start() in any process.')
  const able = alive.filter(({ names }) => names === undefined || names.includes(job.job))
  if (able.length === 0) return unknownName(job, alive.length)
  if (isSuspect(job.streak))
    return why(
      'suspect',
      `Its process crashed ${job.streak} times while it ran, so it waits until a worker can run it alone.`,
    )
  return full(snapshot, able) ?? bounded(snapshot) ?? why('starting', 'It is ready, and a worker is about to start it.')
}

function unknownName({ job }: WhyJob, alive: number): Why {
  const who =
    alive === 1 ? 'The worker that is running does not know' : `None of the ${alive} workers that are running knows`
  return why('unknown-name', `${who} the job ${JSON.stringify(job)}: register it in jobs.`)
}

/** Every worker that could run it has no free slot for its queue. */
function full({ now, job }: WhySnapshot, able: readonly WhyWorker[]): Why | undefined {
  const isFull = ({ slots, queues, running: runs }: WhyWorker): boolean => {
    const sum = (of: typeof runs): number => of.reduce((total, { count }) => total + count, 0)
    const bound = queues[job.queue]
    const isQueueFull = bound !== undefined && sum(runs.filter(({ queue }) => queue === job.queue)) >= bound
    return isQueueFull || (slots !== undefined && sum(runs) >= slots)
  }
  if (!able.every(isFull)) return undefined
  const taken = new Map<string, { count: number; since: number }>()
  for (const each of able.flatMap((worker) => worker.running)) {
    const before = taken.get(each.job)
    taken.set(each.job, {
      count: (before?.count ?? 0) + each.count,
      since: Math.min(before?.since ?? Infinity, each.since),
    })
  }
  const shown = [...taken].map(
    ([name, { count, since }]) => `${name} ×${count}, the oldest for ${inWords(now - since)}`,
  )
  const whose = able.length === 1 ? 'the worker that can run it' : `the ${able.length} workers that can run it`
  return why(
    'slot',
    `Every slot of ${whose} is taken by ${listed(shown)}.`,
    able.map(({ id }) => ({ kind: 'worker', id })),
  )
}

function bounded({ now, limits, rates }: WhySnapshot): Why | undefined {
  const reached = limits.find(({ max, inFlight }) => inFlight >= max)
  if (reached !== undefined) return limited(reached)
  const used = rates.find((rate) => !hasRoom(rate))
  // Under several bounds the jobs before it may wait for another one than it does.
  if (used !== undefined)
    return rated(used, rates.length + limits.length === 1 ? latestTurn(used, now) : undefined, now)
  const turn = limits.find(({ max, inFlight, ahead }) => ahead.jobs >= max - inFlight)
  if (turn === undefined) return undefined
  return why('turn', `It waits for its turn under the limit of ${turn.of}: ${before(turn.ahead)}.`)
}

function limited({ of, max, inFlight, holders }: SlotUse): Why {
  const rest = inFlight - holders.length
  const shown = rest > 0 && holders.length < 3 ? [...holders, `${rest} more`] : holders
  const held = holders.length === 0 ? '' : `: ${listed(shown)}`
  return why(
    'limit',
    `The limit of ${of} is reached, ${inFlight} of ${max} are in flight${held}.`,
    holders.map((id) => ({ kind: 'job', id })),
  )
}

/** All that start before it, and it, fit into what is left of the window. */
function hasRoom(rate: RateUse): boolean {
  const { weight, ahead } = rate
  return ahead.jobs * ahead.heaviest + weight <= roomOf(rate)
}

function rated(rate: RateUse, latest: number | undefined, now: number): Why {
  const { of, max, perMs, ahead } = rate
  const when =
    latest === undefined ? '' : `, and its turn is in ${timeAt(latest, now)} at the latest if a worker has a slot`
  const used = max - roomOf(rate)
  return why(
    'rate',
    `Under the rate of ${of}, ${max} in ${inWords(perMs)}, ${used} have started; ${before(ahead)}${when}.`,
  )
}

function before({ jobs, isAll }: SlotUse['ahead']): string {
  if (!isAll) return `more than ${jobs} jobs come before it`
  return jobs === 1
    ? '1 job comes before it'
    : `${jobs === 0 ? 'no job' : `${jobs} jobs`} come${jobs === 0 ? 's' : ''} before it`
}
