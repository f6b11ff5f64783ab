import { statSync } from 'node:fs'
import { StoreError } from '../../../errors.js'
import type { SqliteConstructor } from './driver.js'

/**
 * One SQLite library per file per process. POSIX locks belong to the process: when two libraries hold one file, the
 * first to close it drops the locks of both, and acknowledged commits are lost (measured). The list belongs to the
 * process, so it is on `globalThis`, where a second copy of this package finds it too.
 */
const OPEN_FILES = Symbol.for('millrace.sqlite.open-files')

interface OpenFile {
  readonly library: SqliteConstructor
  users: number
}

/** Records that this library holds the file; returns the function that releases it. Call it after the file exists. */
export function holdFile(path: string, library: SqliteConstructor): () => void {
  const files = openFiles()
  const file = identify(path)
  const known = files.get(file)
  if (known !== undefined && known.library !== library)
    throw new StoreError(
      'E_TWO_LIBRARIES',
      `${path}: another SQLite library in this process (${known.library.name}) already has this file open, and two libraries ` +
        'lose each other’s locks; pass that library’s handle: millrace({ store: sqlite(db) })',
    )
  const held = known ?? { library, users: 0 }
  held.users += 1
  files.set(file, held)
  let released = false
  return () => {
    if (released) return
    released = true
    held.users -= 1
    if (held.users === 0) files.delete(file)
  }
}

/**
 * Identifies the file, not its name: a link or a second spelling is the same file. Stat only; opening it would drop
 * locks.
 */
export function identify(path: string): string {
  const { dev, ino } = statSync(path)
  return `${dev}:${ino}`
}

function openFiles(): Map<string, OpenFile> {
  const host = globalThis as { [OPEN_FILES]?: Map<string, OpenFile> }
  host[OPEN_FILES] ??= new Map()
  return host[OPEN_FILES]
}
