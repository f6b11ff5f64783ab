import { Worker } from 'node:worker_threads'
import type { Heart } from '../workers.js'
import type { SqliteLibrary } from './library.js'
import type { Queries } from './queries.js'

/**
 * The heartbeat, from a thread with its own connection, so that a handler that blocks the event loop is not taken for dead.
 * The thread's program is a string, because a file of its own is what bundlers lose. It waits for a busy file by itself
 * (it may: it is not the event loop), and it says when its row is gone, which means that somebody took it for dead.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { module: name, path, worker, everyMs, sql } = workerData
const { DatabaseSync } = name === 'node:sqlite' ? process.getBuiltinModule(name) : require(name)
const database = new DatabaseSync(path)
database.exec('pragma busy_timeout = 2000; pragma synchronous = normal')
const statement = database.prepare(sql)
let failing = false
const beat = () => {
  try {
    if (Number(statement.run(worker).changes) === 0) return parentPort.postMessage({ lost: 'it was taken for dead' })
    failing = false
  } catch (error) {
    // Busy, full or failing for now: the next beat tries again, and the rescuer's patience is one lease.
    if (!failing) parentPort.postMessage({ failed: String(error && error.message || error) })
    failing = true
  }
}
const timer = setInterval(beat, everyMs)
parentPort.on('message', () => {
  clearInterval(timer)
  database.close()
  parentPort.close()
})
beat()
parentPort.postMessage({ ready: true })
`

export interface HeartOptions {
  readonly library: SqliteLibrary
  readonly path: string
  readonly worker: string
  readonly everyMs: number
  readonly queries: Queries
  readonly onLost: (why: string) => void
}

/** Starts the thread; undefined where it cannot be had (a library we know only by a handle, no threads here). */
export async function startHeart(options: HeartOptions): Promise<Heart | undefined> {
  const { library, path, worker, everyMs, queries } = options
  if (library.module === undefined) return undefined
  const thread = new Worker(PROGRAM, {
    eval: true,
    name: 'millrace-heart',
    workerData: { module: library.module, path, worker, everyMs, sql: queries.beat },
    // Nothing of the app's own flags: a loader or an inspector there must not run in here.
    execArgv: [],
    stderr: false,
  })
  const began = await new Promise<boolean>((resolve) => {
    thread.once('error', () => resolve(false))
    thread.once('exit', () => resolve(false))
    thread.on('message', (message: { ready?: boolean; lost?: string }) => {
      if (message.ready) resolve(true)
      if (message.lost !== undefined) options.onLost(message.lost)
    })
  })
  if (!began) return undefined
  thread.unref() // What keeps the process alive is the worker, not its heart.
  thread.on('error', (error) => options.onLost(`its heart stopped: ${error.message}`))
  return { stop: () => stopThread(thread) }
}

function stopThread(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    thread.once('exit', () => resolve())
    thread.ref()
    thread.postMessage('stop')
  })
}
