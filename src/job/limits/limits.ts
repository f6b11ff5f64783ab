import { keyOfTurn } from './turns.js'

/**
 * Which ready jobs a claim may take under limits and rates. Pure: the store reads the candidates and what is in use,
 * this decides, and the store writes the decision in the same transaction.
 *
 * A limit bounds the jobs in flight: a slot for each, from its claim to the end of that claim. A rate bounds the starts in
 * every window of its length. Each is counted in a bucket: one for the job, for a key of the job, or for the queue.
 */

/** The limits of a job, from its definition in the process that claims. */
export interface JobLimits {
  readonly limit?: { readonly max: number; readonly isKeyed: boolean } | undefined
  readonly rate?: { readonly max: number; readonly perMs: number; readonly isKeyed: boolean } | undefined
}

/** The limits of a queue, as they are stored. */
export interface QueueLimits {
  readonly limit?: { readonly max: number } | undefined
  readonly rate?: { readonly max: number; readonly perMs: number } | undefined
}

/** A ready job that a claim may take. */
export interface Candidate {
  readonly ref: number
  /** Its place among ready jobs: the turn of its key, or its lane. */
  readonly turn: number
  readonly sort: number
  /** The number of its rate key, where that is not the key of its turn. */
  readonly rateTurn: number | null
  readonly weight: number | null
}

/** The candidates of one lane, in the order of their turns, and what bounds them. */
export interface LimitedLane {
  readonly lane: number
  readonly queue: string
  readonly name: string
  readonly job: JobLimits | undefined
  readonly ofQueue: QueueLimits | undefined
  readonly candidates: readonly Candidate[]
}

export interface SlotGate {
  readonly bucket: string
  readonly max: number
}

export interface RateGate {
  readonly bucket: string
  readonly max: number
  readonly perMs: number
  /** What a start of this job uses. */
  readonly weight: number
}

/** The buckets of one candidate. */
export interface Gates {
  readonly slots: readonly SlotGate[]
  readonly rates: readonly RateGate[]
}

export function gatesOf({ name, queue, job, ofQueue }: LimitedLane, candidate: Candidate): Gates {
  const key = keyOfTurn(candidate.turn)
  const slots: SlotGate[] = []
  const rates: RateGate[] = []
  if (job?.limit !== undefined)
    slots.push({ bucket: bucketOf(name, job.limit.isKeyed ? key : null), max: job.limit.max })
  if (job?.rate !== undefined) {
    const { max, perMs, isKeyed } = job.rate
    // A weight above the rate, which was lowered since, would never fit: such a job needs an empty window.
    const weight = Math.min(candidate.weight ?? 1, max)
    rates.push({ bucket: bucketOf(name, isKeyed ? (candidate.rateTurn ?? key) : null), max, perMs, weight })
  }
  if (ofQueue?.limit !== undefined) slots.push({ bucket: `queue ${queue}`, max: ofQueue.limit.max })
  if (ofQueue?.rate !== undefined) rates.push({ bucket: `queue ${queue}`, ...ofQueue.rate, weight: 1 })
  return { slots, rates }
}

/** Names have no control characters, so a newline separates name and key. */
function bucketOf(name: string, key: number | null): string {
  return key === null ? `job ${name}` : `job ${name}\n${key}`
}

/** What is in use. */
export interface InUse {
  /** Slots by bucket. */
  readonly slots: ReadonlyMap<string, number>
  /** Starts within the window by bucket, and when the first and the last of them leave it. */
  readonly rates: ReadonlyMap<string, { readonly used: number; readonly freesAt: number; readonly lastsUntil: number }>
}

/** How many jobs the claim may take. */
export interface ClaimRoom {
  /** Jobs that start at once. Only these may be under a rate: a start is counted when it is claimed. */
  readonly starting: number
  readonly max: number
  readonly rooms: ReadonlyMap<string, number>
}

export interface Admitted {
  /** First those that start at once, then those that are held. */
  readonly chosen: readonly { readonly lane: LimitedLane; readonly candidate: Candidate; readonly gates: Gates }[]
  readonly starting: number
  /** The turn that was served last in each lane. */
  readonly turns: ReadonlyMap<number, number>
  /** A job waits for a slot that another job has. */
  readonly waitsForSlot: boolean
  /** When the first window opens that a job waits for; Infinity when none does. */
  readonly opensAt: number
}

/** Jobs are held in advance only where a limit has at least this many free slots, and then in half of them: a held job has a slot that another process could use. */
export const HOLD_FROM_FREE = 50

/** Whether jobs under these limits may be held in advance while no slot is taken. */
export function mayEverHold(job: JobLimits | undefined, ofQueue: QueueLimits | undefined): boolean {
  if (job?.rate !== undefined || ofQueue?.rate !== undefined) return false
  return Math.min(job?.limit?.max ?? Infinity, ofQueue?.limit?.max ?? Infinity) >= HOLD_FROM_FREE
}

/** Takes the candidates with the lowest `sort` of the first of each lane, while every bucket of theirs has room. */
export function admit(lanes: readonly LimitedLane[], inUse: InUse, room: ClaimRoom, now: number): Admitted {
  const buckets = new Buckets(inUse, now)
  const queues = new Map(room.rooms)
  const next = new Map(lanes.map((lane) => [lane, 0]))
  const starting: Admitted['chosen'][number][] = []
  const held: Admitted['chosen'][number][] = []
  const turns = new Map<number, number>()
  while (starting.length + held.length < room.max) {
    const lane = lowest(lanes, next)
    if (lane === undefined) break
    const at = next.get(lane) as number
    const candidate = lane.candidates[at] as Candidate
    next.set(lane, at + 1)
    const left = queues.get(lane.queue) ?? Infinity
    if (left <= 0) continue
    const gates = gatesOf(lane, candidate)
    const place = starting.length < room.starting ? starting : held
    if (place === held && !buckets.mayHold(gates)) continue
    if (!buckets.take(gates)) continue
    place.push({ lane, candidate, gates })
    turns.set(lane.lane, candidate.turn)
    queues.set(lane.queue, left - 1)
  }
  const { waitsForSlot, opensAt } = buckets
  return { chosen: [...starting, ...held], starting: starting.length, turns, waitsForSlot, opensAt }
}

function lowest(lanes: readonly LimitedLane[], next: ReadonlyMap<LimitedLane, number>): LimitedLane | undefined {
  let [found, sort]: [LimitedLane | undefined, number] = [undefined, Infinity]
  for (const lane of lanes) {
    const candidate = lane.candidates[next.get(lane) as number]
    if (candidate !== undefined && candidate.sort < sort) [found, sort] = [lane, candidate.sort]
  }
  return found
}

/**
 * In a full window of a high rate places become free all the time. A worker then claims this often at most, and starts several jobs at
 * once: a claim costs more than a start, and at most 1 part in 100 of the rate stays unused for it.
 */
const CLAIMS_PER_WINDOW = 50
export const CLAIM_PACE_MS = 20

/** When the next claim under a full rate is worth its cost. */
function opensAt({ max, perMs }: RateGate, freesAt: number, now: number): number {
  if (max < CLAIMS_PER_WINDOW) return freesAt
  return Math.max(freesAt, now + Math.min(CLAIM_PACE_MS, perMs / CLAIMS_PER_WINDOW))
}

/** What is left of each bucket during one decision. */
class Buckets {
  readonly #inUse: InUse
  readonly #now: number
  readonly #taken = new Map<string, number>()
  /** A job that did not fit comes first: lighter ones behind it must not take what it waits for. */
  readonly #blocked = new Set<string>()
  waitsForSlot = false
  opensAt = Infinity

  constructor(inUse: InUse, now: number) {
    this.#inUse = inUse
    this.#now = now
  }

  mayHold({ slots, rates }: Gates): boolean {
    return (
      rates.length === 0 &&
      slots.every((gate) => {
        const free = gate.max - (this.#inUse.slots.get(gate.bucket) ?? 0)
        return free >= HOLD_FROM_FREE && this.#slotsLeft(gate) > free / 2
      })
    )
  }

  take({ slots, rates }: Gates): boolean {
    let fits = true
    for (const gate of slots) if (this.#slotsLeft(gate) <= 0) [fits, this.waitsForSlot] = [false, true]
    for (const gate of rates) if (!this.#fits(gate)) fits = false
    if (!fits) return false
    for (const { bucket } of slots) this.#add(`slot ${bucket}`, 1)
    for (const { bucket, weight } of rates) this.#add(`rate ${bucket}`, weight)
    return true
  }

  #slotsLeft({ bucket, max }: SlotGate): number {
    return max - (this.#inUse.slots.get(bucket) ?? 0) - (this.#taken.get(`slot ${bucket}`) ?? 0)
  }

  #fits(gate: RateGate): boolean {
    const { bucket, max, weight } = gate
    const window = this.#inUse.rates.get(bucket)
    const left = max - (window?.used ?? 0) - (this.#taken.get(`rate ${bucket}`) ?? 0)
    if (weight <= left && !this.#blocked.has(bucket)) return true
    this.#blocked.add(bucket)
    if (window !== undefined) this.opensAt = Math.min(this.opensAt, opensAt(gate, window.freesAt, this.#now))
    return false
  }

  #add(bucket: string, weight: number): void {
    this.#taken.set(bucket, (this.#taken.get(bucket) ?? 0) + weight)
  }
}

/** A window is counted in this many steps: a start leaves it with the last one of its step, so 1 part in 200 may be unused. */
export const STEPS_PER_WINDOW = 200

/** The step of a start in the windows of a rate. */
export function stepOf(now: number, perMs: number): number {
  return Math.floor(now / Math.max(1, Math.floor(perMs / STEPS_PER_WINDOW)))
}

/** What the chosen jobs use of each rate. */
export function startsOf(chosen: Admitted['chosen']): Map<string, { readonly perMs: number; readonly weight: number }> {
  const starts = new Map<string, { perMs: number; weight: number }>()
  for (const { gates } of chosen)
    for (const { bucket, perMs, weight } of gates.rates)
      starts.set(bucket, { perMs, weight: weight + (starts.get(bucket)?.weight ?? 0) })
  return starts
}
