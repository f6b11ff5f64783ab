import { Worker } from 'node:worker_threads'
import type { Reached } from './checkpoints.js'
import { IN_SQLITE, openExitGate } from '../connection/exit-gate.js'
import { IS_GONE } from './file-identity.js'
import type { FileIdentity } from './file-identity.js'
import type { SqliteLibrary } from '../connection/library.js'

/**
 * Checkpoints on a thread with its own connection: copying a long WAL takes seconds, and neither the event loop nor the
 * connection that claims may wait for it. The thread starts when it is first needed. Its program is a string, as in
 * heartbeat.ts.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { statSync } = require('node:fs')
const { module: name, path, identity, gateMemory } = workerData
${IN_SQLITE}${IS_GONE}
const database = inSqlite(() => {
  const { DatabaseSync } = name === 'node:sqlite' ? process.getBuiltinModule(name) : require(name)
  if (isGone()) throw new Error('the file is gone')
  const database = new DatabaseSync(path)
  database.exec('pragma synchronous = full; pragma wal_autocheckpoint = 0; pragma journal_size_limit = 67108864')
  return database
})
parentPort.on('message', (request) => {
  if (request === 'stop') {
    inSqlite(() => database.close())
    return parentPort.close()
  }
  let reached
  try {
    if (isGone()) throw new Error('the file is gone')
    const row = inSqlite(() => {
      database.exec('pragma busy_timeout = ' + request.waitMs)
      return database.prepare(request.sql).get()
    })
    if (row.log >= 0 && (request.mayStopShort || row.busy === 0)) reached = { log: row.log, checkpointed: row.checkpointed }
  } catch {
    // Busy, full or deleted: the next checkpoint tries again.
  }
  parentPort.postMessage({ reached })
})
`

export interface CheckpointThreadParts {
  readonly library: SqliteLibrary
  readonly path: string
  readonly identity: FileIdentity
  /** The statements: one that does not wait, and one that waits for readers and then truncates. */
  readonly passive: string
  readonly truncate: string
}

/** Writers are blocked for up to this long while the last readers of the WAL end. */
const TRUNCATE_WAIT_MS = 100

/** One checkpoint at a time; the next is requested when the last has returned. */
export class CheckpointThread {
  readonly #parts: CheckpointThreadParts
  #thread: Worker | undefined

  constructor(parts: CheckpointThreadParts) {
    this.#parts = parts
  }

  /** Undefined: the checkpoint was not possible now. */
  checkpoint(kind: 'passive' | 'truncate'): Promise<Reached | undefined> {
    const { passive, truncate } = this.#parts
    const isPassive = kind === 'passive'
    const request = {
      sql: isPassive ? passive : truncate,
      waitMs: isPassive ? 0 : TRUNCATE_WAIT_MS,
      mayStopShort: isPassive,
    }
    const thread = (this.#thread ??= this.#start())
    return new Promise((resolve) => {
      const ended = (): void => resolve(undefined)
      thread.once('exit', ended)
      thread.once('message', ({ reached }: { reached?: Reached }) => {
        thread.off('exit', ended)
        resolve(reached)
      })
      thread.postMessage(request)
    })
  }

  async close(): Promise<void> {
    const thread = this.#thread
    if (thread === undefined) return
    this.#thread = undefined
    await new Promise<void>((resolve) => {
      thread.once('exit', () => resolve())
      thread.ref()
      thread.postMessage('stop')
    })
  }

  #start(): Worker {
    const { library, path, identity } = this.#parts
    const gate = openExitGate()
    const thread = new Worker(PROGRAM, {
      eval: true,
      name: 'millrace-checkpoints',
      workerData: { module: library.module, path, identity: identity.parts, gateMemory: gate.memory },
      // As in heartbeat.ts.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stderr: false,
    })
    thread.unref()
    thread.once('exit', () => {
      gate.release()
      if (this.#thread === thread) this.#thread = undefined
    })
    // The thread ends after an error, and the next checkpoint starts another; its exit resolves pending calls.
    thread.on('error', () => undefined)
    return thread
  }
}
