import { MillraceError, StoreError, StoreFullError } from '../../errors.js'
import { SQLITE, sqliteCode } from './driver.js'

/** Turns a driver's error into ours, in words a person can act on. Our own pass through. */
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

/** An error of the file system, outside SQLite. */
export function translateSystem(error: unknown, name: string): unknown {
  const { code } = Object(error) as { code?: unknown }
  if (error instanceof MillraceError || typeof code !== 'string') return error
  return fault('E_STORE_IO', `${name}: ${text(error)}`, error)
}

/** Only a database in memory is used through the user's own handle, so only that can be closed under us. */
export function handleClosed(name: string, cause: unknown): unknown {
  if (cause instanceof MillraceError) return cause
  return fault(
    'E_STORE_CLOSED',
    `${name}: the handle that the mill was made with was closed, and its jobs went with it; close the mill before the handle`,
    cause,
  )
}

function fault(code: string, message: string, cause: unknown): StoreError {
  return new StoreError(code, message, { cause })
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
