import type { State } from './states.js'
import { isFinal } from './states.js'
import type { RequestVerb } from './request.js'

/**
 * What a person or the app may ask of a job, and what becomes of it. Pure, like `decide`.
 * `null`: it means nothing in this state, and nothing is written.
 */
export type Command = 'cancel' | 'retry' | 'delete' | 'edit' | 'unschedule' | 'pause' | 'resume'

export type CommandMove =
  /** A job that no handler runs is moved at once. */
  | { readonly to: State | 'gone'; readonly request?: undefined }
  /** One that runs can only be asked: see `wish.ts`. */
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
      // Where to is the store's to say, by its clock: `resumedState`.
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

/** Where a paused job goes when it is resumed: back to what it waited for, or into the line if its time has come. */
export function resumedState(job: {
  readonly isDue: boolean
  readonly hasFailed: boolean
  readonly isBlocked?: boolean | undefined
}): State {
  if (job.isBlocked === true) return 'blocked'
  if (job.isDue) return 'ready'
  return job.hasFailed ? 'retrying' : 'scheduled'
}

/** Where a job that waits goes with a new time: it waits for that, whatever it waited for before. */
export function timedState(from: State, to: State, isDue: boolean): State {
  if (isDue) return 'ready'
  return from === 'retrying' && to !== 'ready' ? 'retrying' : 'scheduled'
}

function isWaiting(state: State): boolean {
  return state !== 'running' && !isFinal(state)
}
