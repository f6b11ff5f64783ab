import { disposeOwned } from '../graph/effect.js'
import { CancelledError, DisposedError } from '../errors.js'
import { DISPOSED, MARKED, STALE, dropAfter } from '../graph/graph.js'
import { ReplayLog } from '../replay/log.js'
import { failure } from '../result.js'
import type { Run } from './run.js'
import type { SpinNode } from './spin.js'

/**
 * Cancelling is cooperative. A parked spin has its result at once, `CancelledError`; then that error is thrown where
 * its body is parked, so that `catch` and `finally` run, and whatever it may still wait for while cleaning up changes
 * nothing any more. A spin whose code is on the call stack, or that never ran, hears of it at its next effect. Children
 * that only it waited for are abandoned; a child somebody else observes stays.
 */
export function cancelSpin(node: SpinNode, reason: unknown): void {
  const { run } = node
  if ((node.flags & DISPOSED) !== 0) return
  if (run === undefined) {
    if (node.result === undefined) node.cancelFirst ??= { reason }
  } else if (run.isDriving) {
    run.cancelled ??= new CancelledError(node.addr, reason)
  } else {
    const children = abandonedBy(run)
    cancelParked(run, new CancelledError(node.addr, reason))
    abandonSpins(children, reason)
  }
}

/**
 * Ends the runs of spins whose last waiter is gone, and of those only they waited for. Nobody asked for these to be
 * cancelled for good, so the error is no valid result: whoever asks next makes them run anew.
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

/** Throws into the parked body, and lets it clean up with a log of its own. */
function unwind(run: Run, error: CancelledError): void {
  run.isCancelThrown = true
  run.log = new ReplayLog(run.context.logPolicy)
  callHooks(run)
  if (!run.hasBegun) return run.context.machine.complete(run, failure(error))
  driveCleanup(run, () => run.step('throw', error))
}

/** Drives a cancelled body until it ends or waits; called again when what it waits for has come. */
export function driveCleanup(run: Run, first: () => IteratorResult<unknown, unknown> = () => run.resume()): void {
  const { context } = run
  let step = first
  for (;;) {
    let outcome: IteratorResult<unknown, unknown>
    try {
      outcome = step()
    } catch (error) {
      if (error !== run.cancelled) context.fault('continuation-fault', 'cancel', error, run.node.addr)
      return context.machine.complete(run, failure(error))
    }
    if (outcome.done === true) return context.machine.complete(run, failure(run.cancelled))
    if (run.parked !== outcome.value) run.refuse(outcome.value)
    if (run.parked?.poll() !== true) break
    step = () => run.resume()
  }
  for (let child = run.parked?.nextChild(); child !== undefined; child = run.parked?.nextChild()) {
    context.enqueue({ type: 'spin-execution', node: child, caller: undefined })
  }
}

/** The context is closing: releases what the run holds outside and tells its hooks. Its body hears nothing. */
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

/** Forgets a cell made in the body of a spin. */
export function dropCell(node: SpinNode, addr: string): void {
  node.cells?.get(addr)?.dropped()
  node.cells?.delete(addr)
}

/** Takes a spin out of everything it observes, and forgets what it read. */
export function forgetReads(node: SpinNode): void {
  disposeOwned(node)
  dropAfter(node, undefined)
  node.log.cut(0)
}

/** Ends a spin and all it owns for good. Callers and waiters get `DisposedError`. */
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
