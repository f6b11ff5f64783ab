import { TransactionError } from '../../errors.js'
import type { EnqueueOptions } from '../../job/enqueue.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable } from '../../job/definition/schema.js'
import type { Prepared } from './prepare.js'

/** The transaction that a call is to be part of, if it is. */
export function txOf(options: EnqueueOptions | undefined): unknown {
  return options?.tx
}

/** Within a transaction there is no waiting: a check that needs to is refused, before anything is written. */
export function requireSync(registered: Registered, made: Prepared | Promise<Prepared>): Prepared {
  if (!isThenable(made)) return made
  made.catch(() => undefined) // Its answer comes too late to be of use.
  throw new TransactionError(
    'E_TX_ASYNC_CHECK',
    `job ${JSON.stringify(registered.job.name)}: its check of the payload is asynchronous, and with tx a job is checked and written within ` +
      'the call; make the schema or accepts() synchronous, or enqueue without tx',
  )
}

/** What follows the write: at once where the store is synchronous, so that a throw is one within the call. */
export function thenSync<T, R>(written: T | Promise<T>, toAnswer: (value: T) => R): Promise<R> {
  return isThenable(written) ? Promise.resolve(written).then(toAnswer) : Promise.resolve(toAnswer(written))
}
