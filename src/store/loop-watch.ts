/**
 * How the heartbeat thread detects a blocked event loop. The thread beats even while the loop is blocked, so without
 * this a handler that never yields (`while (true) {}`) would keep its worker's jobs for ever.
 *
 * The worker and the thread share a few integers. While attempts are in flight the loop counts a tick every `TICK_MS`
 * and writes how long the attempts have left: their timeout and the grace after it. When the ticks stop for longer than
 * the shortest of these, the thread asks the main thread through the inspector which handler it is in. It waits for
 * that handler's own time; if the inspector does not answer (a native call, a debugger in use), for the longest in
 * flight. Then it writes a line to standard error, records the job, and stops beating: other workers rescue the jobs
 * after a lease.
 */

/** How often the loop counts a tick, and how often the thread reads it. */
export const TICK_MS = 500
/** An attempt without a time limit. Also the largest number of milliseconds that a shared cell holds. */
export const NEVER = 0x7fff_ffff
/**
 * The indexes of the shared integers. The loop writes the tick first and the thread reads it last, so the times that
 * the thread reads never belong to a later tick.
 */
export const LOOP_CELLS = { tick: 0, shortestMs: 1, longestMs: 2, isDebugged: 3 } as const
/** The global symbol under which the loop answers the thread's question: a map from worker to a function. */
export const WHO_BLOCKS = 'millrace.who-blocks'

/** The loop's answer while the inspector has paused it in a handler. */
export interface Blocking {
  readonly ref: number
  readonly id: string
  readonly name: string
  /** Time until its timeout and grace end; null when it has none. */
  readonly leftMs: number | null
  /** A shorter block is ignored. */
  readonly graceMs: number
  readonly stack: string
}

/** Passed to `startHeartbeat`. */
export interface LoopShare {
  readonly memory: SharedArrayBuffer
}

/**
 * The thread's part, as text for the heartbeat programs of both stores. `watchLoop` calls `mark(ref)` with the blocking
 * job, if it is known, then `found(why)`, once.
 */
export const WATCH_LOOP = `
const watchLoop = (memory, worker, mark, found) => {
  if (memory === undefined) return () => {}
  const { Session } = require('node:inspector')
  const { writeSync } = require('node:fs')
  const cells = new Int32Array(memory)
  const read = (cell) => Atomics.load(cells, cell)
  let seen = -1, since = 0, lookedAt = 0, waitMs = 0, againMs = 1000, asking = false
  const expression = '(() => { const who = globalThis[Symbol.for("${WHO_BLOCKS}")]?.get(' + JSON.stringify(worker) +
    ')?.(new Error().stack); return who === undefined ? "" : JSON.stringify(who) })()'
  const ask = () => new Promise((resolve) => {
    const session = new Session()
    const end = (who) => {
      clearTimeout(late)
      try { session.disconnect() } catch {}
      resolve(who)
    }
    const late = setTimeout(() => end(undefined), 500)
    try {
      session.connectToMainThread()
      session.on('Debugger.paused', ({ params }) => session.post(
        'Debugger.evaluateOnCallFrame',
        { callFrameId: params.callFrames[0].callFrameId, expression, returnByValue: true },
        (error, answer) => {
          try { end(error ? undefined : JSON.parse(answer.result.value)) } catch { end(undefined) }
        },
      ))
      session.post('Debugger.enable')
      session.post('Debugger.pause')
    } catch { end(undefined) }
  })
  const look = async () => {
    const shortest = read(${LOOP_CELLS.shortestMs}), longest = read(${LOOP_CELLS.longestMs}), tick = read(${LOOP_CELLS.tick})
    const now = performance.now()
    // If this thread did not run either, the whole process was suspended: that is not a block.
    if (tick !== seen || now - lookedAt > ${4 * TICK_MS}) { seen = tick; since = now; waitMs = 0; againMs = 1000 }
    lookedAt = now
    const blockedMs = now - since
    if (shortest === ${NEVER} || asking || blockedMs <= Math.max(shortest, waitMs)) return
    asking = true
    // A person may be at a breakpoint, and a second inspector session would resume it.
    const who = read(${LOOP_CELLS.isDebugged}) === 1 ? undefined : await ask()
    asking = false
    lookedAt = performance.now()
    if (read(${LOOP_CELLS.tick}) !== seen) return
    const leftMs = who === undefined ? (longest === ${NEVER} ? Infinity : longest - blockedMs) : Math.max(who.leftMs ?? Infinity, who.graceMs - blockedMs)
    if (leftMs > 0) {
      // No answer, perhaps because the machine is busy: ask again, with a growing delay.
      if (who === undefined) againMs = Math.min(60000, againMs * 2)
      waitMs = blockedMs + (who === undefined ? Math.min(leftMs, againMs) : leftMs)
      return
    }
    clearInterval(timer)
    const by = who === undefined ? 'a call that gives no stack' : 'job ' + who.name + ' ' + who.id
    const why = 'its event loop was blocked for ' + Math.round(blockedMs / 1000) + ' s by ' + by
    const visible = (text) => text.replace(/[\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f]/g, '?')
    const stack = who === undefined ? '' : '\\n' + visible(who.stack)
    try {
      writeSync(2, new Date().toISOString().slice(11, 23) + ' error worker ' + worker + ': ' + visible(why).replaceAll('\\n', ' ') +
        ', longer than timeout and grace allow; it stops its heartbeat, so that other workers run its jobs' + stack + '\\n')
    } catch {}
    if (who !== undefined) await mark(who.ref)
    found(why)
  }
  const timer = setInterval(look, ${TICK_MS})
  return () => clearInterval(timer)
}
`
