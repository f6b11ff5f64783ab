import { ClosedError, MillraceError, StoreError } from '../../errors.js'
import type { Log } from '../../world/log.js'
import type { ErrorCode } from '../protocol/calls.js'
import { SlowStore } from './live/live-topic.js'

/** What a user is shown of an error: a sentence. Its stack and the address of the store are in the log only. */
export function errorText(log: Log, what: string, error: unknown): { readonly text: string; readonly code: ErrorCode } {
  log.write('warn', { err: error }, `dashboard: could not ${what}`)
  if (error instanceof SlowStore) return { text: error.message, code: 'store' }
  if (error instanceof StoreError || error instanceof ClosedError)
    return { text: 'The store cannot be read now.', code: 'store' }
  if (error instanceof MillraceError) return { text: error.message, code: 'bad-request' }
  return { text: 'The server failed.', code: 'failed' }
}
