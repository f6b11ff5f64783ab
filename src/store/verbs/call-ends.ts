import type { Encoded } from '../../job/rules/outcome.js'
import type { LinkTodoKind } from '../../job/rules/links.js'
import type { State } from '../../job/rules/states.js'
import { isFinal } from '../../job/rules/states.js'
import type { CallFailure } from '../workflows.js'

/** How a called job ended, as it is written into the inbox of the workflow that called it. */
export interface CallEnd {
  readonly result: Encoded | null
  /** JSON of `CallFailure`; null: the job is done. */
  readonly error: string | null
}

/** The end of a job, or what the history has of it. */
export interface EndedJob {
  readonly to: State
  readonly result?: Encoded | null | undefined
  readonly error?: string | null | undefined
  readonly reason?: string | null | undefined
}

export function callEndOf({ to, result = null, error, reason }: EndedJob): CallEnd {
  if (to === 'failed') return failure('failed', error)
  if (to === 'cancelled') return failure('cancelled', reason)
  // A done job without a result has a reason when its result is not kept.
  if (result === null && reason !== null && reason !== undefined) return failure('result-not-kept', reason)
  return { result, error: null }
}

/** The end of a job whose row is deleted and whose to-do does not say how it ended. */
export function goneEnd(what: LinkTodoKind): CallEnd {
  return what === 'done' ? failure('result-not-kept', 'the job is deleted') : failure('gone')
}

function failure(kind: CallFailure['kind'], error?: string | null): CallEnd {
  const written: CallFailure = error === null || error === undefined ? { kind } : { kind, error }
  return { result: null, error: JSON.stringify(written) }
}

/** Whether a to-do is about the end of a called job. Of a parked or unfinished job there is nothing to bring. */
export function isEndOf(state: State | undefined): boolean {
  return state === undefined || isFinal(state)
}
