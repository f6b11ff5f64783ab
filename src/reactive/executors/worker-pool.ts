import { describe } from '../errors.js'
import type { Executor } from './executors.js'
import { eventLoopExecutor } from './executors.js'
import * as host from '../host.js'

export interface WorkerPoolOptions {
  /** How many worker threads. Default: 1. */
  readonly size?: number | undefined
  /** The `file:` URL of the module whose exported functions the workers run. */
  readonly module: string | URL
}

/**
 * Bodies run as with `eventLoopExecutor()`; `ctx.offload(name, args)` runs the exported function `name` of `module` in
 * a worker thread. Arguments and results are copied by structured clone. When a worker dies, its task is rejected and the
 * worker is replaced. Threads start with the first task and do not keep the process alive while they are idle.
 */
export function workerPoolExecutor(options: WorkerPoolOptions): Executor {
  const { size = 1, module } = (options ?? {}) as Partial<WorkerPoolOptions>
  if (!(module instanceof URL || (typeof module === 'string' && module !== ''))) {
    throw new TypeError(
      `workerPoolExecutor: module must be the file: address of the module to load, got ${describe(module)}`,
    )
  }
  if (!(Number.isInteger(size) && size > 0)) {
    throw new RangeError(`workerPoolExecutor: size must be a whole number of 1 or more, got ${describe(size)}`)
  }
  const pool = new WorkerPool(size, String(module))
  return {
    ...eventLoopExecutor(),
    offload: (name, args) => pool.run(name, args),
    close: () => pool.close(),
  }
}

interface Task {
  readonly name: string
  readonly args: readonly unknown[]
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

type Thread = ReturnType<typeof host.startWorker>

class WorkerPool {
  readonly #size: number
  readonly #module: string
  readonly #waiting: Task[] = []
  readonly #idle: Thread[] = []
  readonly #tasks = new Map<Thread, Task | undefined>()
  #isClosed = false

  constructor(size: number, module: string) {
    this.#size = size
    this.#module = module
  }

  run(name: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, args, resolve, reject })
      this.#assign()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const task of this.#waiting.splice(0)) task.reject(closedError())
    await Promise.all(Array.from(this.#tasks.keys(), (thread) => thread.terminate()))
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#idle.pop() ?? (this.#tasks.size < this.#size ? this.#start() : undefined)
      if (thread === undefined) return
      this.#give(thread, this.#waiting.shift() as Task)
    }
  }

  #give(thread: Thread, task: Task): void {
    try {
      thread.postMessage({ name: task.name, args: task.args })
      thread.ref()
      this.#tasks.set(thread, task)
    } catch (error) {
      task.reject(error) // The arguments cannot be cloned; the thread is still usable.
      this.#idle.push(thread)
    }
  }

  #start(): Thread {
    const thread = host.startWorker(WORKER_SOURCE, { module: this.#module })
    thread.unref()
    this.#tasks.set(thread, undefined)
    thread.on('message', (answer: { readonly value?: unknown; readonly error?: unknown }) => this.#end(thread, answer))
    thread.on('error', (error) => this.#lose(thread, error))
    thread.on('exit', (code) => this.#lose(thread, new Error(`the worker thread ended with code ${code}`)))
    return thread
  }

  #end(thread: Thread, answer: { readonly value?: unknown; readonly error?: unknown }): void {
    const task = this.#tasks.get(thread)
    this.#tasks.set(thread, undefined)
    thread.unref()
    this.#idle.push(thread)
    if ('error' in answer) task?.reject(answer.error)
    else task?.resolve(answer.value)
    this.#assign()
  }

  /** The thread ended: its task is rejected with the error, and the next task gets a new thread. */
  #lose(thread: Thread, error: unknown): void {
    if (!this.#tasks.has(thread)) return
    const task = this.#tasks.get(thread)
    this.#tasks.delete(thread)
    const at = this.#idle.indexOf(thread)
    if (at >= 0) this.#idle.splice(at, 1)
    task?.reject(error)
    if (!this.#isClosed) this.#assign()
  }
}

function closedError(): Error {
  return new Error('offload: the worker pool is closed')
}

/** The code of the worker thread: plain JavaScript, because the thread is started from text. */
const WORKER_SOURCE = `
const { parentPort, workerData } = require('node:worker_threads')
const loaded = import(workerData.module)
parentPort.on('message', async ({ name, args }) => {
  let answer
  try {
    const module = await loaded
    if (typeof module[name] !== 'function') throw new TypeError(workerData.module + ' exports no function ' + name)
    answer = { value: await module[name](...args) }
  } catch (error) {
    answer = { error }
  }
  try {
    parentPort.postMessage(answer)
  } catch (error) {
    parentPort.postMessage({ error: new Error('the result of ' + name + ' cannot be sent back: ' + error.message) })
  }
})
`
