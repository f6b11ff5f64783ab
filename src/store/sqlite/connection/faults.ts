import { MillraceError, StoreError, StoreFullError } from '../../../errors.js'
import { SQLITE, sqliteCode } from './driver.js'

/** Turns a driver's error into a store error with advice. Errors of Millrace pass through. */
export function translate(error: unknown, name: string): unknown {
  if (error instanceof MillraceError) return error
  const code = sqliteCode(error)
  switch (code) {
    case undefined:
      return error
    case SQLITE.full:
      return new StoreFullError(name, error)
    case SQLITE.busy:
    case SQLITE.locked:
      return fault(
        'E_STORE_BUSY',
        `${name}: another process has kept the file locked for a minute; nothing was written`,
        error,
      )
    case SQLITE.notADatabase:
      return fault(
        'E_NOT_A_DATABASE',
        `${name} is not an SQLite database; it was left untouched. Choose another path`,
        error,
      )
    case SQLITE.cannotOpen:
      return fault(
        'E_CANNOT_OPEN',
        `${name} cannot be opened: ${text(error)}. Does its folder exist, and may this user write there?`,
        error,
      )
    case SQLITE.readOnly:
      return fault(
        'E_READ_ONLY',
        `${name} cannot be written: ${text(error)}. Millrace needs to write to its file and its folder`,
        error,
      )
    case SQLITE.corrupt:
      return fault(
        'E_STORE_CORRUPT',
        `${name} is damaged: ${text(error)}. Stop, copy the file, and run "pragma integrity_check" on it`,
        error,
      )
    case SQLITE.ioError:
      return fault('E_STORE_IO', `${name}: the disk failed: ${text(error)}. It was rolled back`, error)
    default:
      return fault('E_STORE', `${name}: ${text(error)}`, error)
  }
}

/** An error while the store is being opened: there is no mill yet whose work could resume. */
export function translateOpening(fault: unknown, name: string): unknown {
  return fault instanceof StoreFullError ? new StoreFullError(name, fault.cause, true) : fault
}

/** An error of the file system, outside SQLite. */
export function translateSystem(error: unknown, name: string): unknown {
  const { code } = Object(error) as { code?: unknown }
  if (error instanceof MillraceError || typeof code !== 'string' || !/^E[A-Z0-9]+$/.test(code)) return error
  if (code === 'ENOSPC' || code === 'EDQUOT') return new StoreFullError(name, error)
  const known = SYSTEM[code]
  if (known === undefined) return fault('E_STORE_IO', `${name}: the file system failed: ${text(error)}`, error)
  return fault(known.code, `${shortened(name)} ${known.what} (${code}); ${known.advice}`, error)
}

/** What each system error means for the path, and what to do about it. */
const SYSTEM: { readonly [code: string]: { readonly code: string; readonly what: string; readonly advice: string } } = {
  EACCES: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be reached: this user may not enter a folder on the way to it',
    advice: 'change the permissions of its folders, or choose another path',
  },
  EPERM: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be used: the system does not allow it',
    advice: 'change owner or permissions of the file and its folder, or choose another path',
  },
  EROFS: {
    code: 'E_READ_ONLY',
    what: 'cannot be written: its file system is mounted read-only',
    advice: 'mount it for writing, or choose another path',
  },
  ELOOP: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be opened: its symbolic links lead in a circle',
    advice: 'correct the links, or give the path of the file itself',
  },
  ENAMETOOLONG: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be opened: the path or a name in it is too long',
    advice: 'use a path of up to 500 bytes and a file name of up to 240: SQLite adds endings such as -wal',
  },
  ENOTDIR: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be opened: what should be a folder on the way to it is a file',
    advice: 'correct the path',
  },
  EISDIR: { code: 'E_CANNOT_OPEN', what: 'is a folder', advice: 'the store is a file: add a file name' },
  ENOENT: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be opened: it, or its folder, does not exist',
    advice: 'make the folder, or correct the path',
  },
  EMFILE: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be opened: this process has too many files open',
    advice: 'raise its limit (ulimit -n), or look for files that are never closed',
  },
  ENFILE: {
    code: 'E_CANNOT_OPEN',
    what: 'cannot be opened: the system has too many files open',
    advice: 'raise its limit, or end the process that opens them',
  },
}

/** A longer path is shown by its two ends. */
const PATH_SHOWN_MAX = 300
const PATH_END_SHOWN = 140

function shortened(name: string): string {
  return name.length <= PATH_SHOWN_MAX ? name : `${name.slice(0, PATH_END_SHOWN)}…${name.slice(-PATH_END_SHOWN)}`
}

/** The store uses the user's own handle only for a database in memory, so only that can be closed during use. */
export function handleClosed(name: string, cause: unknown): unknown {
  if (cause instanceof MillraceError) return cause
  return fault(
    'E_STORE_CLOSED',
    `${name}: the handle that the mill was made with was closed, and its jobs are lost; close the mill before the handle`,
    cause,
  )
}

function fault(code: string, message: string, cause: unknown): StoreError {
  return new StoreError(code, message, { cause })
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
