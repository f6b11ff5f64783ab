import { describeError } from '../../../dist/codec/error-text.js'
import { failureOf } from '../../../dist/job/statistics/failure.js'
import { Sketch } from '../../../dist/job/statistics/sketch.js'
import { declineCard, descend, thrownBy, waitForMailServer } from './failures.js'
import { COUNTRIES, SEED, TENANTS, randomOf } from './random.js'

/*
 * Seven days of finished jobs, as the engine would have left them: what `fill-sqlite.js` and `fill-postgres.js` write into the
 * tables of the store. To run so many jobs would take minutes, and their times would be of today. So this is the one place of the
 * demo that knows the tables; everything else is enqueued with verbs. Statistics are written as the engine's settlements write them:
 * as rows of `stats_moves`, which the first worker folds into buckets.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
export const KEPT_MS = 7 * DAY
/** When v1.42 was deployed: since then Norway's cards are declined. */
export const DEPLOYED_BEFORE_MS = 29 * MINUTE
const DECLINED = 400

const LANES = [
  { job: 'send-email', queue: 'mail', part: 0.42, run: [180, 900], wait: [5, 4_000] },
  { job: 'charge', queue: 'billing', part: 0.22, run: [90, 900], wait: [2, 900] },
  { job: 'thumbs', queue: 'media', part: 0.16, run: [2_000, 6_000], wait: [5, 2_000] },
  { job: 'newsletter', queue: 'mail', part: 0.08, run: [90, 140], wait: [500, 60_000] },
  { job: 'import-row', queue: 'default', part: 0.06, run: [15, 60], wait: [2, 300] },
  { job: 'ship', queue: 'default', part: 0.05, run: [180, 300], wait: [2, 200] },
  { job: 'weekly-report', queue: 'reports', part: 0.01, run: [400, 900], wait: [2, 200] },
]
const DIGEST = { job: 'daily-digest', queue: 'mail', run: [300, 600], wait: [2, 80] }
const STOCK = { job: 'sync-stock', queue: 'default', run: [355_000, 372_000], wait: [2, 80] }
export const LANE_NAMES = [...LANES, DIGEST, STOCK].map(({ job, queue }) => ({ job, queue }))
/** sync-stock takes six minutes and is due every five: of these hours each second tick is skipped. */
const STOCK_HOURS = 4

/**
 * The rows in the order of their times. A job is a row of both tables `jobs` and `history`; statistics come when their minute is over; a
 * tick is a line in the ledger of a recurring job.
 */
export function* historyOf({ count, now, isHealthy = false }) {
  const random = randomOf(SEED)
  const moves = new Moves(now)
  const ids = idsOf(random)
  for (const { at, lane, isDeclined, tick } of instants(count, now, random, isHealthy ? 0 : DECLINED)) {
    yield* moves.before(at)
    const job = isDeclined ? declined(lane, at, random) : ended(lane, at, random, isHealthy)
    job.id = ids(at)
    if (tick !== undefined)
      yield { tick: { ...tick, at, job: tick.outcome === 'skipped' ? null : job.id, firedAt: at + 40 } }
    if (tick?.outcome === 'skipped') continue
    moves.add(job)
    yield { job }
  }
  yield* moves.before(Infinity)
}

/** More by day than by night; and in the last half hour the jobs that the deploy broke. */
function* instants(count, now, random, brokenCount) {
  const hours = Array.from({ length: 7 * 24 }, (_, i) => now - KEPT_MS + i * HOUR)
  const weights = hours.map((at) => 1.2 + Math.sin(((at % DAY) / DAY) * 2 * Math.PI - 1.8))
  const all = weights.reduce((sum, each) => sum + each, 0)
  let owed = 0
  for (const [index, from] of hours.entries()) {
    owed += (weights[index] / all) * (count - brokenCount)
    const here = Math.floor(owed)
    owed -= here
    const last = index === hours.length - 1
    const times = Array.from({ length: here }, () => ({
      at: from + Math.floor(random.next() * (HOUR - 5_000)),
      lane: laneOf(random),
    }))
    const broken = Array.from({ length: last ? brokenCount : 0 }, () => ({
      at: now - Math.floor(random.next() * (DEPLOYED_BEFORE_MS - MINUTE)) - MINUTE,
      lane: LANES[1],
      isDeclined: true,
    }))
    const ticks = [...digests(from), ...(hours.length - index <= STOCK_HOURS ? stocks(from, now) : [])]
    yield* [...times, ...broken, ...ticks].sort((one, other) => one.at - other.at)
  }
}

/** 09:00 in Oslo in winter. One was missed while no process ran, and caught up. */
function digests(from) {
  if (new Date(from).getUTCHours() !== 8) return []
  const at = Math.floor(from / HOUR) * HOUR
  const isMissed = new Date(at).getUTCDay() === 0
  const late = { outcome: 'caught up', reason: 'no process ran' }
  return [{ at, lane: DIGEST, tick: { schedule: 'daily-digest', ...(isMissed ? late : RAN) } }]
}

const RAN = { outcome: 'ran', reason: null }

function stocks(from, now) {
  const first = Math.ceil(from / (5 * MINUTE)) * 5 * MINUTE
  const times = Array.from({ length: 12 }, (_, i) => first + i * 5 * MINUTE).filter((at) => at < now - 12 * MINUTE)
  const skipped = { outcome: 'skipped', reason: 'the job of the tick before was unfinished' }
  return times.map((at) => {
    const isSkipped = (at / (5 * MINUTE)) % 2 === 1
    return { at, lane: STOCK, tick: { schedule: 'sync-stock', ...(isSkipped ? skipped : RAN) } }
  })
}

function laneOf(random) {
  let left = random.next()
  return LANES.find(({ part }) => (left -= part) <= 0) ?? LANES[0]
}

const DECLINE = describeError(thrownBy(declineCard))
const NO_MAIL = describeError(thrownBy(waitForMailServer))
const TOO_DEEP = describeError(thrownBy(() => descend()))

function ended(lane, at, random, isHealthy) {
  const luck = isHealthy || lane === DIGEST || lane === STOCK ? 1 : random.next()
  const { run, wait } = lane
  const waitMs = random.between(...wait)
  const runMs = random.between(...run)
  const base = {
    ...lane,
    at,
    waitMs,
    runMs,
    attempt: 1,
    retries: 0,
    state: 'done',
    error: null,
    log: null,
    result: null,
    reason: null,
  }
  const payload = payloadOf(lane.job, at, random)
  if (luck < 0.002)
    return { ...base, payload, state: 'cancelled', attempt: 0, runMs: null, waitMs: null, reason: 'ordered twice' }
  if (luck < 0.0025 && lane.job === 'send-email') return failing({ ...base, payload }, NO_MAIL, 5)
  if (luck < 0.0003 && lane.job === 'import-row') return failing({ ...base, payload }, TOO_DEEP, 1)
  if (luck < 0.03 && lane.job === 'send-email')
    return { ...failing({ ...base, payload }, NO_MAIL, 1), state: 'done', attempt: 2, retries: 1, error: null }
  return { ...base, payload, result: lane.job === 'charge' ? { receipt: `r${at % 100_000}` } : null }
}

function declined(lane, at, random) {
  const payload = { ...payloadOf('charge', at, random), country: random.next() < 0.97 ? 'NO' : 'SE' }
  return failing(
    {
      ...lane,
      at,
      payload,
      waitMs: random.between(2, 300),
      runMs: random.between(300, 1_200),
      result: null,
      reason: null,
    },
    DECLINE,
    2,
  )
}

const OLD_WORKERS = ['0f3a9c21b7d4e685', '1b77e0c4a2f95d38']

/** A job that failed at each of its attempts. */
function failing(job, error, attempts) {
  const log = []
  let startedAt = job.at + job.waitMs
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const endedAt = startedAt + job.runMs
    log.push({
      startedAt,
      endedAt,
      worker: OLD_WORKERS[attempt % 2],
      error,
      log: [`${new Date(endedAt - 5).toISOString()} attempt ${attempt}`],
    })
    if (attempt < attempts) startedAt = endedAt + 2_000 * 2 ** (attempt - 1)
  }
  return {
    ...job,
    state: 'failed',
    attempt: attempts,
    retries: attempts - 1,
    error,
    log,
    startedAt,
    failures: attempts,
  }
}

function payloadOf(job, at, random) {
  const order = 1_000 + Math.floor((at / 1_000) % 9_000)
  switch (job) {
    case 'charge':
    case 'ship':
      return {
        order,
        tenant: random.pick(TENANTS),
        country: random.pick(COUNTRIES),
        amount: random.between(5, 400) + 0.9,
      }
    case 'thumbs':
      return { photo: `photo-${order}.jpg` }
    case 'import-row':
      return { row: order }
    case 'daily-digest':
    case 'sync-stock':
      return {}
    case 'weekly-report':
      return { week: order % 52 }
    default:
      return { to: `${random.pick(TENANTS)}-${order}@example.com` }
  }
}

/** UUIDv7 that are ordered as the rows are. */
function idsOf(random) {
  let counter = 0
  const hex = (number, digits) => Math.floor(number).toString(16).padStart(digits, '0').slice(-digits)
  return (at) => {
    counter = (counter + 1) % 0x1000
    const time = hex(at, 12)
    const [one, two] = [hex(random.next() * 2 ** 32, 8), hex(random.next() * 2 ** 24, 6)]
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(counter, 3)}-8${one.slice(0, 3)}-${one.slice(3)}${two}0`.slice(
      0,
      36,
    )
  }
}

/** What settlements add to the statistics: by the minute within a day, by the hour before it. */
class Moves {
  #rows = new Map()
  #end = 0
  #now

  constructor(now) {
    this.#now = now
  }

  *before(at) {
    if (at < this.#end) return
    for (const row of this.#rows.values()) yield { statistics: row.written() }
    this.#rows.clear()
    const span = at > this.#now - DAY ? MINUTE : HOUR
    this.#end = Math.floor(at / span) * span + span
  }

  add(job) {
    const row = this.#rows.get(job.job) ?? new Move(job, Math.min(this.#end - MINUTE, this.#now - MINUTE))
    this.#rows.set(job.job, row)
    row.add(job)
  }
}

class Move {
  #lane
  #at
  #counts = { done: 0, failed: 0, retried: 0 }
  #wait = new Sketch()
  #run = new Sketch()
  #groups = new Map()

  constructor({ job, queue }, at) {
    this.#lane = { job, queue }
    this.#at = at
  }

  add({ id, job, state, waitMs, runMs, log, retries = 0 }) {
    if (state !== 'cancelled') this.#counts[state] += 1
    this.#counts.retried += retries
    if (waitMs !== null) this.#wait.add(waitMs)
    if (runMs !== null) this.#run.add(runMs)
    for (const { error } of log ?? []) this.#addFailure(failureOf(job, error), id)
  }

  #addFailure({ message, ...group }, id) {
    const { count = 0, samples = [] } = this.#groups.get(group.fingerprint) ?? {}
    this.#groups.set(group.fingerprint, {
      ...group,
      count: count + 1,
      samples: [...samples, { id, message }].slice(-5),
    })
  }

  written() {
    const failures = this.#groups.size === 0 ? null : JSON.stringify([...this.#groups.values()])
    return { ...this.#lane, at: this.#at, ...this.#counts, wait: this.#wait.write(), run: this.#run.write(), failures }
  }
}

/** A job as the values of its columns, which both stores share. */
export function columnsOf(job) {
  const startedAt = job.startedAt ?? (job.runMs === null ? null : job.at + job.waitMs)
  const settledAt = (startedAt ?? job.at) + (job.runMs ?? 0)
  const title = 'order' in job.payload ? `Order ${job.payload.order}` : undefined
  const labels = job.job === 'charge' ? ['billing'] : undefined
  return {
    payload: JSON.stringify(job.payload),
    options: title === undefined ? null : JSON.stringify({ title, ...(labels && { labels }) }),
    labels: labels ?? [],
    createdAt: job.at,
    startedAt,
    settledAt,
    keepUntil: settledAt + (job.state === 'failed' ? 30 : 7) * DAY + 10 * MINUTE,
    worker: job.runMs === null ? null : OLD_WORKERS[job.at % 2],
    result: job.result === null ? null : JSON.stringify(job.result),
    error: job.error === null ? null : JSON.stringify(job.error),
    log: job.log === null ? null : JSON.stringify(job.log),
  }
}
