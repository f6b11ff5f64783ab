import type { WorkerBeat } from '../store/workers.js'

/**
 * Decides which workers are dead, from what one observer has read. Pure. A worker is dead when its beat did not move during one
 * lease of the observer's own monotonic clock while the observer's own beats were written. No wall clock and no clock of another
 * machine is used, so an outage of the store, a suspended machine or a wrong date rescues no job that still runs.
 *
 * A store that accepts no writes for a time D silences every worker for up to D plus one beat interval (a third of a lease), so a
 * silence of one lease proves a death only if D was shorter than two thirds of a lease. The observer's own beats bound D: two of
 * them, or the last one and the rescuing write, are never further apart than `OWN_GAP_MAX` of a lease. When two processes have
 * different leases, the longer one counts.
 */
export interface BeatWatch {
  readonly beat: number | null
  /** When this beat was first seen, by the observer's monotonic clock: the minimum age of the beat. */
  readonly since: number
  /** The observation before that one: the maximum age of the beat. */
  readonly notBefore: number
  /** Its own lease, where that is known. */
  readonly leaseMs?: number | undefined
}

export interface Observation {
  readonly watches: ReadonlyMap<string, BeatWatch>
  /** The time of the last observation. */
  readonly at: number
}

export const NOTHING_SEEN: Observation = { watches: new Map(), at: -Infinity }

export interface Judgement {
  readonly observation: Observation
  readonly dead: readonly WorkerBeat[]
  /** After this moment the judgement must not be acted on. */
  readonly validUntil: number
}

/** In leases: normal beats are a third apart, and are seen up to two observations (a tenth each) later. */
const OWN_GAP_MAX = 0.6
/** In leases: the minimum time for the rescuing write. Together with the gap and a third it is less than one lease. */
const WRITE_MIN = 0.05

export function observeBeats(
  seenBefore: Observation,
  beats: readonly WorkerBeat[],
  self: string | undefined,
  now: number,
  leaseMs: number,
): Judgement {
  // After a gap between observations (this process was suspended, or could not read) nothing is known: start all watches again.
  const before = now - seenBefore.at > leaseMs / 2 ? NOTHING_SEEN : seenBefore
  const own = watchOwn(before, beats, self, now)
  // The same holds after a gap between the own beats: the store could not be written, and the others' next beats are still to come.
  const gap = hasGap(before, own, self, now, leaseMs)
  const watches = new Map<string, BeatWatch>()
  for (const { id, beat, leaseMs: own } of beats) {
    const seen = gap ? undefined : before.watches.get(id)
    const isSame = seen !== undefined && seen.beat === beat
    watches.set(id, isSame ? seen : { beat, since: now, notBefore: now, leaseMs: own })
  }
  if (own === undefined || self === undefined) return { observation: { watches, at: now }, dead: [], validUntil: now }
  watches.set(self, own)
  // The own beats are not written: the store or this process is the cause, not the other workers.
  const trusted = own.beat !== null && now - own.notBefore < leaseMs * OWN_GAP_MAX
  const dead = trusted ? beats.filter(({ id, beat }) => id !== self && isDead(watches.get(id), beat, now, leaseMs)) : []
  return { observation: { watches, at: now }, dead, validUntil: own.notBefore + leaseMs * (OWN_GAP_MAX + WRITE_MIN) }
}

/** The observer's own beat; if it moved, it did so after the last observation. */
function watchOwn(
  before: Observation,
  beats: readonly WorkerBeat[],
  self: string | undefined,
  now: number,
): BeatWatch | undefined {
  const found = beats.find(({ id }) => id === self)
  if (self === undefined || found === undefined) return undefined
  const seen = before.watches.get(self)
  if (seen === undefined) return { beat: found.beat, since: now, notBefore: now }
  return seen.beat === found.beat ? seen : { beat: found.beat, since: now, notBefore: before.at }
}

/**
 * When to observe again: after the usual interval, or at the moment when the first worker will have been silent for a lease, if
 * that is sooner. An observation shortly before that moment would delay the rescue by a whole interval.
 */
export function nextObservationMs({ watches, at }: Observation, self: string | undefined, leaseMs: number): number {
  const paceMs = Math.min(OBSERVE_MS, leaseMs / 10)
  let nextMs = paceMs
  for (const [id, watch] of watches)
    if (id !== self) nextMs = Math.min(nextMs, watch.since + silenceMaxMs(watch, leaseMs) - at)
  // A worker that is overdue could not be rescued: it is tried again at the usual interval.
  return nextMs > 0 ? nextMs : paceMs
}

/** Short enough that the own beats, and a gap between observations, are detected. */
const OBSERVE_MS = 1_000

/** The own beat moved, later than a beat that was written without trouble. */
function hasGap(
  before: Observation,
  own: BeatWatch | undefined,
  self: string | undefined,
  now: number,
  leaseMs: number,
): boolean {
  const seen = self === undefined ? undefined : before.watches.get(self)
  if (seen === undefined || own === undefined || seen.beat === own.beat) return false
  return now - seen.notBefore > leaseMs * OWN_GAP_MAX
}

/** A worker that left its leases behind (beat null) was ended by another rescuer: its jobs are free at once. */
function isDead(watch: BeatWatch | undefined, beat: number | null, now: number, leaseMs: number): boolean {
  if (beat === null) return true
  return watch !== undefined && now - watch.since >= silenceMaxMs(watch, leaseMs)
}

/** The longer of its own lease and the observer's. */
function silenceMaxMs(watch: BeatWatch, leaseMs: number): number {
  return Math.max(leaseMs, watch.leaseMs ?? 0)
}
