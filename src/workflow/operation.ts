import type { AnyEvent } from '../job/definition/workflow-options.js'
import type { Enqueueable } from '../job/enqueue.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { RetryOptions } from '../job/rules/retry.js'
import type { NewChild } from '../store/workflows.js'
import type { LogNote } from './log-row.js'
import type { OperationKind, Scope } from './scope.js'
import type { StepContext } from './work.js'

/** What an operation does, by its kind. */
export type Deed =
  | {
      readonly kind: 'step'
      readonly act: (s: StepContext) => unknown
      readonly retry: RetryOptions | undefined
      readonly timeoutMs: number | undefined
    }
  | { readonly kind: 'tx'; readonly work: (tx: unknown) => unknown }
  | { readonly kind: 'results'; readonly parent: Enqueueable }
  | { readonly kind: 'sleep'; readonly until: number | undefined; readonly spanMs: number | undefined }
  | { readonly kind: 'wait'; readonly event: AnyEvent; readonly timeoutMs: number | undefined }
  | {
      readonly kind: 'call' | 'enqueue'
      readonly job: Enqueueable
      readonly payload: unknown
      readonly options: unknown
      readonly leaves: boolean
    }

/**
 * Where an operation is. called → queued → acting → acted, and retrying in between, for those that act;
 * called → preparing → prepared → waiting for calls; called → waiting for sleeps and waits.
 */
export type OperationState =
  | 'called'
  | 'queued'
  | 'acting'
  | 'acted'
  | 'retrying'
  | 'preparing'
  | 'prepared'
  | 'waiting'
  | 'settled'

/** One call of a verb, from its call until its answer is given. */
export interface Operation {
  readonly address: string
  readonly kind: OperationKind
  readonly name: string
  readonly scope: Scope
  readonly deed: Deed
  /** Calls are numbered over the whole run. */
  readonly order: number
  /** One more than the number of the answer last given when it was called. */
  readonly since: number
  state: OperationState
  calledAt: number
  /** Counted attempts. */
  attempt: number
  /** When it can go on without an event: the end of a sleep, of a timeout or of the wait for the next attempt. */
  until: number | null
  child: { readonly id: string; readonly isOld: boolean } | undefined
  /** The child that is to be inserted. */
  prepared: Omit<NewChild, 'address' | 'isAwaited'> | undefined
  /** How its act ended. */
  outcome: Outcome | undefined
  /** JSON of the error of the last attempt. */
  lastError: string | null
  note: LogNote
  /** The kind of its open row in the store; undefined: there is none. */
  openAs: string | undefined
  /** Its open row differs from the stored one. */
  isRowDue: boolean
  readonly promise: Promise<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

export function makeOperation(
  given: Pick<Operation, 'address' | 'name' | 'scope' | 'deed' | 'order' | 'since'>,
): Operation {
  let resolve: Operation['resolve'] = ignore
  let fail: Operation['reject'] = ignore
  const promise = new Promise<unknown>((done, failed) => {
    resolve = done
    fail = failed
  })
  const reject = (error: unknown): void => {
    handleRejection(promise)
    fail(error)
  }
  // Every field is named: a spread would make a slow object, and there is one for each step.
  const { address, name, scope, deed, order, since } = given
  return {
    address,
    kind: deed.kind,
    name,
    scope,
    deed,
    order,
    since,
    state: 'called',
    calledAt: 0,
    attempt: 0,
    until: null,
    child: undefined,
    prepared: undefined,
    outcome: undefined,
    lastError: null,
    note: NO_NOTE,
    openAs: undefined,
    isRowDue: false,
    promise,
    resolve,
    reject,
  }
}

const NO_NOTE: LogNote = {}

function ignore(): void {}

/** A body may forget to await a promise: its rejection must not end the process. */
export function handleRejection(promise: Promise<unknown>): void {
  promise.catch(ignore)
}

export function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject<never>(error as Error)
  handleRejection(promise)
  return promise
}

/** It acts: its function is called, and may be called again. */
export function acts({ kind }: Operation): boolean {
  return kind === 'step' || kind === 'tx' || kind === 'results'
}
