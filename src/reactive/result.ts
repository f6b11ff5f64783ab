/** The outcome of a computation: its value, or the error it threw. */
export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown }

export const success = <T>(value: T): Result<T> => ({ ok: true, value })

export const failure = (error: unknown): Result<never> => ({ ok: false, error })

/** Returns the value, or throws the error. */
export function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw result.error
  return result.value
}
