/** The thread or process of an attempt ended before its handler did. */
export class ChildCrashError extends Error {
  readonly exit: string
  constructor(executor: 'thread' | 'process', exit: string) {
    super(`the ${executor} of the handler ended: ${exit}`)
    this.name = 'ChildCrashError'
    this.exit = exit
  }
}

/** Stands for a result that could not be sent to the worker: the job is done without it. */
export class UnsentResult {
  readonly why: string
  constructor(why: string) {
    this.why = why
  }
}

/** Handlers throw and return anything, also a proxy whose prototype cannot be read: that is neither of these. */
export function isA<T>(made: new (...args: never[]) => T, value: unknown): value is T {
  try {
    return value instanceof made
  } catch {
    return false
  }
}
