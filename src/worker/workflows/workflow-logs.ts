import type { KeptClaim, LogAppend, LogAppended, WorkflowLog } from '../../store/workflows.js'
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

/** The logs of the workflows of one worker. What is read or appended in one turn of the event loop is one call of the store. */
export class WorkflowLogs {
  readonly #reads: Batch<KeptClaim, WorkflowLog>
  readonly #appends: Batch<LogAppend, LogAppended>

  constructor(parts: Parts) {
    this.#reads = new Batch(parts, 'read the log of a workflow', (claims) => parts.store.leases.readLogs(claims))
    this.#appends = new Batch(parts, 'record a step', (appends) => parts.store.leases.appendSteps(appends))
  }

  /** Undefined when the claim is lost. */
  read(claim: KeptClaim, isOver: () => boolean): Promise<WorkflowLog | undefined> {
    return new Promise((done) => this.#reads.add({ given: claim, isOver, done }))
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

/** Calls are repeated until the store has answered, however often it fails, or until they are over. */
class Batch<In extends { readonly ref: number }, Out extends { readonly ref: number }> {
  readonly #parts: Parts
  readonly #what: string
  readonly #send: (given: readonly In[]) => Promise<readonly Out[]>
  #waiting: Waiting<In, Out>[] = []

  constructor(parts: Parts, what: string, send: (given: readonly In[]) => Promise<readonly Out[]>) {
    this.#parts = parts
    this.#what = what
    this.#send = send
  }

  add(call: Waiting<In, Out>): void {
    this.#waiting.push(call)
    if (this.#waiting.length === 1) this.#gather(TURNS_GATHERED)
  }

  #gather(turns: number): void {
    this.#parts.world.timers.soon(() => (turns > 1 ? this.#gather(turns - 1) : void this.#flush(this.#take())))
  }

  #take(): Waiting<In, Out>[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }

  async #flush(batch: readonly Waiting<In, Out>[], waitMs = RETRY_FIRST_MS): Promise<void> {
    const due = batch.filter(({ isOver, done }) => !isOver() || done(undefined))
    if (due.length === 0) return
    let answers: readonly Out[]
    try {
      answers = await this.#send(due.map(({ given }) => given))
    } catch (error) {
      this.#parts.events.storeFailed(this.#what, error)
      this.#parts.world.timers.after(waitMs, () => void this.#flush(due, Math.min(RETRY_MAX_MS, waitMs * 2)))
      return
    }
    const byRef = new Map(answers.map((answer) => [answer.ref, answer]))
    for (const { given, done } of due) done(byRef.get(given.ref))
  }
}
