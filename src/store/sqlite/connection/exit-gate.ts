/**
 * Keeps the store's threads out of SQLite while the process exits. Node terminates a thread wherever it is; a native addon that
 * returns from SQLite in a terminated thread may abort the process (@photostructure/sqlite does, with code 134).
 *
 * A thread holds its gate around each call of SQLite. On 'exit' the main thread closes all gates and waits for the calls in
 * progress. A thread that finds its gate closed throws. A worker thread that its parent terminates emits no 'exit': close the
 * mill there first.
 */
export interface ExitGate {
  /** Passed to the thread as `gateMemory`. */
  readonly memory: SharedArrayBuffer
  /** Call it when the thread has ended. */
  release(): void
}

/** The thread's part, as text for its program, which has `gateMemory` in scope. Calls must not nest. */
export const IN_SQLITE = `
const gate = new Int32Array(gateMemory)
const inSqlite = (call) => {
  if (Atomics.compareExchange(gate, 0, 0, 1) !== 0) throw new Error('the process exits')
  try {
    return call()
  } finally {
    Atomics.and(gate, 0, ~1)
    Atomics.notify(gate, 0)
  }
}
`

export function openExitGate(): ExitGate {
  const memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const gate = new Int32Array(memory)
  const { gates, close } = gatesOfProcess()
  // One listener for all gates: Node warns of a leak at the eleventh listener. It comes first, because a listener that
  // throws ends the emit.
  if (gates.size === 0) process.prependListener('exit', close)
  gates.add(gate)
  const release = (): void => {
    if (gates.delete(gate) && gates.size === 0) process.off('exit', close)
  }
  return { memory, release }
}

/** The gate's two bits: the thread is in a call, and the process exits. `IN_SQLITE` has the first as a literal. */
const HELD = 1
const CLOSED = 2
/** A thread that ended while it held its gate never releases it: after this time the process exits regardless. */
const CALL_MAX_MS = 10_000

interface Gates {
  readonly gates: Set<Int32Array<SharedArrayBuffer>>
  readonly close: () => void
}

/** The list belongs to the process, so it is on `globalThis`, where a second copy of this package finds it too. */
function gatesOfProcess(): Gates {
  const host = globalThis as { [GATES]?: Gates }
  if (host[GATES] === undefined) {
    const gates: Gates['gates'] = new Set()
    host[GATES] = { gates, close: () => closeAll(gates) }
  }
  return host[GATES]
}
const GATES = Symbol.for('millrace.sqlite.exit-gates')

function closeAll(gates: Gates['gates']): void {
  for (const gate of gates) Atomics.or(gate, 0, CLOSED)
  for (const gate of gates) Atomics.wait(gate, 0, HELD | CLOSED, CALL_MAX_MS)
}
