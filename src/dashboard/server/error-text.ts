import { ClosedError, MillraceError, StoreError } from '../../errors.js'
import type { Log } from '../../world/log.js'
import type { ErrorCode } from '../protocol/calls.js'
import { SlowStore } from './live/in-time.js'

/** Faults of the store that a user can tell the operator of. */
const FAULTS: Readonly<Record<string, string>> = {
  E_STORE_GONE: 'The store is gone: its file or its tables were deleted, moved or replaced.',
  E_STORE_UNREACHABLE: 'The database does not answer, or ended the connection.',
  E_STORE_LOCKED: 'The store is locked by another transaction.',
  E_STORE_CORRUPT: 'The file of the store is damaged.',
  E_STORE_FULL: 'The disk of the store is full.',
  E_CLOSED: 'The app has closed its mill.',
}

/** What a user is shown of an error: a sentence. Its stack and the address of the store are in the log only. */
export function errorText(log: Log, what: string, error: unknown): { readonly text: string; readonly code: ErrorCode } {
  log.write('warn', { err: error }, `dashboard: could not ${what}`)
  if (error instanceof SlowStore) return { text: error.message, code: 'store' }
  if (error instanceof StoreError || error instanceof ClosedError)
    return { text: FAULTS[error.code] ?? 'The store cannot be read now.', code: 'store' }
  if (error instanceof MillraceError) return { text: error.message, code: 'bad-request' }
  return { text: 'The server failed.', code: 'failed' }
}
