import { requireContext } from '../context/ambient.js'
import { cancelSpin, disposeSpin } from '../spins/cancel.js'
import { describe } from '../errors.js'
import { checkRecord } from '../context/options.js'
import type { Body, Spin, SpinNode } from '../spins/spin.js'
import { spin } from '../spins/spin.js'
import { JoinRequest, firstFailedOrAll, nodesOf } from './join.js'

/** One supervised child. */
export interface ChildSpec {
  /** Names the child in addresses. Default: its place in the list. */
  readonly key?: string | undefined
  /** Its code; it starts from the top at each restart. */
  readonly body: Body<unknown>
}

export interface SupervisorOptions {
  /**
   * Which children are restarted when one fails: only that one, all, or that one and those after it in the list.
   * Default: `'one-for-one'`.
   */
  readonly strategy?: 'one-for-one' | 'one-for-all' | 'rest-for-one' | undefined
  /** How many restarts are allowed within the window. Default: 5. */
  readonly maxRestarts?: number | undefined
  /** The length of the window, in milliseconds. Default: 60,000. */
  readonly windowMs?: number | undefined
  /** Called once with the last error when the restarts are used up. Default: the error is a `continuation-fault`. */
  readonly onFatal?: ((error: unknown) => void) | undefined
}

export const RESTARTS_MAX = 5
export const RESTART_WINDOW_MS = 60_000

/**
 * Runs children and restarts those that fail. Completes when all have completed, or when the restarts are used up; in
 * that case it cancels the children still running.
 *
 * ```ts
 * import { iterate, supervise, waitFor, type Mailbox } from 'millrace/reactive'
 *
 * const consumer = (box: Mailbox<string>, handle: (m: string) => void) => supervise([{
 *   key: 'consumer',
 *   body: () => iterate(undefined, function* () {
 *     handle(yield* waitFor(box))
 *     return { next: undefined }
 *   }),
 * }])
 * ```
 */
export function supervise(children: readonly ChildSpec[], options: SupervisorOptions = {}): Spin<void> {
  checkRecord('supervise', options)
  const { strategy = 'one-for-one', maxRestarts = RESTARTS_MAX, windowMs = RESTART_WINDOW_MS, onFatal } = options
  checkSupervisor(children, strategy, maxRestarts, windowMs)
  const context = requireContext('supervise')
  return spin(function* () {
    const running = children.map((_, index) => startChild(children, index))
    let restarts: number[] = []
    for (;;) {
      const failed = yield* new JoinRequest(running, firstFailedOrAll)
      const result = running[failed]?.result
      if (result === undefined || result.ok) return
      const now = context.now()
      restarts = [...restarts.filter((at) => now - at < windowMs), now]
      if (restarts.length > maxRestarts) {
        for (const child of running) {
          cancelSpin(child, 'its supervisor used up its restarts')
          disposeSpin(child) // A child that failed has ended, but would run again when something it read changes.
        }
        if (onFatal === undefined) context.fault('continuation-fault', 'supervise', result.error, running[failed]?.addr)
        else onFatal(result.error)
        return
      }
      for (const index of replacedBy(strategy, failed, children.length)) {
        cancelSpin(running[index] as SpinNode, 'its supervisor restarts it')
        disposeSpin(running[index] as SpinNode)
        running[index] = startChild(children, index)
      }
    }
  })
}

function startChild(children: readonly ChildSpec[], index: number): SpinNode {
  const spec = children[index] as ChildSpec
  return nodesOf([spin(spec.body, { key: spec.key ?? String(index) })])[0] as SpinNode
}

function replacedBy(strategy: string, failed: number, count: number): number[] {
  if (strategy === 'one-for-one') return [failed]
  const from = strategy === 'one-for-all' ? 0 : failed
  return Array.from({ length: count - from }, (_, index) => from + index)
}

function checkSupervisor(
  children: readonly ChildSpec[],
  strategy: string,
  maxRestarts: number,
  windowMs: number,
): void {
  if (!Array.isArray(children) || children.length === 0) {
    const got = Array.isArray(children) ? 'an empty list' : describe(children)
    throw new TypeError(`supervise: children must be a list of one or more { body }, got ${got}`)
  }
  for (const [index, child] of children.entries()) {
    if (typeof (child as Partial<ChildSpec> | undefined)?.body === 'function') continue
    throw new TypeError(`supervise: children[${index}].body must be a generator function, got ${describe(child)}`)
  }
  if (!['one-for-one', 'one-for-all', 'rest-for-one'].includes(strategy)) {
    throw new TypeError(
      `supervise: strategy must be one-for-one, one-for-all or rest-for-one, got ${describe(strategy)}`,
    )
  }
  if (!(Number.isInteger(maxRestarts) && maxRestarts >= 0)) {
    throw new RangeError(`supervise: maxRestarts must be a whole number of 0 or more, got ${describe(maxRestarts)}`)
  }
  if (!(windowMs > 0)) throw new RangeError(`supervise: windowMs must be above 0, got ${describe(windowMs)}`)
}
