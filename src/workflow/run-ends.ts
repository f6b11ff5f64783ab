import { ForeignAwaitError, JobCancelledError, RestartUnusedError, TimeoutError, WorkflowOverError } from '../errors.js'
import { isSnooze } from '../job/attempt/control-errors.js'
import { formatDuration } from '../job/duration/duration.js'
import type { NewStep } from '../store/sequences.js'
import { difference } from './drift.js'
import type { Draining, LogRest, RunEnd } from './host.js'
import { unwoundRow } from './log-row.js'
import type { Operation } from './operation.js'
import type { Ended, Round, RunState } from './run-state.js'
import { waitsOf } from './waits.js'

/** How many causes of an error are looked at, and addresses that a note lists. */
const CAUSES_MAX = 10
const SHOWN_MAX = 10

/** The body has ended. A recorded answer that was not called is drift. */
export function finished(state: RunState, ended: Ended): RunEnd | 'restarts' {
  const { log, pending, workflow } = state
  if (log.uncalled.size > 0 || log.recorded.some(({ address }) => !isCalled(state, address))) return drifted(state)
  if (pending.size > 0) abortActs(state, new WorkflowOverError('step', workflow.id))
  return state.cancelNo === undefined && isRestart(state, ended) ? 'restarts' : endOf(state, ended)
}

function isCalled({ pending }: RunState, address: string): boolean {
  return pending.has(address) || pending.isRejected(address) || address.startsWith('!')
}

function isRestart({ restart }: RunState, ended: Ended): boolean {
  return restart !== undefined && 'value' in ended && ended.value === restart
}

export async function restarted(state: RunState): Promise<Round> {
  try {
    const input = await state.host.prepareInput(state.restart?.input)
    return { kind: 'restarted', input, rest: rest(state, null) }
  } catch (error) {
    return { kind: 'failed', error, rest: rest(state, null) }
  }
}

function endOf(state: RunState, ended: Ended): RunEnd {
  const { pending, host, cancelReason, cancelNo } = state
  const left = pending.size === 0 ? [] : [...pending.byAddress.keys()]
  for (const address of left) host.warn({ kind: 'left-behind', address })
  const note = left.length === 0 ? undefined : `left behind without an await: ${left.slice(0, SHOWN_MAX).join(', ')}`
  const error = 'error' in ended ? bodyError(ended.error) : undefined
  if (cancelReason !== undefined) {
    const value = 'value' in ended && !isRestart(state, ended) ? ended.value : undefined
    const own = error instanceof JobCancelledError ? undefined : error
    return { kind: 'cancelled', reason: cancelReason, value, error: own, rest: rest(state, cancelNo ?? null) }
  }
  if (cancelNo !== undefined)
    return { kind: 'failed', error: error ?? state.root.abortReason, rest: rest(state, cancelNo) }
  if (error !== undefined) return { kind: 'failed', error, rest: rest(state, numberOf(state, error)) }
  if (state.restart !== undefined) return { kind: 'failed', error: new RestartUnusedError(), rest: rest(state, null) }
  return { kind: 'done', value: 'value' in ended ? ended.value : undefined, note, rest: rest(state, null) }
}

/** Unwinding has taken too long: the body runs no further. */
export function forced(state: RunState): RunEnd {
  const { id, name, rules } = state.workflow
  const error = new TimeoutError(
    `workflow ${name} ${id}: unwinding took longer than cancelWithin (${formatDuration(rules.cancelWithinMs)})`,
  )
  abortActs(state, error)
  state.ended = { error }
  return endOf(state, { error })
}

/** With `strict`, a body that awaits something that is not of `w` ends so. */
export function silentEnd({ workflow: { name, id } }: RunState): Ended {
  return { error: new ForeignAwaitError(`workflow ${name} ${id}`) }
}

export function drifted({ log, pending }: RunState): RunEnd {
  return { kind: 'drifted', ...difference(log.recorded, log.uncalled.values(), pending.byAddress) }
}

export function suspended(state: RunState, wakeAt: number | null): RunEnd {
  const { pending } = state
  const waits = waitsOf(pending)
  const isRetrying = pending.count('retrying') === pending.size
  const to = waits.length > 0 ? 'blocked' : isRetrying ? 'retrying' : 'scheduled'
  return { kind: 'suspended', to, waits, wakeAt, rest: rest(state, null) }
}

export function yielded(state: RunState, why: Draining): RunEnd {
  return { kind: 'yielded', why, rest: rest(state, null) }
}

/** The steps that act get their signals aborted. */
export function abortActs({ pending, host }: RunState, reason: Error): void {
  for (const operation of pending) if (operation.state === 'acting') host.abort(operation, reason)
}

/** What is written with the end of the claim. Called jobs are cancelled when the workflow has ended without them. */
function rest(state: RunState, forgetFrom: number | null): LogRest {
  const { log, pending, deadlineAt, hasCalls } = state
  if (state.ended !== undefined)
    for (const operation of pending) {
      operation.isRowDue = false
      if (!log.isRecorded(operation.address)) pending.unwind(operation)
    }
  const { rows, cancelled } = takeDueRows(state, NO_ROWS)
  return { rows, cancelled, deadlineAt, forgetFrom, hasCalls }
}

const NO_ROWS: readonly NewStep[] = []

/** Open rows that differ from what is stored, those of rejected operations, and the called jobs that nothing waits for any more. */
export function takeDueRows(
  { log, pending, host }: RunState,
  answered: readonly NewStep[],
): Pick<LogRest, 'rows' | 'cancelled'> {
  const rows: NewStep[] = []
  for (const operation of pending) {
    if (!operation.isRowDue || answered.some(({ address }) => address === operation.address)) continue
    rows.push(log.rowOf(operation, null, host.now()))
    operation.isRowDue = false
    operation.openAs = operation.kind
  }
  const unwound = pending.takeUnwound()
  for (const operation of unwound) rows.push(unwoundRow(operation, log.run, host.now()))
  return { rows, cancelled: unwound.flatMap(cancelledChild) }
}

/** A job to cancel: one that this call inserted, unless its option says to leave it. */
function cancelledChild({ deed, child }: Operation): string[] {
  if (deed.kind !== 'call' || deed.leaves || child === undefined || child.isOld) return []
  return [child.id]
}

/** The answer whose error ended the body: that error, or a cause of it. */
function numberOf({ errorNumbers }: RunState, error: unknown): number | null {
  for (let each = error, depth = 0; typeof each === 'object' && each !== null && depth < CAUSES_MAX; depth += 1) {
    const no = errorNumbers.get(each)
    if (no !== undefined) return no
    each = (each as { cause?: unknown }).cause
  }
  return null
}

/** A body has no attempts, so a Snooze of it means nothing. */
function bodyError(error: unknown): unknown {
  if (!isSnooze(error)) return error ?? new Error('the body threw undefined')
  return new Error('the body threw new Snooze(), which only a step can; use await w.sleep(span) in the body')
}
