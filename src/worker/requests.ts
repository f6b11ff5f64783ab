import { LeaseLostError } from '../errors.js'
import type { Store } from '../store/store.js'
import { SingleFlight } from '../world/single-flight.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'
import type { Members } from './in-flight/indexed-set.js'
import type { Running } from './attempt/running.js'

export interface RequestReaderParts {
  readonly world: World
  readonly store: Store
  /** How often requests are read without a hint. */
  readonly everyMs: () => number
  /** The attempts that run in this worker. */
  readonly running: Members<Running>
  /** A request was written, or a read is due: another process may have taken held jobs or paused their queue. */
  readonly recheckHeld: () => void
  /** Aborts the handler of a cancelled job. */
  readonly cancel: (running: Running, reason: string) => void
  /** Reads what was sent to the workflows that run in this worker. */
  readonly readInboxes: () => Promise<void>
  readonly storeFailed: (what: string, error: unknown) => void
}

/**
 * Reads the changes that callers requested of running jobs: at once when a hint announces one, else at the next read. Only a
 * cancel aborts the handler. A pause is applied by the transaction that ends the attempt, as a cancel is if it comes too late.
 */
export class RequestReader {
  readonly #parts: RequestReaderParts
  #timer: Cancel | undefined
  #stopHints: Cancel | undefined
  readonly #reads: SingleFlight

  constructor(parts: RequestReaderParts) {
    this.#parts = parts
    this.#reads = new SingleFlight(() => this.#read())
  }

  get isReading(): boolean {
    return this.#reads.isRunning
  }

  start(): void {
    this.#stopHints = this.#parts.store.changes.onHint((hint) => {
      if (hint.requested) this.#requestRead()
    })
    this.#readLater()
  }

  stop(): void {
    this.#stopHints?.()
    this.#timer?.()
  }

  #readLater(): void {
    const read = (): void => {
      this.#requestRead()
      this.#readLater()
    }
    this.#timer = this.#parts.world.timers.after(this.#parts.everyMs(), read, { idle: true })
  }

  #requestRead(): void {
    this.#parts.recheckHeld()
    if (this.#reads.isRunning || this.#parts.running.size > 0) void this.#reads.request()
  }

  async #read(): Promise<void> {
    try {
      await abortCancelledJobs(this.#parts)
      await abortResetItems(this.#parts)
      await this.#parts.readInboxes()
    } catch (error) {
      this.#parts.storeFailed('read requested changes', error)
    }
  }
}

/**
 * Aborts every item of a sequence, and every workflow, whose claim is lost: the sequence was reset, or the workflow was
 * ended at once.
 */
async function abortResetItems({ store, running }: Pick<RequestReaderParts, 'store' | 'running'>): Promise<void> {
  const items = [...running].filter(
    (each) => (each.claimed.sequence !== undefined || each.workflow !== undefined) && !each.settled,
  )
  if (items.length === 0) return
  const { mine, paused } = await store.leases.confirmJobs(items.map(({ claimed }) => claimed))
  for (const item of items)
    if (!mine.has(item.claimed.ref) && !paused.has(item.claimed.ref))
      item.abort(new LeaseLostError(`${item.job} ${item.id} was reset, ended or taken away while it ran`))
}

/**
 * Aborts every handler of this worker whose job was cancelled, and lets workflows to be paused begin no other step, until the
 * pause is withdrawn.
 */
async function abortCancelledJobs(parts: Pick<RequestReaderParts, 'store' | 'running' | 'cancel'>): Promise<void> {
  const requests = await parts.store.leases.readRequests()
  if (requests.length === 0 && ![...parts.running].some(({ workflow }) => workflow?.isPausing)) return
  const cancels = new Map(requests.filter(({ kind }) => kind === 'cancel').map((request) => [request.ref, request]))
  const pauses = new Map(requests.filter(({ kind }) => kind === 'pause').map((request) => [request.ref, request]))
  for (const running of parts.running) {
    running.workflow?.pause(pauses.get(running.claimed.ref)?.fence === running.claimed.fence)
    const request = cancels.get(running.claimed.ref)
    // The cancel of a workflow is in its inbox.
    if (request?.fence === running.claimed.fence && !running.settled && running.workflow === undefined)
      parts.cancel(running, request.reason)
  }
}
