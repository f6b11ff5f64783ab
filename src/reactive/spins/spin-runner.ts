import { LazySet } from '../drain/lazy-collections.js'
import { cancelSpin, disposeSpin, dropCell, endUnwinding, forgetReads, noteEnded } from './cancel.js'
import type { ReactiveContext } from '../context/context.js'
import { disposeOwned } from '../graph/effect.js'
import { CycleError, EffectTypeError } from '../errors.js'
import type { DerivedNode, Link } from '../graph/graph.js'
import {
  CAUSED_MAX,
  COMPUTED,
  DISPOSED,
  FOLLOWING,
  MARKED,
  ORPHANED,
  REPLAY,
  SPIN,
  STALE,
  acceptDeps,
  dropUnread,
  refresh,
} from '../graph/graph.js'
import type { MailboxNode } from '../mailboxes/mailbox.js'
import type { ReplayLog } from '../replay/log.js'
import type { Result } from '../result.js'
import { failure, success } from '../result.js'
import { Run } from './run.js'
import { isEqual } from '../graph/signal.js'
import { findWait } from './spin-wait.js'
import type { SpinNode } from './spin.js'

/**
 * Brings spins up to date, without recursion.
 *
 * To settle a spin is to walk its log. A dependency that is a spin itself is settled first, then its stamp is compared. At
 * the first difference the log is cut, the old run is closed and a new one starts from the top. Without a difference
 * nothing runs. When a running body waits for a child, that child is settled first too: it is pushed on the stack. A
 * spin's owner is settled before it, because the owner may replace or drop it.
 *
 *     stack:  total (validating, at its entry "wait tax")
 *             tax   (driving)                      ◀── advance the top until it is done, then the one below it
 *
 * A spin that cannot continue, because it or a dependency is parked on a deferred, a timer or a promise, is left as it
 * is. The completion of its dependency is an event, and that event settles it again.
 */
export class SpinRunner {
  readonly #context: ReactiveContext
  readonly #stack: Frame[] = []
  readonly #stale: SpinNode[] = []
  readonly #returned = new LazySet<MailboxNode>()

  constructor(context: ReactiveContext) {
    this.#context = context
  }

  settle(node: SpinNode): void {
    this.#push(node)
    this.#advanceAll()
    // Children whose body was replaced, and that none of these runs waited for.
    for (let child = this.#stale.pop(); child !== undefined; child = this.#stale.pop()) {
      if ((child.flags & STALE) === 0 || !child.needsSettling) continue
      if (child.isUnobserved) {
        cancelUnwanted(child)
        continue
      }
      this.#push(child)
      this.#advanceAll()
    }
    for (const box of this.#returned) box.serve()
    this.#returned.clear()
  }

  /** Records that a child got a new body in its owner's run; it is settled after the runs of this event, unless waited for. */
  noteStale(node: SpinNode): void {
    this.#stale.push(node)
  }

  #push(node: SpinNode): void {
    node.isOnStack = true
    const wasRunning = node.run !== undefined
    this.#stack.push({ node, index: -1, tried: undefined, phase: 'owner', wasRunning })
  }

  #advanceAll(): void {
    for (let frame = this.#stack.at(-1); frame !== undefined; frame = this.#stack.at(-1)) {
      const first = this.#advance(frame)
      if (first !== undefined) {
        first.stores ??= frame.node.stores
        this.#push(first)
      } else {
        this.#stack.pop()
        frame.node.isOnStack = false
      }
    }
  }

  /** Advances one frame; returns the spin that must be settled first, or undefined when this one is done. */
  #advance(frame: Frame): SpinNode | undefined {
    const { node } = frame
    if (frame.phase === 'owner') {
      frame.phase = 'validate'
      const { owner } = node
      if (owner !== undefined && (owner.flags & MARKED) !== 0 && owner.needsSettling) {
        node.isOnStack = false // The owner may wait for it; then it is settled on behalf of the owner.
        return owner
      }
    }
    node.isOnStack = true
    if ((node.flags & DISPOSED) !== 0) return undefined
    // The run of its owner has ended it: it starts over when a run waits for it.
    if (frame.wasRunning && node.run === undefined && node.isOnlyForOwner) return undefined
    if (frame.phase === 'validate') {
      const first = this.#validate(frame)
      node.isBeingChecked = typeof first === 'object'
      if (first !== 'continue') return first
      frame.phase = 'drive'
    }
    return this.#drive(node)
  }

  /** Finds the first entry whose dependency changed, and restarts the body there. Unmarked means unchanged. */
  #validate(frame: Frame): SpinNode | 'continue' | undefined {
    const { node } = frame
    if (node.run === undefined && node.result === undefined && (node.flags & REPLAY) === 0) {
      return this.#start(node, false)
    }
    if (node.caused > CAUSED_MAX) {
      acceptDeps(node)
      return this.#unblock(node)
    }
    if ((node.flags & STALE) !== 0) return this.#restart(node, 0, true)
    if (frame.index < 0 && (node.flags & (MARKED | REPLAY)) === 0) return this.#unblock(node)
    if (frame.index < 0) frame.index = 0
    node.flags &= ~MARKED
    const { log } = node
    for (; frame.index < log.length; frame.index++) {
      const link = log.at(frame.index)?.link
      if (link === undefined) continue
      const check = this.#check(frame, link)
      if (check === 'changed') return this.#adopt(node) ?? this.#restart(node, frame.index, false)
      if (check === 'blocked') return undefined
      if (check !== 'same') return check
    }
    if ((node.flags & REPLAY) !== 0) return this.#adopt(node) ?? this.#restart(node, log.length, false)
    return this.#unblock(node)
  }

  /** In a fork: takes over the parent's new result, if there is one that is valid here. Then nothing runs. */
  #adopt(node: SpinNode): 'continue' | undefined {
    if ((node.flags & FOLLOWING) === 0) return undefined
    node.flags |= MARKED // It is known to be out of date.
    return this.#context.overlay?.follow(node) === true ? this.#unblock(node) : undefined
  }

  #check(frame: Frame, link: Link): 'same' | 'changed' | 'blocked' | SpinNode {
    const { dep } = link
    if ((dep.flags & COMPUTED) !== 0) refresh(dep as DerivedNode)
    else if ((dep.flags & SPIN) !== 0) {
      const child = dep as SpinNode
      if ((child.flags & DISPOSED) !== 0) return 'changed'
      if (!child.isSettled) {
        if (frame.tried === child || !child.needsSettling) {
          // A dependency that waits for this very spin never settles. Repeating the wait throws CycleError in the body.
          if (findWait(child, frame.node) !== undefined) return 'changed'
          frame.node.flags |= MARKED
          frame.node.blockedOn = child
          child.hasBlocked = true
          return 'blocked'
        }
        frame.tried = child
        return child
      }
    }
    return link.stamp === dep.stamp ? 'same' : 'changed'
  }

  /** The spin is valid. Spins that it blocked are settled again by a completion event. */
  #unblock(node: SpinNode): 'continue' {
    const isAwaited = node.blockedOn !== undefined || node.hasBlocked
    node.blockedOn = undefined
    node.hasBlocked = false
    if (node.run === undefined && (isAwaited || node.callers !== undefined || node.waiters !== undefined)) {
      this.#context.enqueue({ type: 'spin-completion', node })
    }
    return 'continue'
  }

  #start(node: SpinNode, isCodeNew: boolean): 'continue' {
    const run = new Run(node, node.log)
    run.isLive = isCodeNew
    node.run = run
    node.blockedOn = undefined
    node.flags &= ~(MARKED | STALE | REPLAY | FOLLOWING)
    this.#context.runs.add(run)
    disposeOwned(node)
    node.log.rewind()
    node.depsTail = node.log.lastLinkBefore(node.log.length)
    this.#context.tracer?.runStarted(node)
    return 'continue'
  }

  #restart(node: SpinNode, index: number, isCodeNew: boolean): 'continue' {
    if (node.run !== undefined) this.supersede(node.run, index, isCodeNew ? -1 : index)
    else if ((node.flags & REPLAY) !== 0) this.#returnMessages(node.log, index)
    if (index < node.log.length) {
      this.#context.wakes.delete(node)
      this.#context.restored?.endReplay(node)
    }
    node.log.cut(index)
    return this.#start(node, isCodeNew)
  }

  /**
   * Ends a run that another one replaces: what it waited for is released, and its `finally` blocks run. Children that it
   * created after `keptTo`, and that nothing else observes, end before it, because its `finally` may close what they use.
   */
  supersede(run: Run, cutAt: number, keptTo = cutAt): void {
    const ending = [run]
    this.#detach(run, cutAt)
    for (let at = 0; at < ending.length; at++) {
      for (const child of (ending[at] as Run).replacedChildren(at === 0 ? keptTo : -1)) {
        const childRun = child.run as Run
        if (!child.isOnlyForOwner || childRun.isDriving || childRun.isCancelThrown) continue
        this.#detach(childRun, 0)
        ending.push(childRun)
      }
    }
    for (const each of ending.toReversed()) {
      closeRun(each)
      disposeOwned(each)
      noteEnded(each)
      if (each !== run) startOver(each.node)
    }
  }

  #detach(run: Run, cutAt: number): void {
    run.isDead = true
    run.node.run = undefined
    this.#context.runs.delete(run)
    this.#returnMessages(run.log, cutAt)
    run.parked?.release()
    run.parked = undefined
  }

  /**
   * Messages that an unfinished run took after the cut go back to the front of their mailbox, before other takers see
   * them: the run that replaces it takes them again. Waiting takers are served after that run had its turn.
   */
  #returnMessages(log: ReplayLog, cutAt: number): void {
    for (let index = log.length - 1; index >= Math.max(0, cutAt); index--) {
      const entry = log.at(index)
      if (entry?.kind !== 'take' || entry.isError || typeof entry.target === 'string') continue
      const box = this.#context.nodeFor(entry.target as MailboxNode)
      box.putBack(entry, entry.value)
      this.#returned.add(box)
    }
  }

  /** Drives the body until it ends, parks or needs a child; returns the child. */
  #drive(node: SpinNode): SpinNode | undefined {
    for (let run = node.run; run !== undefined && !run.isDriving; run = node.run) {
      let outcome: IteratorResult<unknown, unknown>
      const request = run.parked
      const { runaway } = run
      if (runaway !== undefined) {
        this.complete(run, failure(runaway))
        continue
      }
      if (request !== undefined && !request.poll()) {
        run.noteWaiting()
        return request.nextChild()
      }
      if (request === undefined && run.hasBegun) return undefined
      try {
        outcome = run.resume()
      } catch (error) {
        this.complete(run, failure(error))
        continue
      }
      if (outcome.done === true) this.complete(run, success(outcome.value))
      else if (run.parked !== outcome.value) run.refuse(outcome.value)
    }
    return undefined
  }

  /** Records the outcome of a run as the spin's result, and queues the completion event. */
  complete(run: Run, outcome: Result<unknown>): void {
    const { node } = run
    const context = this.#context
    run.isDead = true
    run.parked = undefined
    context.runs.delete(run)
    // The spin was cancelled before: its result is set, and this run was its clean-up.
    if (node.run !== run) return endUnwinding(run)
    node.run = undefined
    node.hasBlocked = false
    node.log.cut(node.log.cursor)
    node.log.trim()
    dropUnread(node)
    dropUnused(run)
    node.owned = run.owned
    const isCancelled = run.isCancelThrown && run.cancelled !== undefined
    if (isCancelled) forgetReads(node)
    const result = isCancelled ? failure(run.cancelled) : outcome
    const isReplayed = context.restored?.endReplay(node) === true && !isCancelled
    if (isReplayed) node.result ??= result // The stored result and its stamp are valid.
    else if (node.result === undefined || !isSameResult(node, result)) {
      node.result = result
      node.stamp = context.graph.drawStamp()
    }
    context.enqueue({ type: 'spin-completion', node })
    if ((node.flags & ORPHANED) !== 0) context.enqueue({ type: 'gc-cleanup', node })
    noteEnded(run)
  }

  /** Gives a spin that keeps changing what it reads a `CycleError`; it does not run again until the queue is empty. */
  stopRunaway(node: SpinNode): void {
    const { run } = node
    if (run !== undefined) this.supersede(run, Number.POSITIVE_INFINITY)
    acceptDeps(node)
    const message = `spin ${node.addr} keeps changing what it reads; let its writes settle, or read with peek()`
    node.result = failure(new CycleError([node.addr, node.addr], message))
    node.stamp = this.#context.graph.drawStamp()
    this.#context.enqueue({ type: 'spin-completion', node })
  }
}

interface Frame {
  readonly node: SpinNode
  /** The next log entry to check; -1 before the first. */
  index: number
  /** The child that was already settled for this entry: it is not tried twice. */
  tried: SpinNode | undefined
  phase: 'owner' | 'validate' | 'drive'
  /** It had a run in progress when it was pushed. */
  readonly wasRunning: boolean
}

/** The next wait for this spin begins a new run. */
function startOver(node: SpinNode): void {
  node.blockedOn = undefined
  forgetReads(node)
  if (node.result !== undefined) node.flags |= STALE
}

/** Cancels the run of a stale child without observers. Its new body runs when a run waits for it. */
function cancelUnwanted(child: SpinNode): void {
  if (child.run === undefined) return
  cancelSpin(child, 'its owner created it again, and no run waits for it')
  if ((child.flags & DISPOSED) === 0) child.flags |= STALE
}

/** Closes a superseded generator. An error of its `finally` blocks is a fault; they may not wait. */
function closeRun(run: Run): void {
  if (!run.hasBegun || run.generator === undefined) return
  run.isClosing = true
  try {
    for (let tries = 0; tries < CLOSE_TRIES_MAX; tries++) {
      if (run.step('return', undefined).done === true) return
    }
    throw new EffectTypeError('a body keeps yielding while it is being closed; it was not closed')
  } catch (error) {
    run.context.fault('continuation-fault', 'finally', error, run.node.addr)
  }
}

/** A body may yield in each of its nested `finally` blocks; more than this is a loop. */
const CLOSE_TRIES_MAX = 100

/** Drops the children and cells of earlier runs that this one did not create again. */
function dropUnused(run: Run): void {
  const { node, used } = run
  for (const child of node.children?.values() ?? []) if (used?.has(child.addr) !== true) disposeSpin(child)
  for (const addr of node.cells?.keys() ?? []) if (used?.has(addr) !== true) dropCell(node, addr)
}

function isSameResult(node: SpinNode, next: Result<unknown>): boolean {
  const { result } = node
  if (result === undefined || result.ok !== next.ok) return false
  if (!result.ok) return Object.is(result.error, (next as { error: unknown }).error)
  return isEqual(node.context, node.equals, result.value, (next as { value: unknown }).value, node)
}
