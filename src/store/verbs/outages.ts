import { afterFailures, afterSuccess, RELEASED_PER_SUCCESS, probeFrom } from '../../job/limits/outage.js'
import type { Outage, Probe } from '../../job/limits/outage.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { QueueState } from '../limits.js'
import type { SettledJob } from '../store.js'
import { readQueueLimits } from './queue-limits.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** Notes what ended attempts say about outages of their lanes. In the transaction that settles them. */
export function* noteHealth(session: VerbSession, settled: readonly SettledJob[]): Verb<void> {
  const lanes = new Map<string, LaneHealth>()
  for (const { queue, name, health } of settled) {
    if (health === undefined) continue
    const key = `${queue}\n${name}`
    const { failures, successes, after } = lanes.get(key) ?? { failures: 0, successes: 0, after: Infinity }
    const hasFailed = health.kind === 'failed'
    lanes.set(key, {
      queue,
      name,
      failures: failures + (hasFailed ? 1 : 0),
      successes: successes + (hasFailed ? 0 : 1),
      after: hasFailed ? health.after : after,
    })
  }
  // In one order, so that no two settlements wait for each other.
  for (const key of [...lanes.keys()].toSorted()) yield* noteLane(session, lanes.get(key) as LaneHealth)
}

interface LaneHealth {
  readonly queue: string
  readonly name: string
  readonly failures: number
  readonly successes: number
  readonly after: number
}

/** In one batch the order of attempts is not known: successes first, so that a failure among them closes the lane. */
function* noteLane(session: VerbSession, { queue, name, failures, successes, after }: LaneHealth): Verb<void> {
  if (failures > 0) yield* awaited(session.run('addOutage', queue, name))
  const [row] = yield* awaited(session.rows<OutageRow>('lockOutage', queue, name))
  if (row === undefined) return
  const lane = numberOf(row.lane)
  const now = yield* awaited(session.now())
  let outage: Outage | undefined = toOutage(row)
  if (successes > 0 && (outage.failures > 0 || outage.state !== 'counting')) {
    const isClosing = failures > 0
    const released = isClosing
      ? []
      : yield* awaited(session.rows('releaseHeld', lane, successes * RELEASED_PER_SUCCESS))
    if (released.length > 0) session.note({ dueInMs: 0 })
    const held = yield* awaited(session.rows('someHeld', lane))
    outage = afterSuccess(outage, held.length > 0)
  }
  if (failures > 0) outage = afterFailures(outage, failures, after, now)
  if (outage === undefined) yield* awaited(session.run('dropOutage', lane))
  else yield* putOutage(session, lane, outage)
}

function putOutage(session: VerbSession, lane: number, { state, failures, since, probeAt }: Outage): Verb<unknown> {
  return awaited(session.run('putOutage', lane, state, failures, since, probeAt))
}

/** Holds the due retries of closed lanes, and releases a probe of each lane whose time has come. */
export function* holdAndProbe(session: VerbSession, probe: Probe, limit: number): Verb<void> {
  const closed = yield* awaited(session.rows<OutageRow>('closedOutages'))
  if (closed.length === 0) return
  const now = yield* awaited(session.now())
  yield* awaited(session.run('holdRetries', now, limit))
  for (const row of closed) {
    const lane = numberOf(row.lane)
    const outage = toOutage(row)
    if ((outage.probeAt ?? 0) > now) continue
    const [held] = yield* awaited(session.rows<HeldRange>('heldRange', lane))
    const [first, last] = [numberOrNull(held?.first), numberOrNull(held?.last)]
    if (first === null || last === null) continue
    // Another process may have sent the probe of this poll meanwhile: the row decides.
    const mine = yield* awaited(session.rows('takeProbe', lane, now, now + probe.everyMs))
    if (mine.length > 0) yield* awaited(session.run('releaseProbe', lane, probeFrom(first, last, probe.pick)))
  }
}

interface HeldRange {
  readonly first: Numeric | null
  readonly last: Numeric | null
}

/** What is stored of a queue: its limits, and the outages of its jobs. */
export function* readQueueState(session: VerbSession, queue: string): Verb<QueueState> {
  const limits = yield* readQueueLimits(session, queue)
  const rows = yield* awaited(session.rows<NamedOutageRow>('readOutages', queue))
  const outages = rows.map(({ name, state, since, waiting }) => ({
    name,
    state: state === 'closed' ? ('closed' as const) : ('opening' as const),
    since: numberOf(since),
    waiting: numberOf(waiting),
  }))
  return { limits, outages }
}

interface OutageRow {
  readonly lane: Numeric
  readonly state: Outage['state']
  readonly failures: Numeric
  readonly since: Numeric | null
  readonly probe_at: Numeric | null
}

interface NamedOutageRow {
  readonly name: string
  readonly state: Outage['state']
  readonly since: Numeric
  readonly waiting: Numeric
}

function toOutage({ state, failures, since, probe_at }: OutageRow): Outage {
  return { state, failures: numberOf(failures), since: numberOrNull(since), probeAt: numberOrNull(probe_at) }
}
