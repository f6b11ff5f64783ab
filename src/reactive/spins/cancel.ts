import { disposeOwned } from '../graph/effect.js'
import { CancelledError, DisposedError } from '../errors.js'
import { DISPOSED, MARKED, STALE, dropAfter } from '../graph/graph.js'
import { ReplayLog } from '../replay/log.js'
import { failure } from '../result.js'
import type { Run } from './run.js'
import type { SpinNode } from './spin.js'

/**
 * Cancellation is cooperative. A parked spin gets the result `CancelledError` at once; then that error is thrown at the
 * point where its body is parked, so that `catch` and `finally` run. Effects of this clean-up do not change the result.
 * A spin whose code is on the call stack, or that never ran, gets the error at its next effect. Children that only this
 * spin waited for are cancelled too; a child with another observer is not.
 */
export function cancelSpin(node: SpinNode, reason: unknown): void {
  const { run } = node
  if ((node.flags & DISPOSED) !== 0) return
  if (run === undefined) {
    if (node.result === undefined) node.cancelBeforeStart ??= { reason }
  } else if (run.isDriving) {
    run.cancelled ??= new CancelledError(node.addr, reason)
  } else {
    const children = abandonedBy(run)
    cancelParked(run, new CancelledError(node.addr, reason))
    abandonSpins(children, reason)
  }
}

/**
 * Cancels spins whose last waiter has ended, and spins that only they waited for. The caller did not cancel these by
 * name, so the error is not a valid result: the next wait or call runs them again.
 */
export function abandonSpins(nodes: readonly SpinNode[], reason: unknown): void {
  const todo = nodes.toReversed()
  for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
    const { run } = node
    if (run === undefined || !node.isUnobserved || (node.flags & DISPOSED) !== 0) continue
    if (run.isDriving) {
      run.cancelled ??= new CancelledError(node.addr, reason)
      continue
    }
    const children = abandonedBy(run)
    cancelParked(run, new CancelledError(node.addr, reason))
    node.flags |= STALE
    todo.push(...children.toReversed())
  }
}

/** Children in progress that this run waits for or owns. */
function abandonedBy(run: Run): SpinNode[] {
  const children = new Set<SpinNode>(run.parked?.targets)
  for (const child of run.node.children?.values() ?? []) if (child.run !== undefined) children.add(child)
  return [...children]
}

function cancelParked(run: Run, error: CancelledError): void {
  const { node } = run
  const { context } = run
  node.run = undefined
  node.result = failure(error)
  node.stamp = context.graph.drawStamp()
  node.blockedOn = undefined
  node.flags &= ~(MARKED | STALE)
  releaseRun(run)
  forgetReads(node)
  context.enqueue({ type: 'spin-completion', node })
  run.cancelled = error
  unwind(run, error)
}

function releaseRun(run: Run): void {
  run.parked?.release()
  run.parked = undefined
  run.gatherHoldings()
  disposeOwned(run)
}

/** Throws into the parked body and lets it clean up with a separate log. */
function unwind(run: Run, error: CancelledError): void {
  run.isCancelThrown = true
  run.log = new ReplayLog(run.context.logPolicy)
  callHooks(run)
  if (!run.hasBegun) return run.context.spinRunner.complete(run, failure(error))
  driveCleanup(run, () => run.step('throw', error))
}

/** Drives a cancelled body until it ends or parks; called again when the answer it waits for has arrived. */
export function driveCleanup(run: Run, first: () => IteratorResult<unknown, unknown> = () => run.resume()): void {
  const { context } = run
  let step = first
  for (;;) {
    let outcome: IteratorResult<unknown, unknown>
    try {
      outcome = step()
    } catch (error) {
      if (error !== run.cancelled) context.fault('continuation-fault', 'cancel', error, run.node.addr)
      return context.spinRunner.complete(run, failure(error))
    }
    if (outcome.done === true) return context.spinRunner.complete(run, failure(run.cancelled))
    if (run.parked !== outcome.value) run.refuse(outcome.value)
    if (run.parked?.poll() !== true) break
    step = () => run.resume()
  }
  for (let child = run.parked?.nextChild(); child !== undefined; child = run.parked?.nextChild()) {
    context.enqueue({ type: 'spin-execution', node: child, caller: undefined })
  }
}

/** Called when the context closes: releases external resources of the run and calls its hooks. Its body is not resumed. */
export function endRun(run: Run): void {
  run.isDead = true
  run.parked?.release()
  run.parked = undefined
  callHooks(run)
}

function callHooks(run: Run): void {
  for (const hook of run.cancelHooks ?? []) {
    try {
      hook()
    } catch (error) {
      run.context.fault('continuation-fault', 'onCancel', error, run.node.addr)
    }
  }
}

/** Drops a cell that the body of a spin created. */
export function dropCell(node: SpinNode, addr: string): void {
  node.cells?.get(addr)?.dropped()
  node.cells?.delete(addr)
}

/** Removes a spin from everything it observes, and drops its log. */
export function forgetReads(node: SpinNode): void {
  disposeOwned(node)
  dropAfter(node, undefined)
  node.log.cut(0)
}

/** Disposes a spin and all it owns. Callers and waiters get `DisposedError`. */
export function disposeSpin(node: SpinNode): void {
  const todo = [node]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if ((next.flags & DISPOSED) !== 0) continue
    todo.push(...(next.children?.values() ?? []))
    disposeOne(next)
  }
}

function disposeOne(node: SpinNode): void {
  const { context, run, callers } = node
  node.flags = (node.flags & ~(MARKED | STALE)) | DISPOSED
  node.graph.nodeCount--
  node.owner?.children?.delete(node.addr)
  const error = new DisposedError(node.addr)
  node.run = undefined
  node.result = undefined
  node.callers = undefined
  node.spawned = undefined
  node.children = undefined
  for (const addr of node.cells?.keys() ?? []) dropCell(node, addr)
  forgetReads(node)
  for (const caller of callers ?? []) caller.reject(error)
  if (node.waiters !== undefined && context.state === 'running') context.enqueue({ type: 'spin-completion', node })
  if (run === undefined) return
  if (context.state !== 'running') {
    run.isDead = true
    return
  }
  if (run.isDriving) {
    run.cancelled ??= new CancelledError(node.addr, error)
    return
  }
  const children = abandonedBy(run)
  releaseRun(run)
  run.cancelled = new CancelledError(node.addr, 'it was disposed')
  unwind(run, run.cancelled)
  abandonSpins(children, 'the spin that waited for it was disposed')
}
