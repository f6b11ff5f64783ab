import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const WORKER_EVERY_MS = 7 * 60_000
const SILENT_MS = 40_000
const SNAPSHOT_MS = 14 * 60_000

/**
 * What goes wrong in the shop by itself: every seven minutes a worker sends no heartbeat for 40 s, and another process holds a snapshot of
 * the store for 14 minutes (on SQLite the WAL grows, on PostgreSQL vacuum cannot clean).
 */
export async function startFaults({ store, worker, signal, tell }) {
  const pause = (ms) => sleep(ms, undefined, { signal }).catch(() => {}) // Ctrl-C ends it
  await Promise.all([silence(), holdSnapshots()])

  async function silence() {
    if (process.platform === 'win32') return
    while (!signal.aborted) {
      await pause(WORKER_EVERY_MS)
      if (signal.aborted || !isAlive(worker.pid)) return
      process.kill(worker.pid, 'SIGSTOP')
      tell(`process ${worker.pid} sends no heartbeat for ${SILENT_MS / 1000} s`)
      await pause(SILENT_MS)
      process.kill(worker.pid, 'SIGCONT')
    }
  }

  async function holdSnapshots() {
    while (!signal.aborted) {
      await pause(60_000)
      if (signal.aborted) return
      const holder = fork(fileURLToPath(new URL('snapshot.js', import.meta.url)), [store], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      tell(`process ${holder.pid} holds a snapshot of the store`)
      await pause(SNAPSHOT_MS)
      if (holder.connected) holder.disconnect()
    }
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false // it has ended
  }
}
