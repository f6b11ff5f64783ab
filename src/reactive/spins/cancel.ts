import { disposeOwned } from '../graph/effect.js'
import type { ReactiveContext } from '../context/context.js'
import { CancelledError, DisposedError } from '../errors.js'
import {
  DISPOSED,
  FOLLOWING,
  HOOKED,
  MARKED,
  ORPHANED,
  REPLAY,
  STALE,
  dropAfter,
  markObservers,
} from '../graph/graph.js'
import { ReplayLog } from '../replay/log.js'
import { failure } from '../result.js'
import type { Run } from './run.js'
import type { SpinNode } from './spin.js'

/**
 * Cancellation is cooperative. A parked spin gets the result `CancelledError` at once; then that error is thrown at the
 * point where its body is parked, so that `catch` and `finally` run. Effects of this clean-up do not change the result.
 * A spin whose code is on the call stack gets the error at its next effect; one that never ran gets it as its result, and
 * does not begin. Children that only this spin waited for are cancelled too; a child with another observer is not.
 *
 * Children clean up before their parents, because a parent's `finally` may close what a child still uses. All spins of
 * the tree are detached first, the parent before its children: only then is it known that no other spin observes a child.
 * The bodies are unwound in the opposite order, and a parent waits for clean-ups of its children that wait themselves.
 */
export function cancelSpin(node: SpinNode, reason: unknown): void {
  const { run } = node
  if ((node.flags & DISPOSED) !== 0) return
  if ((node.flags & REPLAY) !== 0) {
    cancelWithoutRun(node, reason)
  } else if (run === undefined) {
    if (node.result === undefined) cancelWithoutRun(node, reason)
  } else if (run.isDriving) {
    run.cancelled ??= new CancelledError(node.addr, reason)
  } else {
    const ended = new Ending(node.context)
    const children = abandonedBy(run)
    const cleanup = cancelParked(ended, run, new CancelledError(node.addr, reason), undefined)
    abandonAll(ended, children, reason, cleanup)
    ended.unwind()
  }
}

/** Cancels a spin that never ran, or whose run has a log and no generator: there is no body to unwind. */
function cancelWithoutRun(node: SpinNode, reason: unknown): void {
  node.result = failure(new CancelledError(node.addr, reason))
  node.stamp = node.graph.drawStamp()
  node.flags &= ~(MARKED | STALE | REPLAY | FOLLOWING)
  forgetReads(node)
  markObservers(node)
  node.context.enqueue({ type: 'spin-completion', node })
}

/**
 * Cancels spins whose last waiter has ended, and spins that only they waited for. The caller did not cancel these by
 * name, so the error is not a valid result: the next wait or call runs them again.
 */
export function abandonSpins(nodes: readonly SpinNode[], reason: unknown): void {
  const [first] = nodes
  if (first === undefined) return
  const ended = new Ending(first.context)
  abandonAll(ended, nodes, reason, undefined)
  ended.unwind()
}

function abandonAll(ended: Ending, nodes: readonly SpinNode[], reason: unknown, parent: Cleanup | undefined): void {
  const todo = nodes.toReversed().map((node) => ({ node, parent }))
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const { node } = next
    const { run } = node
    if (run === undefined || !node.isUnobserved || (node.flags & DISPOSED) !== 0) continue
    if (run.isDriving) {
      cancelDriving(run, new CancelledError(node.addr, reason), next.parent)
      continue
    }
    const children = abandonedBy(run)
    const cleanup = cancelParked(ended, run, new CancelledError(node.addr, reason), next.parent)
    node.flags |= STALE
    for (const child of children.toReversed()) todo.push({ node: child, parent: cleanup })
  }
}

/** The code of the run is on the call stack: it gets the error at its next effect, and the parent waits for its end. */
function cancelDriving(run: Run, error: CancelledError, parent: Cleanup | undefined): void {
  run.cancelled ??= error
  if (parent !== undefined && run.cleanup === undefined) run.cleanup = new Cleanup(run, error, parent)
}

/** Children in progress that this run waits for or owns. */
function abandonedBy(run: Run): SpinNode[] {
  const children = new Set<SpinNode>(run.parked?.targets)
  for (const child of run.node.children?.values() ?? []) if (child.run !== undefined) children.add(child)
  return [...children]
}

function cancelParked(ended: Ending, run: Run, error: CancelledError, parent: Cleanup | undefined): Cleanup {
  const { node } = run
  const { context } = run
  detach(node)
  node.result = failure(error)
  node.stamp = context.graph.drawStamp()
  node.blockedOn = undefined
  node.flags &= ~(MARKED | STALE)
  releaseRun(run)
  forgetReads(node)
  ended.completed.push(node)
  return ended.add(run, error, parent)
}

/** Takes the run from its spin: it only cleans up from now on. */
function detach(node: SpinNode): void {
  node.run = undefined
  node.unwinding++
}

/** Called when a run has ended that was detached before. What a disposed spin kept for its clean-up is disposed. */
export function endUnwinding(run: Run): void {
  const { node } = run
  if (--node.unwinding === 0 && (node.flags & DISPOSED) !== 0) {
    const children = [...(node.children?.values() ?? [])]
    for (const child of children) disposeSpin(child)
    dropHeld(node)
  }
  noteEnded(run)
}

/** Drops what the runs of a disposed spin have created. */
function dropHeld(node: SpinNode): void {
  node.children = undefined
  for (const addr of node.cells?.keys() ?? []) dropCell(node, addr)
}

function releaseRun(run: Run): void {
  run.parked?.release()
  run.parked = undefined
  run.gatherHoldings()
  disposeOwned(run)
}

/** The spins that end together: detached, and about to be unwound. */
class Ending {
  readonly #context: ReactiveContext
  readonly #cleanups: Cleanup[] = []
  /** Spins whose completion events are queued after the clean-ups. */
  readonly completed: SpinNode[] = []

  constructor(context: ReactiveContext) {
    this.#context = context
  }

  add(run: Run, error: CancelledError, parent: Cleanup | undefined): Cleanup {
    const cleanup = new Cleanup(run, error, parent)
    run.cancelled = error
    run.cleanup = cleanup
    this.#cleanups.push(cleanup)
    return cleanup
  }

  /** Unwinds the bodies, each after all its children, and then queues the completion events. */
  unwind(): void {
    for (const cleanup of this.#cleanups.toReversed()) {
      cleanup.isDue = true
      if (cleanup.children === 0) unwind(cleanup)
    }
    for (const node of this.completed) this.#context.enqueue({ type: 'spin-completion', node })
  }
}

/** The clean-up of one run that ends. It begins when those of its children have ended. */
export class Cleanup {
  readonly run: Run
  readonly error: CancelledError
  readonly parent: Cleanup | undefined
  /** Clean-ups of children that have not ended yet. */
  children = 0
  /** It waits for its children only. */
  isDue = false

  constructor(run: Run, error: CancelledError, parent: Cleanup | undefined) {
    this.run = run
    this.error = error
    this.parent = parent
    if (parent !== undefined) parent.children++
  }
}

/** Called when a run has ended in any way: the clean-up of its parent may begin. */
export function noteEnded(run: Run): void {
  const parent = run.cleanup?.parent
  run.cleanup = undefined
  if (parent === undefined || --parent.children > 0 || !parent.isDue) return
  const { dueCleanups } = run.context
  dueCleanups.push(parent)
  if (dueCleanups.length > 1) return // The loop below, further up the call stack, takes it: a chain needs no deep stack.
  try {
    for (let at = 0; at < dueCleanups.length; at++) unwind(dueCleanups[at] as Cleanup)
  } finally {
    dueCleanups.length = 0
  }
}

/** Throws into the parked body and lets it clean up with a separate log. */
function unwind({ run, error }: Cleanup): void {
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
    const { runaway } = run
    if (runaway !== undefined) {
      context.fault('continuation-fault', 'cancel', runaway, run.node.addr)
      return context.spinRunner.complete(run, failure(runaway))
    }
    if (run.parked?.poll() !== true) break
    step = () => run.resume()
  }
  run.noteWaiting()
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
  const cell = node.cells?.get(addr)
  if (cell?.home === node.context) cell.dropped() // A fork does not end what its parent still uses.
  node.cells?.delete(addr)
}

/**
 * Called for a spin that rests while nothing observes it. Its timers are cleared and it observes nothing; its last result
 * stays. The next wait runs it again.
 */
export function restSpin(node: SpinNode): void {
  if (!node.isUnobserved || node.isOnStack || (node.flags & DISPOSED) !== 0) return
  const { result } = node
  if (node.run !== undefined) abandonSpins([node], 'its last observer has ended')
  if (node.run !== undefined) return // Its code is on the call stack, and it gets the cancellation at its next effect.
  node.result = result
  for (const addr of Array.from(node.cells?.keys() ?? [])) dropCell(node, addr)
  forgetReads(node)
  if (result !== undefined) node.flags |= STALE
}

/**
 * Called when the handle of a spin was collected. Without a handle it can still act: its body is in progress, something it
 * read may change, or another spin waits for it or has its result. Only when none of these holds is it removed; until
 * then it stays as it is and is examined again when a run of it ends or its last observer has ended. So the moment of a
 * collection never changes a result.
 */
export function reapSpin(node: SpinNode): void {
  if ((node.flags & DISPOSED) !== 0) return
  node.flags |= HOOKED | ORPHANED
  const isIdle = node.run === undefined && !node.isOnStack && (node.flags & REPLAY) === 0
  const isObserved = node.subs !== undefined || node.waiters !== undefined || node.callers !== undefined
  if (isIdle && !isObserved && node.deps === undefined) disposeSpin(node)
}

/** Removes a spin from everything it observes, and drops its log. */
export function forgetReads(node: SpinNode): void {
  disposeOwned(node)
  dropAfter(node, undefined)
  node.log.cut(0)
}

/**
 * Disposes a spin and all it owns. Callers and waiters get `DisposedError`. A clean-up that a cancellation has begun goes
 * on to its end: what the spin owns is kept for it until then.
 */
export function disposeSpin(node: SpinNode): void {
  const ended = new Ending(node.context)
  const todo: { readonly node: SpinNode; readonly parent: Cleanup | undefined }[] = [{ node, parent: undefined }]
  const abandoned: (() => void)[] = []
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if ((next.node.flags & DISPOSED) !== 0) continue
    const children = isUnwinding(next.node) ? [] : [...(next.node.children?.values() ?? [])]
    const waitedFor = isUnwinding(next.node) ? [] : (next.node.run?.parked?.targets ?? [])
    const cleanup = disposeOne(ended, next.node, next.parent) ?? next.parent
    for (const child of children.toReversed()) todo.push({ node: child, parent: cleanup })
    if (waitedFor.length > 0) {
      abandoned.push(() => abandonAll(ended, waitedFor, 'the spin that waited for it was disposed', cleanup))
    }
  }
  for (const abandon of abandoned) abandon()
  ended.unwind()
  node.context.trigger() // What it observed may have lost its last observer.
}

/** A cancelled run of it cleans up. A stopped context resumes none. */
function isUnwinding({ context, unwinding, run }: SpinNode): boolean {
  return context.state === 'running' && (unwinding > 0 || run?.isCancelThrown === true)
}

/** Detaches a spin from everything. Returns the clean-up of its run in progress. */
function disposeOne(ended: Ending, node: SpinNode, parent: Cleanup | undefined): Cleanup | undefined {
  const { context, run, callers } = node
  const isKept = isUnwinding(node)
  node.flags = (node.flags & ~(MARKED | STALE | REPLAY | FOLLOWING)) | DISPOSED
  node.graph.nodeCount--
  if (node.owner?.children?.get(node.addr) === node) node.owner.children.delete(node.addr)
  if (node.owner === undefined) context.registry?.remove(node.addr)
  const error = new DisposedError(node.addr)
  node.run = undefined
  node.result = undefined
  node.callers = undefined
  node.spawned = undefined
  if (!isKept) dropHeld(node)
  forgetReads(node)
  for (const caller of callers ?? []) caller.reject(error)
  if (node.waiters !== undefined && context.state === 'running') ended.completed.push(node)
  if (run === undefined) return undefined
  if (context.state !== 'running') {
    run.isDead = true
    return undefined
  }
  node.unwinding++
  if (run.isDriving || run.isCancelThrown) {
    cancelDriving(run, new CancelledError(node.addr, error), parent)
    return run.cleanup
  }
  releaseRun(run)
  return ended.add(run, new CancelledError(node.addr, 'it was disposed'), parent)
}
