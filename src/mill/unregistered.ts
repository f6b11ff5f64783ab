import type { Registry } from '../job/definition/registry.js'
import type { Log } from '../world/log.js'

/** Names that are remembered. A process that enqueues more of them is not warned of the rest. */
const NAMES_MAX = 1_000

/**
 * Warns once for each job name that this process enqueues and its own worker does not run, because it is not in `jobs`. Another
 * process may run it, so this is no error; but nothing else shows that a job was forgotten. A mill that was never started only
 * enqueues, and is not warned.
 */
export class UnregisteredJobs {
  readonly #registry: Pick<Registry, 'runnable'>
  readonly #log: Log
  readonly #noted = new Set<string>()
  #isStarted = false

  constructor(registry: Pick<Registry, 'runnable'>, log: Log) {
    this.#registry = registry
    this.#log = log
  }

  /** The caller enqueued a job that is not registered. */
  note(name: string): void {
    if (this.#noted.has(name) || this.#noted.size >= NAMES_MAX) return
    this.#noted.add(name)
    if (this.#isStarted) this.#warn(name)
  }

  /** Jobs that were enqueued before the first start, and have not been registered since, are warned of now. */
  started(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    for (const name of this.#noted) this.#warn(name)
  }

  #warn(name: string): void {
    if (this.#registry.runnable(name) !== undefined) return
    const text = `job ${JSON.stringify(name)} was enqueued here and is not registered in this process: no worker of this process runs it. Pass it in jobs: millrace({ jobs: […] }), or call mill.register(job), unless another process runs it`
    this.#log.write('warn', { job: name }, text)
  }
}
