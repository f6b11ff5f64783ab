import type { State } from './states.js'
import { isFinal } from './states.js'
import type { RequestVerb } from './request.js'

/**
 * The commands on a job, and the state each leads to. Pure, like `decide`. `null`: the command does not apply in this state, and
 * nothing is written.
 */
export type Command = 'cancel' | 'retry' | 'delete' | 'edit' | 'unschedule' | 'pause' | 'resume'

export type CommandMove =
  /** The state of a job that is not running changes at once. */
  | { readonly to: State | 'gone'; readonly request?: undefined }
  /** A running job gets a requested change: see `request.ts`. */
  | { readonly request: RequestVerb; readonly to?: undefined }

export function decideCommand(state: State, command: Command): CommandMove | null {
  switch (command) {
    case 'cancel':
      if (state === 'running') return { request: 'cancel' }
      return isWaiting(state) && state !== 'parked' ? { to: 'cancelled' } : null
    case 'pause':
      if (state === 'running') return { request: 'pause' }
      return isWaiting(state) && state !== 'parked' ? { to: 'paused' } : null
    case 'resume':
      if (state === 'running') return { request: 'resume' }
      // The store replaces `ready` by `resumedState`, by its own clock.
      return state === 'paused' ? { to: 'ready' } : null
    case 'unschedule':
      return isWaiting(state) && state !== 'parked' ? { to: 'cancelled' } : null
    case 'retry':
      return state === 'failed' || state === 'cancelled' || state === 'parked' || state === 'retrying'
        ? { to: 'ready' }
        : null
    case 'delete':
      return state === 'running' ? null : { to: 'gone' }
    case 'edit':
      return isWaiting(state) ? { to: state === 'parked' ? 'ready' : state } : null
    default:
      return command satisfies never
  }
}

/** The state of a resumed job: blocked by its parents, ready when it is due, else waiting for its time. */
export function resumedState(job: {
  readonly isDue: boolean
  readonly hasFailed: boolean
  readonly isBlocked?: boolean | undefined
}): State {
  if (job.isBlocked === true) return 'blocked'
  if (job.isDue) return 'ready'
  return job.hasFailed ? 'retrying' : 'scheduled'
}

/** The state of a waiting job that gets a new due time. It waits for that time, also if it was ready or paused before. */
export function timedState(from: State, to: State, isDue: boolean): State {
  if (isDue) return 'ready'
  return from === 'retrying' && to !== 'ready' ? 'retrying' : 'scheduled'
}

function isWaiting(state: State): boolean {
  return state !== 'running' && !isFinal(state)
}
