/**
 * Runs a task at most once at a time. A request made while it runs makes it run once more when it has ended: the run under way
 * may have read the state before what the request is about was written. However many requests come meanwhile, they share that
 * one further run.
 */
export class SingleFlight {
  readonly #task: () => Promise<void>
  #isRunning = false
  #isRequested = false
  #ended: Promise<void> = Promise.resolve()

  /** A task that rejects ends the loop: the requests made meanwhile are dropped, and the next one starts it again. */
  constructor(task: () => Promise<void>) {
    this.#task = task
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** The task starts before this returns, unless it runs already. Resolves when no further run is requested. */
  request(): Promise<void> {
    this.#isRequested = true
    if (!this.#isRunning) this.#ended = this.#run()
    return this.#ended
  }

  /** Waits for the current run and those already requested; starts one if none runs. Requests no further run. */
  join(): Promise<void> {
    return this.#isRunning ? this.#ended : this.request()
  }

  /** Resolves when no run is under way. */
  idle(): Promise<void> {
    return this.#ended
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      while (this.#isRequested) {
        this.#isRequested = false
        await this.#task()
      }
    } finally {
      this.#isRunning = false
    }
  }
}
