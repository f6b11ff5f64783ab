import { TransactionError } from '../../../errors.js'
import { isThenable } from '../../../job/definition/schema.js'
import { transactionOf } from './handles.js'
import { callerQueries } from '../queries/caller-transactions.js'
import { isBeforeTables } from '../connection/driver.js'
import type { SqliteDatabase } from '../connection/driver.js'

/**
 * The first statement on our tables: if they are missing, the transaction's snapshot is from before they were created.
 */
export function takeWriteLock(handle: SqliteDatabase): void {
  try {
    handle.exec(callerQueries.takeWriteLock)
  } catch (error) {
    if (!isBeforeTables(error)) throw error
    throw new TransactionError(
      'E_TX_STALE',
      'tx began before the tables of the jobs were created and does not see them; roll back, and try it again',
      { cause: error },
    )
  }
}

/** A promise or an iterator would run after the commit. */
export function refuseLater(value: unknown): void {
  const isPromise = isThenable(value)
  if (isPromise) Promise.resolve(value).catch(() => undefined) // Its outcome is not used.
  else if (typeof (Object(value) as { next?: unknown }).next !== 'function') return
  throw new TransactionError(
    'E_TX_PROMISE',
    isPromise
      ? 'ctx.transaction(): the function returned a promise, and an SQLite transaction is synchronous; await before it, and only write inside'
      : 'ctx.transaction(): the function returned a generator or an iterator, of which nothing more would run; do all of it inside, and return what it gave',
  )
}

/** The function may also have begun another transaction. */
export function checkHeld(handle: SqliteDatabase): void {
  try {
    handle.exec(callerQueries.releaseWork)
  } catch (error) {
    throw new TransactionError('E_TX_NOT_OPEN', 'ctx.transaction(): the function ended the transaction itself', {
      cause: error,
    })
  }
}

export function checkStillOpen(handle: SqliteDatabase, who: string): void {
  if (transactionOf(handle) !== 'open')
    throw new TransactionError('E_TX_NOT_OPEN', `${who} ended the transaction itself`)
}
