import { Worker } from 'node:worker_threads'
import { WATCH_LOOP } from '../../loop-watch.js'
import type { LoopShare } from '../../loop-watch.js'
import type { Heartbeat } from '../../workers.js'
import { MISSED } from './session.js'
import type { Target } from './target.js'

/**
 * The heartbeat, from a thread with its own connection, so that a handler that blocks the event loop is not taken for dead.
 * The same connection listens: each beat also asks whether it still does, so a line that has gone deaf is noticed within a
 * beat. The thread's program is a string, because a file of its own is what bundlers lose.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { module: name, settings, worker, everyMs, sql, markSql, memory, listen, notify, patienceMs, againMs, news } = workerData
const { Client } = require(name)
${WATCH_LOOP}let client, timer, stopped = false, failing = false, beating = false, connects = 0, waitMs = 0
const say = (message) => parentPort.postMessage(message)
const within = (promise, ms) => {
  let late
  const limit = new Promise((_, reject) => { late = setTimeout(() => reject(new Error('no answer')), ms) })
  return Promise.race([promise, limit]).finally(() => clearTimeout(late))
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
  made.on('notification', ({ payload }) => say({ news: payload }))
  client = made
  await within(made.connect(), patienceMs)
  if (listen !== null) {
    // Neither a beat nor news is worth a flush, and who flushes a notification holds up all that follow.
    // And a statement that waits for a lock gives up before we do: else the server would go on waiting for it, and each try add one more.
    // The rest as on the other sessions of ours (queries/session.ts).
    const own = "set jit = off; set default_transaction_isolation = 'read committed'; set statement_timeout = 0; set idle_session_timeout = 0; "
    await within(made.query(own + 'set synchronous_commit = off; set lock_timeout = ' + patienceMs / 2), patienceMs)
    await within(made.query(listen), patienceMs)
  }
  // What was told meanwhile was not heard.
  if ((connects += 1) > 1) say({ news })
}
const ask = (text, values) => within(client === undefined ? Promise.reject(new Error('lost')) : client.query(text, values), patienceMs)
const beat = async () => {
  beating = true
  try {
    if (client === undefined) await connect()
    const { rows } = await ask(sql, [worker])
    if (rows.length === 0) say({ lost: 'it was declared dead' })
    if (listen !== null) {
      const heard = await ask('select 1 from pg_listening_channels()')
      if (heard.rows.length === 0) await ask(listen)
    }
    failing = false
    waitMs = 0
  } catch (error) {
    // Down, or out of reach for now: it is tried again, and the rescuer's patience is one lease.
    if (client !== undefined && !(error && error.code === '55P03')) cut(client)
    if (!failing) say({ failed: String(error && error.message || error) })
    failing = true
    // Rescuers count on a beat soon after one is possible again (see observe-beats.ts): no wait is longer than this.
    waitMs = Math.min(Math.max(againMs, everyMs / 6), waitMs * 2 + againMs)
  }
  beating = false
  beatIn(failing ? Math.max(waitMs, againMs) : everyMs)
}
const beatIn = (ms) => {
  clearTimeout(timer)
  if (!stopped) timer = setTimeout(beat, ms)
}
const tell = async (news) => {
  try {
    if (client !== undefined) await within(client.query({ ...(listen === null ? {} : { name: 'millrace_tell' }), text: notify, values: [news] }), patienceMs)
  } catch {
    // A hint is a hint.
  }
  say({ told: true })
}
const mark = (ref) => ask(markSql, [String(ref), worker]).catch(() => {
  // The job is rescued like the others, not as a suspect.
})
const stopWatching = watchLoop(memory, worker, mark, (why) => {
  stopped = true
  clearTimeout(timer)
  say({ lost: why })
})
parentPort.on('message', async (message) => {
  if (message.tell !== undefined) return tell(message.tell)
  stopWatching()
  stopped = true
  clearTimeout(timer)
  if (client !== undefined) await within(client.end(), againMs * 4).catch(() => {})
  process.exit() // Of this thread only: a line that is dead would keep it.
})
beat().then(() => say({ ready: true }))
`

/** A connection that does not answer for so long is given up. */
const PATIENCE_MS = 5_000
/** After a loss it is tried again so soon, and no more often: an operator may end every connection at once. */
const AGAIN_MS = 250

const BOUNDS = { patienceMs: PATIENCE_MS, againMs: AGAIN_MS }

export interface HeartbeatOptions {
  readonly target: Target
  readonly worker: string
  readonly everyMs: number
  /** The statement that beats. */
  readonly beat: string
  /** The statement that listens; null where nothing would be heard. */
  readonly listen: string | null
  /** The statement that tells. */
  readonly notify: string
  /** The statement that records which job blocks the event loop. */
  readonly markBlocking: string
  readonly loop: LoopShare | undefined
  readonly onLost: (why: string) => void
  readonly heard: (news: string) => void
}

/** A heart that also passes on what is to be told. */
export interface PostgresHeartbeat extends Heartbeat {
  /** Resolves when it was told, or could not be. */
  tell(news: string): Promise<void>
}

/** Starts the thread; undefined where it cannot be had: no threads here, or settings that cannot be handed to one. */
export async function startHeartbeat(options: HeartbeatOptions): Promise<PostgresHeartbeat | undefined> {
  const thread = makeThread(options)
  if (thread === undefined) return undefined
  let told: (() => void) | undefined
  const began = await new Promise<boolean>((resolve) => {
    thread.once('error', () => resolve(false))
    thread.once('exit', () => resolve(false))
    thread.on('message', (message: { ready?: boolean; lost?: string; news?: string; told?: boolean }) => {
      if (message.ready) resolve(true)
      if (message.news !== undefined) options.heard(message.news)
      if (message.lost !== undefined) options.onLost(message.lost)
      if (message.told) told?.()
    })
  })
  if (!began) return undefined
  thread.unref() // What keeps the process alive is the worker, not its heart.
  thread.on('error', (error) => options.onLost(`its heart stopped: ${error.message}`))
  thread.on('exit', () => told?.())
  const tell = (news: string): Promise<void> =>
    new Promise((resolve) => {
      told = resolve
      thread.postMessage({ tell: news })
    })
  let stopping: Promise<void> | undefined
  const watchesLoop = options.loop !== undefined
  return { watchesLoop, tell, stop: () => (stopping ??= stopThread(thread)) }
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
    news: MISSED,
  }
  try {
    // Nothing of the app's own flags: a loader or an inspector there must not run in here.
    return new Worker(PROGRAM, { eval: true, name: 'millrace-heart', workerData, execArgv: [], stderr: false })
  } catch {
    return undefined // A password that is a function, a socket of the user's own: they cannot be handed over.
  }
}

function stopThread(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    if (thread.threadId === -1) return resolve() // It has ended by itself.
    thread.once('exit', () => resolve())
    thread.ref()
    thread.postMessage({ stop: true })
  })
}
