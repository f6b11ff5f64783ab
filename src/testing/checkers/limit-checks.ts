import type { Census, CensusJob } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'

/** The limit of a job, or of a queue. The key of a job is the number `n` of its payload. */
export interface LimitRule {
  readonly name?: string
  readonly queue?: string
  readonly max: number
  readonly isKeyed?: boolean
}

export interface LimitFacts {
  readonly limits: readonly LimitRule[]
  /** The name of the job whose keys take turns. */
  readonly turns: string
  /** How many jobs the fleet may claim before a checker sees one of them begin. */
  readonly claimedMax: number
  readonly pollMs: number
  readonly databaseNow: () => number
  readonly count: (what: string) => void
}

/** A key that has just begun to wait is passed by the rest of a rotation, and then by a whole one. */
const TURNS_MAX = 2

/**
 * Limits (X5) and outages (X4): no more jobs are claimed than a limit allows, no key waits while others get several turns, and the retries of
 * a closed lane are released one per poll. That no slot is leaked, and no job starved, follows from the drain at the end.
 */
export class LimitChecker {
  readonly #facts: LimitFacts
  #before = new Map<string, CensusJob>()
  /** Of each key that waits: the keys of the jobs that began meanwhile, and how many may. */
  readonly #passedBy = new Map<number, { readonly keys: readonly number[]; readonly most: number }>()
  readonly #probedAt = new Map<string, number>()

  constructor(facts: LimitFacts) {
    this.#facts = facts
  }

  check(census: Census): void {
    for (const rule of this.#facts.limits) this.#checkLimit(rule, census)
    this.#checkTurns(census)
    for (const { queue, name, state } of census.outages) this.#checkProbes(queue, name, state, census)
    this.#before = new Map(census.jobs.map((job) => [job.id, job]))
  }

  #checkLimit({ name, queue, max, isKeyed }: LimitRule, census: Census): void {
    const inFlight = new Map<number | null, number>()
    for (const job of census.jobs) {
      if (
        job.fence === null ||
        (name !== undefined && job.name !== name) ||
        (queue !== undefined && job.queue !== queue)
      )
        continue
      const key = isKeyed === true ? job.n : null
      const count = (inFlight.get(key) ?? 0) + 1
      inFlight.set(key, count)
      if (count > max)
        throw new BrokenPromise(`X5: ${count} jobs of ${name ?? queue} ${key ?? ''} are in flight, and ${max} may be`)
      if (count === max) this.#facts.count('limits: full')
    }
  }

  #checkTurns(census: Census): void {
    const mine = census.jobs.filter(
      ({ name, state }) => name === this.#facts.turns && (state === 'ready' || state === 'running'),
    )
    // Suspects wait for a quarantine, and not for a turn.
    const waiting = new Set(
      mine.filter(({ fence, streak }) => fence === null && streak < 2).map(({ n }) => n as number),
    )
    for (const { fence, n } of mine) if (fence !== null) waiting.delete(n as number)
    const begun = mine.filter(({ id, fence }) => fence !== null && this.#before.get(id)?.fence === null)
    for (const key of this.#passedBy.keys()) if (!waiting.has(key)) this.#passedBy.delete(key)
    for (const key of waiting) {
      const wait = this.#passedBy.get(key)
      // What began in the commit in which it came to wait may have been claimed before.
      const keys = wait === undefined ? [] : [...wait.keys, ...begun.map(({ n }) => n as number)]
      // Keys that waited beside it may have been served since: the bound is that of when most of them waited.
      const most = Math.max(wait?.most ?? 0, 2 * (waiting.size + 1) + this.#facts.claimedMax)
      this.#passedBy.set(key, { keys, most })
      const [again] = keys.filter((each) => keys.filter((other) => other === each).length > TURNS_MAX)
      if (again !== undefined)
        throw new BrokenPromise(
          `X5: key ${key} waits while key ${again} has ${TURNS_MAX + 1} turns: ${keys.join(', ')}`,
        )
      if (keys.length > most)
        throw new BrokenPromise(
          `X5: key ${key} waits while ${keys.length} jobs of other keys began: ${keys.join(', ')}`,
        )
    }
    if (begun.length > 0 && waiting.size > 1) this.#facts.count('limits: turns')
  }

  #checkProbes(queue: string, name: string, state: string, census: Census): void {
    const lane = `${queue} ${name}`
    if (state !== 'closed') return void this.#probedAt.delete(lane)
    const now = this.#facts.databaseNow()
    for (const job of census.jobs) {
      if (job.name !== name || job.queue !== queue || job.state !== 'ready') continue
      if (this.#before.get(job.id)?.state !== 'retrying') continue
      const last = this.#probedAt.get(lane)
      // The store rounds its clock to a millisecond.
      if (last !== undefined && now - last < this.#facts.pollMs - 1)
        throw new BrokenPromise(`X4: a second probe of ${lane} ${now - last} ms after the last one`)
      this.#probedAt.set(lane, now)
      this.#facts.count('outages: probes')
    }
  }
}

/** No window of `perMs` has more than `max` starts. */
export function checkRate(starts: readonly number[], max: number, perMs: number): void {
  const sorted = starts.toSorted((a, b) => a - b)
  for (let i = max; i < sorted.length; i += 1) {
    const first = sorted[i - max] as number
    if ((sorted[i] as number) - first < perMs)
      throw new BrokenPromise(`X5: more than ${max} starts within ${perMs} ms from ${first}`)
  }
}
