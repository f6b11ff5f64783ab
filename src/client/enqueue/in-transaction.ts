import { TransactionError } from '../../errors.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Registered } from '../../job/definition/registry.js'
import { ignoreRejection, isThenable } from '../../job/definition/schema.js'
import type { Prepared } from './prepare.js'

/** The caller's transaction that the call belongs to; undefined when there is none. */
export function txOf(options: EnqueueOptions | undefined): unknown {
  return options?.tx
}

/** A call with `tx` is synchronous: an asynchronous check is refused before anything is written. */
export function requireSync(registered: Registered, prepared: Prepared | Promise<Prepared>): Prepared {
  return requireSyncCheck(`job ${JSON.stringify(registered.job.name)}`, prepared)
}

/** The same for any subject: a job, or an event that is sent. */
export function requireSyncCheck<T>(subject: string, checked: T | Promise<T>): T {
  if (!isThenable(checked)) return checked
  void ignoreRejection(checked) // The call is refused either way.
  throw new TransactionError(
    'E_TX_ASYNC_CHECK',
    `${subject}: its check of the payload is asynchronous, and with tx it is checked and written within the call; make the schema ` +
      'or accepts() synchronous, or call without tx',
  )
}

/** Maps the result of an insert. Where the store is synchronous `map` runs at once, so that what it throws is thrown by the call. */
export function thenSync<T, R>(inserted: T | Promise<T>, map: (value: T) => R): Promise<R> {
  return isThenable(inserted) ? Promise.resolve(inserted).then(map) : Promise.resolve(map(inserted))
}
