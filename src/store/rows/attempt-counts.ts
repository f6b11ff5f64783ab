import type { Failure } from '../../job/statistics/failure.js'
import { Sketch } from '../../job/statistics/sketch.js'
import type { SettledJob } from '../store.js'

/**
 * What the settlements of one batch add to the statistics of one lane: a row of `stats_moves`, written in the transaction
 * that settles them. `store/verbs/statistics.ts` folds these rows into the buckets.
 */
export interface AttemptCounts {
  readonly queue: string
  readonly name: string
  readonly done: number
  readonly failed: number
  /** Failed attempts after which the job is retried. */
  readonly retried: number
  /** Sketches as they are written. */
  readonly wait: string | null
  readonly run: string | null
  /** JSON of `GroupedFailure[]`. */
  readonly failures: string | null
}

/** Failures of one error group. */
export interface GroupedFailure extends Omit<Failure, 'message'> {
  readonly count: number
  /** The last of them. */
  readonly samples: readonly FailureSample[]
}

export interface FailureSample {
  readonly id: string
  readonly at?: number | undefined
  readonly message: string | null
}

/** Failed jobs that an error group names. */
export const SAMPLES_MAX = 5

/** One row for each lane that has something to count. */
export function countAttempts(settled: readonly SettledJob[]): AttemptCounts[] {
  const lanes = new Map<string, LaneCounts>()
  let lane: LaneCounts | undefined
  for (const job of settled) {
    if (job.statistics === undefined) continue
    // Neighbours of a batch are mostly of one lane.
    if (lane?.queue !== job.queue || lane.name !== job.name) lane = laneOf(lanes, job)
    lane.add(job)
  }
  return [...lanes.values()].map((each) => each.row())
}

function laneOf(lanes: Map<string, LaneCounts>, { queue, name }: SettledJob): LaneCounts {
  // Names have no control characters.
  const key = `${queue}\n${name}`
  const known = lanes.get(key) ?? new LaneCounts(queue, name)
  lanes.set(key, known)
  return known
}

class LaneCounts {
  readonly queue: string
  readonly name: string
  #done = 0
  #failed = 0
  #retried = 0
  readonly #wait = new Sketch()
  readonly #run = new Sketch()
  readonly #failures = new Map<string, GroupedFailure>()

  constructor(queue: string, name: string) {
    this.queue = queue
    this.name = name
  }

  add({ id, to, statistics }: SettledJob): void {
    if (statistics === undefined) return
    if (to === 'done') this.#done += 1
    else if (to === 'failed') this.#failed += 1
    else if (to === 'retrying') this.#retried += 1
    if (statistics.waitMs !== null) this.#wait.add(statistics.waitMs)
    if (statistics.runMs !== null && (to === 'done' || to === 'failed')) this.#run.add(statistics.runMs)
    if (statistics.failure !== null) this.#addFailure(id, statistics.failure)
  }

  #addFailure(id: string, { message, ...group }: Failure): void {
    const before = this.#failures.get(group.fingerprint)
    const samples = [...(before?.samples ?? []), { id, message }].slice(-SAMPLES_MAX)
    this.#failures.set(group.fingerprint, { ...group, count: (before?.count ?? 0) + 1, samples })
  }

  row(): AttemptCounts {
    return {
      queue: this.queue,
      name: this.name,
      done: this.#done,
      failed: this.#failed,
      retried: this.#retried,
      wait: this.#wait.write(),
      run: this.#run.write(),
      failures: this.#failures.size === 0 ? null : JSON.stringify([...this.#failures.values()]),
    }
  }
}
