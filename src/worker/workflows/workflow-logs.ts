import type { KeptClaim, LogAppend, LogAppended, WorkflowLog } from '../../store/workflows.js'
import type { Cancel } from '../../world/timers.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'

type Parts = Pick<InFlightParts, 'store' | 'world' | 'events'>

/** The wait before a call that failed is tried again, doubled up to the longest. */
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000
/**
 * Turns of the event loop that a call waits for others. A workflow needs three from an answer to its next step's end, and a commit costs
 * more than all of them: without the wait, workflows that began in different turns would never share one.
 */
const TURNS_GATHERED = 4
/** A call waits no longer than this for the one before it, which may wait for a lock. */
const BEHIND_MAX_MS = 20
/** The turns, and the milliseconds, that settlements wait for the next append: as many as a workflow needs from its claim to its first step's end. */
const SETTLE_TURNS = 16
const SETTLE_WAIT_MS = 5

/**
 * The logs of the workflows of one worker. What is read or appended in a few turns of the event loop is one call of the store:
 * when every workflow in hand waits for it there is nothing to wait for, and it is sent at once.
 */
export class WorkflowLogs {
  readonly #world: Parts['world']
  readonly #reads: Batch<KeptClaim, WorkflowLog>
  readonly #appends: Batch<LogAppend, LogAppended>
  readonly #inHand: () => number
  #onAppend: (() => void) | undefined

  /** `inHand`: how many workflows may read or append. */
  constructor(parts: Parts, inHand: () => number) {
    this.#world = parts.world
    this.#inHand = inHand
    const isWhole = (): boolean => this.#reads.size + this.#appends.size >= inHand()
    this.#reads = new Batch(parts, 'read the log of a workflow', isWhole, (claims) =>
      parts.store.leases.readLogs(claims),
    )
    this.#appends = new Batch(parts, 'record a step', isWhole, (appends) => {
      const appended = parts.store.leases.appendSteps(appends)
      this.#onAppend?.()
      return appended
    })
  }

  /**
   * Resolves when an append has just been sent, or after a few turns: on SQLite, what the caller sends then shares the commit of
   * the append. Undefined: no workflow is in hand. One caller waits at a time.
   */
  nextAppend(): Promise<void> | undefined {
    if (this.#inHand() === 0) return undefined
    const { clock, timers } = this.#world
    const end = clock.monotonic() + SETTLE_WAIT_MS
    return new Promise((resolve) => {
      const over = (): void => {
        this.#onAppend = undefined
        resolve()
      }
      this.#onAppend = over
      const wait = (turns: number): void => {
        if (this.#onAppend !== over) return
        if (turns === 0 || clock.monotonic() >= end || this.#inHand() === 0) return over()
        timers.soon(() => wait(turns - 1))
      }
      wait(SETTLE_TURNS)
    })
  }

  /** `done` gets undefined when the claim is lost. */
  read(given: KeptClaim, isOver: () => boolean, done: (log: WorkflowLog | undefined) => void): void {
    this.#reads.add({ given, isOver, done })
  }

  /** `done` gets undefined when the claim is lost. */
  append(given: LogAppend, isOver: () => boolean, done: (appended: LogAppended | undefined) => void): void {
    this.#appends.add({ given, isOver, done })
  }
}

interface Waiting<In, Out> {
  readonly given: In
  readonly isOver: () => boolean
  readonly done: (out: Out | undefined) => void
}

/**
 * Calls are repeated until the store has answered, however often it fails, or until they are over. One batch is under way at a
 * time: those who get its answers are soon here again, and share the next one with those who have waited for it.
 */
class Batch<In extends { readonly ref: number }, Out extends { readonly ref: number }> {
  readonly #parts: Parts
  readonly #what: string
  readonly #isWhole: () => boolean
  readonly #send: (given: readonly In[]) => Promise<readonly Out[]>
  #waiting: Waiting<In, Out>[] = []
  #sending = 0
  #isGathering = false
  #endWait: Cancel | undefined

  constructor(
    parts: Parts,
    what: string,
    isWhole: () => boolean,
    send: (given: readonly In[]) => Promise<readonly Out[]>,
  ) {
    this.#parts = parts
    this.#what = what
    this.#isWhole = isWhole
    this.#send = send
  }

  get size(): number {
    return this.#waiting.length
  }

  add(call: Waiting<In, Out>): void {
    this.#waiting.push(call)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#waiting.length === 0 || this.#isGathering) return
    if (this.#sending > 0)
      return void (this.#endWait ??= this.#parts.world.timers.after(BEHIND_MAX_MS, () => this.#flush()))
    this.#isGathering = true
    this.#gather(TURNS_GATHERED)
  }

  #gather(turns: number): void {
    this.#parts.world.timers.soon(() => {
      if (turns > 1 && !this.#isWhole()) return this.#gather(turns - 1)
      this.#isGathering = false
      this.#flush()
    })
  }

  #flush(): void {
    this.#endWait?.()
    this.#endWait = undefined
    const batch = this.#waiting
    this.#waiting = []
    void this.#write(batch, RETRY_FIRST_MS)
  }

  async #write(batch: readonly Waiting<In, Out>[], retryMs: number): Promise<void> {
    const due = batch.filter(({ isOver, done }) => !isOver() || done(undefined))
    if (due.length === 0) return this.#schedule()
    let answers: readonly Out[]
    this.#sending += 1
    try {
      answers = await this.#send(due.map(({ given }) => given))
    } catch (error) {
      this.#parts.events.storeFailed(this.#what, error)
      this.#parts.world.timers.after(retryMs, () => void this.#write(due, Math.min(RETRY_MAX_MS, retryMs * 2)))
      return
    } finally {
      this.#sending -= 1
      this.#schedule()
    }
    const byRef = new Map(answers.map((answer) => [answer.ref, answer]))
    for (const { given, done } of due) done(byRef.get(given.ref))
  }
}
