import { OutcomeUnknownError } from '../errors.js'

/**
 * Runs `next` on the result of a write. If the outcome of the write is unknown, the error's `retry()` runs `next` once
 * the result is known, so `retry()` returns what the whole call would have returned.
 */
export async function thenOrRetry<T, R>(call: Promise<T>, next: (answer: T) => R | Promise<R>): Promise<R> {
  let answer: T
  try {
    answer = await call
  } catch (error) {
    throw withContinuation(error, next)
  }
  return next(answer)
}

/** Attaches the continuation to an error of a write, if the error says that the outcome is unknown. */
export function withContinuation<T, R>(error: unknown, next: (answer: T) => R | Promise<R>): unknown {
  if (!(error instanceof OutcomeUnknownError)) return error
  const { message, ids, cause } = error
  return new OutcomeUnknownError(message, ids, () => thenOrRetry(error.retry<T>(), next), { cause })
}

/** The results of several writes, like `Promise.all`. All unknown outcomes are combined in one error. */
export async function allOrUnknown<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  try {
    return await Promise.all(calls)
  } catch (error) {
    if (!(error instanceof OutcomeUnknownError)) throw error
  }
  const settled = await Promise.allSettled(calls)
  const reasons = settled.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []))
  const unknown = reasons.filter((reason) => reason instanceof OutcomeUnknownError)
  if (unknown.length < reasons.length) throw reasons.find((reason) => !(reason instanceof OutcomeUnknownError))
  const [first] = unknown as [OutcomeUnknownError]
  const ids = [...new Set(unknown.flatMap((one) => one.ids))]
  const retry = (): Promise<T[]> =>
    allOrUnknown(
      settled.map((one) =>
        one.status === 'fulfilled' ? Promise.resolve(one.value) : (one.reason as OutcomeUnknownError).retry<T>(),
      ),
    )
  throw new OutcomeUnknownError(first.message, ids, retry, { cause: first.cause })
}
