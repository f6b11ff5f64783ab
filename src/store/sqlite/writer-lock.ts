import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { StoreError } from '../../errors.js'
import { SAFE_VERSION } from './library.js'

/**
 * With an SQLite older than SAFE_VERSION only one process may write a file, so it takes `<file>-writer`. A lock whose process
 * is gone is taken over. This is for old libraries only: new ones share the file and never meet this.
 */
export function lockWriter(path: string, version: string): () => void {
  const lock = `${path}-writer`
  if (!create(lock)) {
    const holder = Number(readFileSync(lock, 'utf8'))
    if (isAlive(holder))
      throw new StoreError(
        'E_OLD_SQLITE',
        `${path}: process ${holder} already writes this file, and SQLite ${version} is too old to share it (a fault fixed in ` +
          `${SAFE_VERSION} can lose commits); use a newer library, or one process`,
      )
    rmSync(lock, { force: true })
    create(lock)
  }
  return () => rmSync(lock, { force: true })
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

/** Signal 0 only asks. Our own id counts as gone: a second mill in this process shares the library and is safe. */
function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}
