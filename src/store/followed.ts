import { OutcomeUnknownError } from '../errors.js'

/**
 * Continues with the answer of a write. If the outcome of the write is unknown, the continuation belongs to `retry()`: it runs
 * once the answer is known, so that `retry()` gives what the whole call would have given.
 */
export async function followed<T, R>(asked: Promise<T>, next: (answer: T) => R | Promise<R>): Promise<R> {
  let answer: T
  try {
    answer = await asked
  } catch (error) {
    throw continued(error, next)
  }
  return next(answer)
}

/** The same for an error that a write threw: with this continuation, if the outcome is unknown. */
export function continued<T, R>(error: unknown, next: (answer: T) => R | Promise<R>): unknown {
  if (!(error instanceof OutcomeUnknownError)) return error
  const { message, ids, cause } = error
  return new OutcomeUnknownError(message, ids, () => followed(error.retry<T>(), next), { cause })
}

/** The answers of several writes, like `Promise.all`. One error stands for all whose outcome is unknown. */
export async function allKnown<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  try {
    return await Promise.all(asked)
  } catch (error) {
    if (!(error instanceof OutcomeUnknownError)) throw error
  }
  const settled = await Promise.allSettled(asked)
  const reasons = settled.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []))
  const unknown = reasons.filter((reason) => reason instanceof OutcomeUnknownError)
  if (unknown.length < reasons.length) throw reasons.find((reason) => !(reason instanceof OutcomeUnknownError))
  const [first] = unknown as [OutcomeUnknownError]
  const ids = [...new Set(unknown.flatMap((one) => one.ids))]
  const retry = (): Promise<T[]> =>
    allKnown(
      settled.map((one) =>
        one.status === 'fulfilled' ? Promise.resolve(one.value) : (one.reason as OutcomeUnknownError).retry<T>(),
      ),
    )
  throw new OutcomeUnknownError(first.message, ids, retry, { cause: first.cause })
}
