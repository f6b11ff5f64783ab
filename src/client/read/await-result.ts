import type { Codec } from '../../codec/codec.js'
import type { ErrorRecord } from '../../codec/error-text.js'
import { reviveError } from '../../codec/error-text.js'
import { JobCancelledError, JobFailedError, JobGoneError, TimeoutError } from '../../errors.js'
import { formatDuration } from '../../job/duration/duration.js'
import type { State } from '../../job/rules/states.js'
import { isFinal } from '../../job/rules/states.js'
import { ObservedReads } from '../../live/observed-reads.js'
import type { Pace } from '../../live/observed-reads.js'
import type { JobRow, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { decodeStored } from './records.js'

export interface ResultParts {
  readonly store: Store
  readonly world: World
  readonly codecOf: (name: string) => Codec
}

/** The pause between two reads of the awaited jobs. It starts short, since most waits are short, and grows. */
const POLL_FIRST_MS = 15
const POLL_MAX_MS = 500
/** Each group of this many awaited jobs delays the next read by a millisecond: the reads must not slow the jobs. */
const AWAITED_PER_MS = 50
/** A shorter delay is no timer: the read follows in the next turn. */
const SOON_MS = 10

/** A hint that a job has ended triggers a read at once; a poll covers lost hints. */
const RESULT_PACE: Pace = {
  isFor: ({ settled }) => settled,
  soonMs: (_, awaited) => crowdMs(awaited),
  pollMs: (reads, awaited) => Math.min(POLL_MAX_MS, POLL_FIRST_MS * 1.5 ** (reads - 1)) + crowdMs(awaited),
}

function crowdMs(awaited: number): number {
  const ms = awaited / AWAITED_PER_MS
  return ms < SOON_MS ? 0 : ms
}

/** The callers of this process that wait for jobs to end, in any process. One read covers all awaited jobs. */
export class AwaitedResults {
  readonly #parts: ResultParts
  readonly #reads: ObservedReads<JobRow | undefined>
  readonly #giveUps = new Set<(error: Error) => void>()
  #closedBy: Error | undefined

  constructor(parts: ResultParts) {
    this.#parts = parts
    const { store, world } = parts
    // While the store cannot be read, each caller has its own timeout; the next poll reads again.
    const failed = (): void => undefined
    const reading = { changes: store.changes, timers: world.timers, monotonic: () => world.clock.monotonic(), failed }
    this.#reads = new ObservedReads(reading, RESULT_PACE, (ids) => store.jobs.readJobs(ids))
  }

  /** Waits for a job to end. Resolves with its result, or rejects with the error that says how it ended. */
  wait(id: string, limitMs: number | undefined): Promise<unknown> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy)
    return new Promise((resolve, reject) => {
      let state: State | 'unseen' = 'unseen'
      let stopTimer = (): void => undefined
      const end = (): void => {
        stopTimer()
        stopReading()
        this.#giveUps.delete(giveUp)
      }
      const giveUp = (error: Error): void => {
        end()
        reject(error)
      }
      const stopReading = this.#reads.observe(id, (row) => {
        state = row?.state ?? 'unseen'
        if (row !== undefined && !isFinal(row.state)) return
        end()
        if (row === undefined) reject(new JobGoneError(id))
        else conclude(row, this.#parts.codecOf(row.name), resolve, reject)
      })
      this.#giveUps.add(giveUp)
      if (limitMs === undefined) return
      stopTimer = this.#parts.world.timers.after(limitMs, () =>
        giveUp(new TimeoutError(`job ${id} did not end within ${formatDuration(limitMs)}; it is ${state}`)),
      )
    })
  }

  /** The store was closed: rejects every pending and every later wait. */
  close(error: Error): void {
    this.#closedBy = error
    for (const giveUp of this.#giveUps) giveUp(error)
  }
}

function conclude(
  row: JobRow,
  codec: Codec,
  resolve: (value: unknown) => void,
  reject: (error: unknown) => void,
): void {
  if (row.state === 'cancelled')
    return reject(new JobCancelledError(row.id, row.name, row.reason ?? 'no reason was given'))
  if (row.state === 'failed') {
    const cause = row.error === null ? undefined : reviveError(JSON.parse(row.error) as ErrorRecord)
    return reject(new JobFailedError(row.id, row.name, cause?.message ?? row.reason ?? 'no reason was given', cause))
  }
  if (row.result === null) return resolve(undefined)
  const decoded = decodeStored(codec, row.result)
  if (decoded.ok) resolve(decoded.value)
  else
    reject(
      new JobFailedError(row.id, row.name, `it is done, but its result does not decode: ${decoded.why}`, undefined),
    )
}
