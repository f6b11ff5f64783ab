import type { InboxRow } from '../store/workflows.js'
import type { DriverHost, RunEnd, Workflow } from './host.js'
import { PendingOperations } from './pending-operations.js'
import { RunLog } from './run-log.js'
import { Scope } from './scope.js'
import { Signal } from './signal.js'
import type { RestartRequest } from './verbs.js'

/** How a body ended. */
export type Ended = { readonly value: unknown } | { readonly error: unknown }

/** A round of the driver's loop ended and the next one begins when a callback continues the loop. */
export const WAITING = Symbol('waiting')
/** What a round of the driver's loop came to: the end of the run, a wait, or undefined when the next round follows at once. */
export type Round = RunEnd | typeof WAITING | undefined

/** How a round that cannot end at once continues the loop. */
export interface Loop {
  /** Begins the next round. */
  readonly goOn: () => void
  /** Continues with what the promise resolves to. */
  readonly later: (round: Promise<Round>) => typeof WAITING
}

/** The state of one run, from its first claim until it has ended or is forgotten. */
export class RunState {
  readonly workflow: Workflow
  readonly root = new Scope('')
  readonly log = new RunLog()
  readonly pending = new PendingOperations()
  readonly signal: Signal
  host: DriverHost
  isLost = false
  ended: Ended | undefined
  /** The rows of the inbox that are not taken, and when they were read. */
  inbox: readonly InboxRow[] = []
  inboxAt = -Infinity
  deadlineAt: number | null = null
  /** When unwinding must have ended. */
  unwindBy = Infinity
  /** The number of the answer that cancelled the run, or of its passed deadline. */
  cancelNo: number | undefined
  cancelReason: string | undefined
  /** A job was called, now or before. */
  hasCalls = false
  restart: RestartRequest | undefined
  /** Why the run cannot go on, although its log has room. */
  fullBecause: string | undefined
  /** When the body was first seen to wait for nothing of `w`. */
  silentSince: number | undefined
  /** Which answer an error came from. */
  readonly errorNumbers = new WeakMap<object, number>()

  constructor(workflow: Workflow, host: DriverHost) {
    this.workflow = workflow
    this.host = host
    this.signal = new Signal(host.timers)
  }

  receive(inbox: readonly InboxRow[], at = this.host.now()): void {
    this.inbox = inbox
    this.inboxAt = at
    this.signal.raise()
  }

  isFullWith(acting: number): boolean {
    return this.log.isFullWith(acting, this.workflow.rules.steps)
  }
}
