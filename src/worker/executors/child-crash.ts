/** The thread or process of an attempt ended before its handler did. */
export class ChildCrashError extends Error {
  readonly exit: string
  constructor(executor: 'thread' | 'process', exit: string) {
    super(`the ${executor} of the handler ended: ${exit}`)
    this.name = 'ChildCrashError'
    this.exit = exit
  }
}

export function isChildCrash(thrown: unknown): thrown is ChildCrashError {
  try {
    return thrown instanceof ChildCrashError
  } catch {
    return false // A proxy that throws is none.
  }
}

/** Stands for a result that could not be sent to the worker: the job is done without it. */
export class UnsentResult {
  readonly why: string
  constructor(why: string) {
    this.why = why
  }
}
