import type { RequestKind } from './request.js'
import { isFinal, isTimed } from './states.js'
import type { State } from './states.js'

/**
 * The commands on a workflow. Pure, like `decideCommand`. A workflow that has recorded something is not cancelled from
 * outside: the cancel is written into its inbox, and its body unwinds.
 */
export type WorkflowVerb = 'cancel' | 'end' | 'pause' | 'resume' | 'retry' | 'retry-fresh'

/** The part of a workflow that its commands depend on. */
export interface WorkflowPlace {
  readonly state: State
  /** Its present run has recorded something. */
  readonly hasBegun: boolean
  /** A cancel is in its inbox, or its body unwinds after one. */
  readonly isCancelRequested: boolean
}

export type WorkflowMove =
  /** The job moves to this state at once. */
  | { readonly to: 'cancelled' | 'paused' }
  /** The cancel is written into the inbox, and a workflow without a claim is woken. */
  | { readonly inbox: true }
  /** It ends at once, whether a worker has it or not. */
  | { readonly end: true }
  /** A worker has it: the transaction that ends the claim applies the request. */
  | { readonly request: Extract<RequestKind, 'pause'> | 'resume' }
  /** It continues where it waited. */
  | { readonly resume: true }
  /** It runs again, with the rest of its log or with an empty one. */
  | { readonly retry: 'rest' | 'fresh' }
  /** It is requested already. */
  | { readonly already: true }

/** The move that a verb makes; null when the verb does not apply in this state. */
export function decideWorkflow(place: WorkflowPlace, verb: WorkflowVerb): WorkflowMove | null {
  const { state } = place
  switch (verb) {
    case 'cancel':
      if (isStopped(state)) return null
      if (place.isCancelRequested) return { already: true }
      return state === 'running' || place.hasBegun ? { inbox: true } : { to: 'cancelled' }
    case 'end':
      return isStopped(state) ? null : { end: true }
    case 'pause':
      if (isStopped(state) || state === 'paused' || place.isCancelRequested) return null
      return state === 'running' ? { request: 'pause' } : { to: 'paused' }
    case 'resume':
      if (place.isCancelRequested) return null
      if (state === 'running') return { request: 'resume' }
      return state === 'paused' ? { resume: true } : null
    case 'retry':
    case 'retry-fresh':
      if (state !== 'failed' && state !== 'cancelled' && state !== 'parked') return null
      return { retry: verb === 'retry' ? 'rest' : 'fresh' }
    default:
      return verb satisfies never
  }
}

function isStopped(state: State): boolean {
  return isFinal(state) || state === 'parked'
}

/** How an inbox row and a wait are matched: `event:<name>`, `call:<id of the called job>`. */
export function waitName(kind: 'event' | 'call', name: string): string {
  return `${kind}:${name}`
}

/** A suspended workflow as its pause left it. */
export interface PausedPlace {
  /** The state before the pause. */
  readonly from: State
  /** Its inbox has what it waits for. */
  readonly isAnswered: boolean
  /** When it waits for a time in that state. */
  readonly dueAt: number | null
}

/** The state of a resumed workflow: ready when something that it waits for has come, else the state before the pause. */
export function resumedWorkflow({ from, isAnswered, dueAt }: PausedPlace, now: number): State {
  if (isAnswered || (dueAt !== null && dueAt <= now)) return 'ready'
  return from === 'blocked' || isTimed(from) ? from : 'ready'
}
