/**
 * The states of a job and the one table of legal moves. Whoever changes a job's state looks here first;
 * the database's checks and the simulator's oracle are written from the same table.
 *
 *      enqueue ──► scheduled ──► ready ──► running ──► done
 *                      ▲           ▲        │ │ │ └───► failed ──┐
 *                      └─ snooze ──┼────────┘ │ └─────► cancelled┤ retry (a recorded command)
 *                                  ├── retrying ◄┘               │
 *                                  └──────── ◄───────────────────┘
 *      blocked, paused: waiting for somebody.   parked: waiting for a person.
 */
export type WaitingState = 'scheduled' | 'ready' | 'retrying' | 'blocked' | 'paused' | 'parked'
export type FinalState = 'done' | 'failed' | 'cancelled'
export type State = WaitingState | 'running' | FinalState

export const WAITING_STATES: readonly WaitingState[] = ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'parked']
export const FINAL_STATES: readonly FinalState[] = ['done', 'failed', 'cancelled']
export const STATES: readonly State[] = [...WAITING_STATES, 'running', ...FINAL_STATES]

/** Where a job may go from each state. A move to the same state is a change of its time or its contents. */
export const LEGAL_MOVES: { readonly [From in State]: readonly State[] } = {
  scheduled: ['scheduled', 'ready', 'blocked', 'paused', 'cancelled'],
  // To blocked by parents that are added to it, here and below.
  ready: ['ready', 'scheduled', 'running', 'blocked', 'paused', 'parked', 'cancelled'],
  running: ['done', 'failed', 'cancelled', 'ready', 'scheduled', 'retrying', 'blocked', 'paused', 'parked'],
  retrying: ['retrying', 'scheduled', 'ready', 'blocked', 'paused', 'cancelled'],
  blocked: ['blocked', 'scheduled', 'retrying', 'ready', 'paused', 'cancelled'],
  paused: ['paused', 'scheduled', 'ready', 'retrying', 'blocked', 'cancelled'],
  // Left by retry, edit or delete; `cancelled` only when an enqueue replaces it under its key.
  parked: ['ready', 'scheduled', 'blocked', 'cancelled'],
  done: [],
  failed: ['ready'],
  cancelled: ['ready'],
}

export function isFinal(state: State): state is FinalState {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}

/** States that wait for a time and are moved to `ready` when it has come. */
export function isTimed(state: State): boolean {
  return state === 'scheduled' || state === 'retrying'
}

export function mayMove(from: State, to: State): boolean {
  return LEGAL_MOVES[from].includes(to)
}
