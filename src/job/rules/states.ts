/**
 * The states of a job and the table of legal moves. Every change of a job's state follows this table;
 * the check constraints of the databases and the simulator's oracle are written from it.
 *
 *      enqueue ──► scheduled ──► ready ──► running ──► done
 *                      ▲           ▲        │ │ │ └───► failed ──┐
 *                      └─ snooze ──┼────────┘ │ └─────► cancelled┤ retry (a recorded command)
 *                                  ├── retrying ◄┘               │
 *                                  └──────── ◄───────────────────┘
 *      blocked: waits for its parents.   paused: waits for resume.   parked: waits for retry, edit or delete.
 */
export type WaitingState = 'scheduled' | 'ready' | 'retrying' | 'blocked' | 'paused' | 'parked'
export type FinalState = 'done' | 'failed' | 'cancelled'
export type State = WaitingState | 'running' | FinalState

export const WAITING_STATES: readonly WaitingState[] = ['scheduled', 'ready', 'retrying', 'blocked', 'paused', 'parked']
export const FINAL_STATES: readonly FinalState[] = ['done', 'failed', 'cancelled']
export const STATES: readonly State[] = [...WAITING_STATES, 'running', ...FINAL_STATES]

/** The legal next states of each state. A move to the same state changes the due time or the contents. */
export const LEGAL_MOVES: { readonly [From in State]: readonly State[] } = {
  scheduled: ['scheduled', 'ready', 'blocked', 'paused', 'cancelled'],
  // To blocked when an edit adds parents, here and below.
  ready: ['ready', 'scheduled', 'running', 'blocked', 'paused', 'parked', 'cancelled'],
  running: ['done', 'failed', 'cancelled', 'ready', 'scheduled', 'retrying', 'blocked', 'paused', 'parked'],
  retrying: ['retrying', 'scheduled', 'ready', 'blocked', 'paused', 'cancelled'],
  blocked: ['blocked', 'scheduled', 'retrying', 'ready', 'paused', 'cancelled'],
  paused: ['paused', 'scheduled', 'ready', 'retrying', 'blocked', 'cancelled'],
  // retry, edit or delete end it; `cancelled` only when an enqueue replaces it under its key.
  // To paused when a sequence is reset, here and below.
  parked: ['ready', 'scheduled', 'blocked', 'paused', 'cancelled'],
  done: ['paused'],
  failed: ['ready', 'paused'],
  cancelled: ['ready', 'paused'],
}

export function isFinal(state: State): state is FinalState {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}

/** States that wait for a due time; promotion moves them to `ready` when it has passed. */
export function isTimed(state: State): boolean {
  return state === 'scheduled' || state === 'retrying'
}

export function mayMove(from: State, to: State): boolean {
  return LEGAL_MOVES[from].includes(to)
}
