import type { WorkerBeat } from '../store/workers.js'

/**
 * Who is dead: a pure judgement over what one observer has seen. A lease is dead when its beat did not move during one lease
 * time of the observer's own monotonic clock, while the observer's own beats went through. No wall clock is asked, and no
 * clock of another machine, so an outage of the store, a suspended machine or a skewed date rescues nothing that still runs.
 *
 * "Went through" must allow for the worst age of both beats. A store that no process can write to for D silences every worker
 * for up to D plus one beat interval (a third of a lease): hearts try without a pause and beat as soon as they can. So a
 * silence of one lease proves a death only if D was shorter than two thirds of a lease. The observer's own beats bound D:
 * two of them, or the last one and the moment of the rescuing write, are never further apart than `OWN_GAP_MAX` of a lease.
 *
 * Processes may have different leases. Then the longer of the two counts: a worker with a longer lease beats more rarely than the
 * observer, and a shorter silence than the observer's own lease is not bounded by the observer's own beats.
 */
export interface Watch {
  readonly beat: number | null
  /** When this beat was first seen, by the observer's monotonic clock: it is at least so old. */
  readonly since: number
  /** The look before that one: the beat is at most so old. */
  readonly notBefore: number
  /** Its own lease, where that is known. */
  readonly leaseMs?: number | undefined
}

export interface Observation {
  readonly watches: ReadonlyMap<string, Watch>
  /** When the last look was. */
  readonly at: number
}

export const NOTHING_SEEN: Observation = { watches: new Map(), at: -Infinity }

export interface Judgement {
  readonly observation: Observation
  readonly dead: readonly WorkerBeat[]
  /** The moment after which this judgement must not be acted on. */
  readonly validUntil: number
}

/** Of a lease: normal beats are a third apart, and are seen up to two looks (a tenth each) later. */
const OWN_GAP_MAX = 0.6
/** Of a lease: the time that the write is left at least. With the gap and a third it stays under one lease. */
const WRITE_MIN = 0.05

export function observeBeats(
  seenBefore: Observation,
  beats: readonly WorkerBeat[],
  self: string | undefined,
  now: number,
  leaseMs: number,
): Judgement {
  // A gap in looking (this process slept, or could not read) says nothing about the others: begin all watches again.
  const before = now - seenBefore.at > leaseMs / 2 ? NOTHING_SEEN : seenBefore
  const own = watchOwn(before, beats, self, now)
  // So does a gap between our own beats: the store could not be written, and the others' next beats are still to come.
  const gap = hasGap(before, own, self, now, leaseMs)
  const watches = new Map<string, Watch>()
  for (const { id, beat, leaseMs: own } of beats) {
    const seen = gap ? undefined : before.watches.get(id)
    const isSame = seen !== undefined && seen.beat === beat
    watches.set(id, isSame ? seen : { beat, since: now, notBefore: now, leaseMs: own })
  }
  if (own === undefined || self === undefined) return { observation: { watches, at: now }, dead: [], validUntil: now }
  watches.set(self, own)
  // Our own beats do not go through: it is the store or us, not them.
  const trusted = own.beat !== null && now - own.notBefore < leaseMs * OWN_GAP_MAX
  const dead = trusted ? beats.filter(({ id, beat }) => id !== self && isDead(watches.get(id), beat, now, leaseMs)) : []
  return { observation: { watches, at: now }, dead, validUntil: own.notBefore + leaseMs * (OWN_GAP_MAX + WRITE_MIN) }
}

/** Our own beat: when it moved, it did so after the last look. */
function watchOwn(
  before: Observation,
  beats: readonly WorkerBeat[],
  self: string | undefined,
  now: number,
): Watch | undefined {
  const found = beats.find(({ id }) => id === self)
  if (self === undefined || found === undefined) return undefined
  const seen = before.watches.get(self)
  if (seen === undefined) return { beat: found.beat, since: now, notBefore: now }
  return seen.beat === found.beat ? seen : { beat: found.beat, since: now, notBefore: before.at }
}

/**
 * When to look again: after so long, or when the first of them will have been silent for a lease, if that is sooner. A look
 * that came a little before that moment would add its whole pace to the time that jobs of the dead wait.
 */
export function nextLookMs({ watches, at }: Observation, self: string | undefined, leaseMs: number): number {
  const paceMs = Math.min(LOOK_MS, leaseMs / 10)
  let nextMs = paceMs
  for (const [id, watch] of watches)
    if (id !== self) nextMs = Math.min(nextMs, watch.since + patienceMs(watch, leaseMs) - at)
  // One that is over its time and still there could not be freed: it is asked for at the usual pace.
  return nextMs > 0 ? nextMs : paceMs
}

/** Often enough that our own beats, and a gap between looks, are seen for what they are. */
const LOOK_MS = 1_000

/** Our own beat moved, later than one that went through without trouble would have. */
function hasGap(
  before: Observation,
  own: Watch | undefined,
  self: string | undefined,
  now: number,
  leaseMs: number,
): boolean {
  const seen = self === undefined ? undefined : before.watches.get(self)
  if (seen === undefined || own === undefined || seen.beat === own.beat) return false
  return now - seen.notBefore > leaseMs * OWN_GAP_MAX
}

/** A worker that left its leases behind (beat null) was ended by another rescuer: what it held is free at once. */
function isDead(watch: Watch | undefined, beat: number | null, now: number, leaseMs: number): boolean {
  if (beat === null) return true
  return watch !== undefined && now - watch.since >= patienceMs(watch, leaseMs)
}

/** The longer of its own lease and the observer's. */
function patienceMs(watch: Watch, leaseMs: number): number {
  return Math.max(leaseMs, watch.leaseMs ?? 0)
}
