import type { WorkerBeat } from '../store/workers.js'

/**
 * Who is dead: a pure judgement over what one observer has seen. A lease is dead when its beat did not move during one lease
 * time of the observer's own monotonic clock, while the observer's own beats went through. No wall clock is asked, and no
 * clock of another machine, so an outage of the store, a suspended machine or a skewed date rescues nothing that still runs.
 */
export interface Watch {
  readonly beat: number | null
  /** When this beat was first seen, by the observer's monotonic clock. */
  readonly since: number
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
}

export function observeBeats(
  before: Observation,
  beats: readonly WorkerBeat[],
  self: string | undefined,
  now: number,
  leaseMs: number,
): Judgement {
  // A gap in looking (this process slept, or could not read) says nothing about the others: begin all watches anew.
  const gap = now - before.at > leaseMs / 2 || isBack(before, beats, self, now, leaseMs)
  const watches = new Map<string, Watch>()
  for (const { id, beat } of beats) {
    const seen = gap ? undefined : before.watches.get(id)
    watches.set(id, seen !== undefined && seen.beat === beat ? seen : { beat, since: now })
  }
  const own = self === undefined ? undefined : watches.get(self)
  // Our own beats do not go through: it is the store or us, not them.
  const trusted = own !== undefined && own.beat !== null && now - own.since < leaseMs * 0.75
  const dead = trusted ? beats.filter(({ id, beat }) => id !== self && isDead(watches.get(id), beat, now, leaseMs)) : []
  return { observation: { watches, at: now }, dead }
}

/**
 * When to look again: after so long, or when the first of them will have been silent for a lease, if that is sooner. A look
 * that came a little before that moment would add its whole pace to the time that jobs of the dead wait.
 */
export function nextLookMs({ watches, at }: Observation, self: string | undefined, leaseMs: number): number {
  const paceMs = Math.min(LOOK_MS, leaseMs / 10)
  let nextMs = paceMs
  for (const [id, { since }] of watches) if (id !== self) nextMs = Math.min(nextMs, since + leaseMs - at)
  // One that is over its time and still there could not be freed: it is asked for at the usual pace.
  return nextMs > 0 ? nextMs : paceMs
}

/** Often enough that our own beats, and a gap between looks, are seen for what they are. */
const LOOK_MS = 1_000

/**
 * Our own beat went through after it had stood still for long: nobody could write, and the others' next beats are still to
 * come. Whoever is first to be back must not take the rest for dead.
 */
function isBack(
  before: Observation,
  beats: readonly WorkerBeat[],
  self: string | undefined,
  now: number,
  leaseMs: number,
): boolean {
  const own = self === undefined ? undefined : before.watches.get(self)
  const beat = beats.find(({ id }) => id === self)?.beat
  return own !== undefined && beat !== own.beat && now - own.since > leaseMs / 2
}

/** A worker that left its leases behind (beat null) was ended by another rescuer: what it held is free at once. */
function isDead(watch: Watch | undefined, beat: number | null, now: number, leaseMs: number): boolean {
  if (beat === null) return true
  return watch !== undefined && now - watch.since >= leaseMs
}
