import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { StoreError } from '../../../errors.js'
import { NEWER_SQLITE, SAFE_VERSION } from './library.js'

/**
 * With a SQLite older than SAFE_VERSION only one process may write a file, so the process takes `<file>-writer`. A lock
 * whose process has exited is taken over. Newer libraries share the file and take no such lock.
 */
export function lockWriter(path: string, version: string): () => void {
  const lock = `${path}-writer`
  const locks = heldHere()
  const users = locks.get(lock) ?? 0
  if (users === 0) take(lock, path, version)
  locks.set(lock, users + 1)
  let released = false
  return () => {
    if (released) return
    released = true
    const left = (locks.get(lock) ?? 1) - 1
    locks.set(lock, left)
    if (left > 0) return
    locks.delete(lock)
    rmSync(lock, { force: true })
  }
}

/**
 * Mills of one process share its lock: they use one library, which is safe. The map belongs to the process, so it is on
 * `globalThis`.
 */
function heldHere(): Map<string, number> {
  const host = globalThis as { [HELD]?: Map<string, number> }
  host[HELD] ??= new Map()
  return host[HELD]
}
const HELD = Symbol.for('millrace.sqlite.writer-locks')

function take(lock: string, path: string, version: string): void {
  if (!create(lock)) {
    const holder = Number(readFileSync(lock, 'utf8'))
    if (isAlive(holder))
      throw new StoreError(
        'E_OLD_SQLITE',
        `${path}: process ${holder} already writes this file, and SQLite ${version} is too old to share it (a fault fixed in ` +
          `${SAFE_VERSION} can lose commits); ${NEWER_SQLITE}, or use one process`,
      )
    rmSync(lock, { force: true })
    create(lock)
  }
}

function create(lock: string): boolean {
  try {
    const file = openSync(lock, 'wx', 0o600)
    writeSync(file, String(process.pid))
    closeSync(file)
    return true
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') return false
    throw error
  }
}

/**
 * Signal 0 only tests the process. Our own id was left by an earlier process that had it: no live process holds the
 * lock.
 */
function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}
