import { Worker } from 'node:worker_threads'
import { WATCH_LOOP } from '../../loop-watch.js'
import type { LoopShare } from '../../loop-watch.js'
import type { Heartbeat } from '../../workers.js'
import { HINTS_MISSED } from './session.js'
import type { Target } from './target.js'

/**
 * The heartbeat runs in a thread with its own connection, so that a worker whose handler blocks the event loop is not
 * considered dead. The same connection listens; each beat also checks that it still does, so a connection that delivers
 * no notifications is detected within one beat. The thread's program is a string, because bundlers leave out a file of
 * its own.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { module: name, settings, worker, everyMs, sql, markSql, memory, listen, notify, patienceMs, againMs, missed } = workerData
const { Client } = require(name)
${WATCH_LOOP}let client, timer, stopped = false, failing = false, beating = false, connects = 0, waitMs = 0
const post = (message) => parentPort.postMessage(message)
const within = (promise, ms) => {
  let timer
  const limit = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no answer')), ms) })
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer))
}
const cut = (old) => {
  if (client === old) client = undefined
  old.end().catch(() => {})
  old.connection.stream.destroy()
}
const connect = async () => {
  const made = new Client(settings)
  const lost = () => {
    if (client !== made) return
    cut(made)
    if (!beating) beatIn(againMs)
  }
  made.on('error', lost)
  made.on('end', lost)
  made.on('notification', ({ payload }) => post({ payload }))
  client = made
  await within(made.connect(), patienceMs)
  if (listen !== null) {
    // Neither a beat nor a hint is worth a flush, and the flush of a notification delays all notifications that follow.
    // A statement that waits for a lock times out on the server before it does here: otherwise the server would keep
    // waiting, and each retry would add one more waiting statement.
    // The other settings are those of the other sessions (queries/session.ts).
    const own = "set jit = off; set default_transaction_isolation = 'read committed'; set statement_timeout = 0; set idle_session_timeout = 0; "
    await within(made.query(own + 'set synchronous_commit = off; set lock_timeout = ' + patienceMs / 2), patienceMs)
    await within(made.query(listen), patienceMs)
  }
  // Notifications that were sent in between were missed.
  if ((connects += 1) > 1) post({ payload: missed })
}
const ask = (text, values) => within(client === undefined ? Promise.reject(new Error('lost')) : client.query(text, values), patienceMs)
const beat = async () => {
  beating = true
  try {
    if (client === undefined) await connect()
    const { rows } = await ask(sql, [worker])
    if (rows.length === 0) post({ lost: 'it was declared dead' })
    if (listen !== null) {
      const channels = await ask('select 1 from pg_listening_channels()')
      if (channels.rows.length === 0) await ask(listen)
    }
    failing = false
    waitMs = 0
  } catch (error) {
    // The server is down or unreachable: the beat is retried. Other workers wait one lease before they rescue this
    // one's jobs.
    if (client !== undefined && !(error && error.code === '55P03')) cut(client)
    if (!failing) post({ failed: String(error && error.message || error) })
    failing = true
    // A rescuer expects a beat soon after one is possible again (see observe-beats.ts), which bounds this delay.
    waitMs = Math.min(Math.max(againMs, everyMs / 6), waitMs * 2 + againMs)
  }
  beating = false
  beatIn(failing ? Math.max(waitMs, againMs) : everyMs)
}
const beatIn = (ms) => {
  clearTimeout(timer)
  if (!stopped) timer = setTimeout(beat, ms)
}
const send = async (payload) => {
  try {
    if (client !== undefined) await within(client.query({ ...(listen === null ? {} : { name: 'millrace_notify' }), text: notify, values: [payload] }), patienceMs)
  } catch {
    // A hint may be lost: the poll finds the work.
  }
  post({ sent: true })
}
const mark = (ref) => ask(markSql, [String(ref), worker]).catch(() => {
  // The job is rescued like the others, not as the one that blocked.
})
const stopWatching = watchLoop(memory, worker, mark, (why) => {
  stopped = true
  clearTimeout(timer)
  post({ lost: why })
})
parentPort.on('message', async (message) => {
  if (message.notify !== undefined) return send(message.notify)
  stopWatching()
  stopped = true
  clearTimeout(timer)
  if (client !== undefined) await within(client.end(), againMs * 4).catch(() => {})
  process.exit() // Ends this thread only: a dead connection would keep it alive.
})
beat().then(() => post({ ready: true }))
`

/** A connection that does not answer for this long is closed. */
const PATIENCE_MS = 5_000
/**
 * Delay before a lost connection is made again, and the least time between two attempts: an operator may end every
 * connection at once.
 */
const AGAIN_MS = 250

const BOUNDS = { patienceMs: PATIENCE_MS, againMs: AGAIN_MS }

export interface HeartbeatOptions {
  readonly target: Target
  readonly worker: string
  readonly everyMs: number
  /** The statement that records a beat. */
  readonly beat: string
  /** The statement that listens; null where notifications cannot be delivered. */
  readonly listen: string | null
  /** The statement that sends a notification. */
  readonly notify: string
  /** The statement that records which job blocks the event loop. */
  readonly markBlocking: string
  readonly loop: LoopShare | undefined
  readonly onLost: (why: string) => void
  readonly onPayload: (payload: string) => void
}

/** A heartbeat that also sends notifications. */
export interface PostgresHeartbeat extends Heartbeat {
  /** Resolves when the notification was sent or has failed. */
  notify(payload: string): Promise<void>
}

/** Starts the thread. Undefined where that is impossible: no threads here, or settings that cannot be cloned. */
export async function startHeartbeat(options: HeartbeatOptions): Promise<PostgresHeartbeat | undefined> {
  const thread = makeThread(options)
  if (thread === undefined) return undefined
  let sent: (() => void) | undefined
  const began = await new Promise<boolean>((resolve) => {
    thread.once('error', () => resolve(false))
    thread.once('exit', () => resolve(false))
    thread.on('message', (message: { ready?: boolean; lost?: string; payload?: string; sent?: boolean }) => {
      if (message.ready) resolve(true)
      if (message.payload !== undefined) options.onPayload(message.payload)
      if (message.lost !== undefined) options.onLost(message.lost)
      if (message.sent) sent?.()
    })
  })
  if (!began) return undefined
  thread.unref() // The worker keeps the process alive, not its heartbeat.
  thread.on('error', (error) => options.onLost(`its heartbeat stopped: ${error.message}`))
  thread.on('exit', () => sent?.())
  const notify = (payload: string): Promise<void> =>
    new Promise((resolve) => {
      sent = resolve
      thread.postMessage({ notify: payload })
    })
  let stopping: Promise<void> | undefined
  const watchesLoop = options.loop !== undefined
  return { watchesLoop, notify, stop: () => (stopping ??= stopThread(thread)) }
}

function makeThread({
  target,
  worker,
  everyMs,
  beat,
  listen,
  notify,
  markBlocking,
  loop,
}: HeartbeatOptions): Worker | undefined {
  const { module, settings } = target
  if (module === undefined) return undefined
  const watched = { markSql: markBlocking, memory: loop?.memory }
  const workerData = {
    module,
    settings,
    worker,
    everyMs,
    sql: beat,
    listen,
    notify,
    ...watched,
    ...BOUNDS,
    missed: HINTS_MISSED,
  }
  try {
    // Without the app's own flags: a loader or an inspector of theirs must not run in this thread.
    return new Worker(PROGRAM, { eval: true, name: 'millrace-heart', workerData, execArgv: [], stderr: false })
  } catch {
    return undefined // A password that is a function, a socket of the user's own: they cannot be cloned.
  }
}

function stopThread(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    if (thread.threadId === -1) return resolve() // The thread has ended by itself.
    thread.once('exit', () => resolve())
    thread.ref()
    thread.postMessage({ stop: true })
  })
}
