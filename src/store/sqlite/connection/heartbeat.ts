import { Worker } from 'node:worker_threads'
import { WATCH_LOOP } from '../../loop-watch.js'
import type { LoopShare } from '../../loop-watch.js'
import type { Heartbeat } from '../../workers.js'
import { IN_SQLITE, openExitGate } from './exit-gate.js'
import { IS_GONE } from '../file/file-identity.js'
import type { FileIdentity } from '../file/file-identity.js'
import type { SqliteLibrary } from './library.js'
import type { Queries } from '../queries/queries.js'

/**
 * The heartbeat runs in a thread with its own connection, so that a worker whose handler blocks the event loop is not declared
 * dead. The thread's program is a string, because bundlers leave out a separate file. On a busy file it retries every few
 * milliseconds, for as long as that takes: SQLite's own busy wait makes only a few tries, all of which can fail when many
 * processes write at full speed. The thread reports when the worker's row is missing: another process declared the worker dead.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { statSync } = require('node:fs')
const { module: name, path, worker, everyMs, sql, markSql, identity, memory, gateMemory } = workerData
${IN_SQLITE}${IS_GONE}${WATCH_LOOP}
const { database, statement } = inSqlite(() => {
  const { DatabaseSync } = name === 'node:sqlite' ? process.getBuiltinModule(name) : require(name)
  if (isGone()) throw new Error('the file is gone')
  const database = new DatabaseSync(path)
  if (isGone()) throw new Error('the file is gone')
  database.exec('pragma busy_timeout = 2000; pragma synchronous = normal; pragma wal_autocheckpoint = 0')
  const statement = database.prepare(sql)
  database.exec('pragma busy_timeout = 0')
  return { database, statement }
})
let again, failures = 0
const guarded = (work) => () => {
  try {
    if (!isGone()) return work()
    parentPort.postMessage({ gone: true })
    clearInterval(timer)
  } catch {
    // The path cannot be checked now, so the beat cannot be trusted either; the next one tries again.
  }
}
const beat = () => {
  clearTimeout(again)
  try {
    const { changes } = inSqlite(() => statement.run(worker))
    if (Number(changes) === 0) parentPort.postMessage({ lost: 'it was declared dead' })
    failures = 0
  } catch {
    // Busy, full or failing now. Try until it works: rescuers rely on a beat as soon as one is possible.
    failures += 1
    again = setTimeout(guarded(beat), failures < 600 ? 3 : 25)
  }
}
const timer = setInterval(guarded(beat), everyMs)
const mark = (ref) => {
  try {
    inSqlite(() => {
      database.exec('pragma busy_timeout = 2000')
      database.prepare(markSql).run(ref, worker)
    })
  } catch {
    // The job is rescued like the others, not as a suspect.
  }
}
const stopWatching = watchLoop(memory, worker, mark, (why) => {
  clearInterval(timer)
  clearTimeout(again)
  parentPort.postMessage({ lost: why })
})
parentPort.on('message', () => {
  stopWatching()
  clearInterval(timer)
  clearTimeout(again)
  inSqlite(() => database.close())
  parentPort.close()
})
beat()
parentPort.postMessage({ ready: true })
`

export interface HeartbeatOptions {
  readonly library: SqliteLibrary
  readonly path: string
  readonly worker: string
  readonly everyMs: number
  readonly queries: Queries
  readonly identity: FileIdentity | undefined
  readonly onLost: (why: string) => void
  readonly loop: LoopShare | undefined
}

/** Starts the thread; undefined where that is impossible (a library known only by a handle, no threads). */
export async function startHeartbeat(options: HeartbeatOptions): Promise<Heartbeat | undefined> {
  const { library, path, worker, everyMs, queries, identity, loop } = options
  if (library.module === undefined) return undefined
  const gate = openExitGate()
  const thread = new Worker(PROGRAM, {
    eval: true,
    name: 'millrace-heart',
    workerData: {
      module: library.module,
      path,
      worker,
      everyMs,
      sql: queries.beat,
      markSql: queries.markBlocking,
      memory: loop?.memory,
      gateMemory: gate.memory,
      identity: identity?.parts ?? [],
    },
    // No flags of the app: a loader or an inspector must not run in this thread. And no second copy of the warning that
    // Node 22 prints in each thread that loads its SQLite.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stderr: false,
  })
  thread.once('exit', () => gate.release())
  const began = await new Promise<boolean>((resolve) => {
    thread.once('error', () => resolve(false))
    thread.once('exit', () => resolve(false))
    thread.on('message', (message: { ready?: boolean; lost?: string; gone?: boolean }) => {
      if (message.ready) resolve(true)
      if (message.gone) noteGone(identity)
      if (message.lost !== undefined) options.onLost(message.lost)
    })
  })
  if (!began) return undefined
  thread.unref() // The worker keeps the process alive, not its heartbeat.
  thread.on('error', (error) => options.onLost(`its heartbeat thread stopped: ${error.message}`))
  return { watchesLoop: loop !== undefined, stop: () => stopThread(thread) }
}

/** The thread found the file deleted or replaced. Only the check on this side counts, and it reports the result. */
function noteGone(identity: FileIdentity | undefined): void {
  try {
    identity?.verify()
  } catch {
    // The identity reports it itself, once.
  }
}

function stopThread(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    thread.once('exit', () => resolve())
    thread.ref()
    thread.postMessage('stop')
  })
}
