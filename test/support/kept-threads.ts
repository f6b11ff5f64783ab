import { EventEmitter } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'
import type { Worker, WorkerOptions } from 'node:worker_threads'

/**
 * Before each file of tests: the thread of a heartbeat whose mill was stopped runs the heartbeat of a later mill. Tests start
 * some thousand mills, and to start a thread and load a database library in it takes longer than most of these tests.
 * Only threads of this process are kept: those that tests run as programs of their own start and end theirs as usual.
 */
const HEARTBEAT = 'millrace-heart'

/** More than the mills of most tests. */
const IDLE_MAX = 6

/** Runs one program after the other. A program sees its own `workerData`, a port to its own user, and an exit of its own. */
const HOST_PROGRAM = `
const { parentPort } = require('node:worker_threads')
const { EventEmitter } = require('node:events')
let current
const run = ({ program, workerData }) => {
  const port = new EventEmitter()
  const post = (message) => { if (current === port) parentPort.postMessage({ message }) }
  const end = () => {
    if (current !== port) return
    current = undefined
    parentPort.postMessage({ ended: true })
  }
  Object.assign(port, { postMessage: post, close: end })
  current = port
  const seen = (name) => name === 'node:worker_threads' ? { parentPort: port, workerData } : require(name)
  new Function('require', 'process', program)(seen, Object.create(process, { exit: { value: end } }))
}
parentPort.on('message', ({ start, message }) => {
  if (start !== undefined) run(start)
  else current?.emit('message', message)
})
`

interface Report {
  readonly message?: unknown
  readonly ended?: true
}

const NodeWorker = threads.Worker
const idle: Worker[] = []

/** What a mill sees of its heartbeat's thread. */
class KeptThread extends EventEmitter {
  readonly #thread: Worker

  constructor(program: string, { workerData, ...options }: WorkerOptions) {
    super()
    this.#thread = idle.pop() ?? new NodeWorker(HOST_PROGRAM, options)
    this.#thread.ref()
    this.#thread.on('message', ({ message, ended }: Report) =>
      ended ? this.#end(true) : this.emit('message', message),
    )
    this.#thread.on('error', (error) => this.emit('error', error))
    this.#thread.on('exit', () => this.#end(false))
    this.#thread.postMessage({ start: { program, workerData } })
  }

  #hasEnded = false
  get threadId(): number {
    return this.#hasEnded ? -1 : this.#thread.threadId
  }

  postMessage(message: unknown): void {
    if (!this.#hasEnded) this.#thread.postMessage({ message })
  }

  ref(): void {
    if (!this.#hasEnded) this.#thread.ref()
  }

  unref(): void {
    if (!this.#hasEnded) this.#thread.unref()
  }

  #end(isUsable: boolean): void {
    this.#hasEnded = true
    for (const event of ['message', 'error', 'exit']) this.#thread.removeAllListeners(event)
    this.#thread.unref()
    if (isUsable && idle.length < IDLE_MAX) idle.push(this.#thread)
    else if (isUsable) void this.#thread.terminate()
    this.emit('exit', 0)
  }
}

/** In place of Node's own; other threads than those of heartbeats are Node's. */
class KeepingWorker extends NodeWorker {
  constructor(program: string | URL, options: WorkerOptions = {}) {
    if (options.name === HEARTBEAT) return new KeptThread(String(program), options) as unknown as KeepingWorker
    super(program, options)
  }
}

// Vitest evaluates this before every file of a process; a second class would wrap the first.
if (threads.Worker.name !== KeepingWorker.name) {
  threads.Worker = KeepingWorker
  syncBuiltinESMExports()
}
