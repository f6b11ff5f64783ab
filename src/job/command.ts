import type { State } from './states.js'
import { isFinal } from './states.js'

/**
 * What a person or the app may ask of a job that no worker holds, and what becomes of it. Pure, like `decide`.
 * `null`: it means nothing in this state, and nothing is written.
 */
export type Command = 'cancel' | 'retry' | 'delete' | 'edit' | 'unschedule'

export interface CommandMove {
  readonly to: State | 'gone'
}

export function decideCommand(state: State, command: Command): CommandMove | null {
  switch (command) {
    case 'cancel':
      return isWaiting(state) && state !== 'parked' ? { to: 'cancelled' } : null
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

function isWaiting(state: State): boolean {
  return state !== 'running' && !isFinal(state)
}
