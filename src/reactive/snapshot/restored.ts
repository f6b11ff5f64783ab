import type { ReactiveContext } from '../context/context.js'
import type { Handle } from '../graph/cell.js'
import type { GraphNode } from '../graph/graph.js'
import { DISPOSED, MARKED, REPLAY, markObservers, reach, reorderSubs } from '../graph/graph.js'
import { SignalNode } from '../graph/signal.js'
import { DeferredNode } from '../mailboxes/deferred.js'
import { MailboxNode } from '../mailboxes/mailbox.js'
import type { SpinNode } from '../spins/spin.js'
import { copyData } from './copy.js'
import type { StoredCell, StoredContext, StoredEvent, StoredMailbox, StoredSignal, StoredTimer } from './stored.js'

/**
 * The stored state of a restored context that has not found its cell yet.
 *
 * A cell or spin that is created at a stored address takes over the state. A generator cannot be stored, so each spin
 * that has a log runs once more: its body starts from the top and the log answers, so that nothing happens outside, and
 * its children, observers and waits exist again. When all have done so, what was read before and has changed is marked,
 * and the queued events follow. State whose cell is never created stays here, and is part of the next snapshot.
 */
export class Restored {
  readonly #context: ReactiveContext
  readonly #cells: Map<string, StoredCell>
  /** Events of cells that do not exist yet. */
  queue: StoredEvent[]
  /** Sleeps of spins that do not exist yet, by their order of arming. */
  readonly timers: Map<number, StoredTimer>
  /** Spins with a stored log that have not replayed it yet, with its length; -1 for one whose run was in progress. */
  readonly #replays = new Map<SpinNode, number>()
  /** Spins whose replay read something that has changed since. */
  readonly #outdated = new Set<SpinNode>()
  readonly #takers: { readonly box: MailboxNode; readonly addrs: readonly string[] }[] = []
  readonly #observed: { readonly node: GraphNode; readonly observers: readonly string[] }[] = []
  readonly #sleepers: { readonly order: number; readonly node: SpinNode }[] = []
  /** Cells that have queued events. */
  readonly #claimed = new Map<string, SignalNode | DeferredNode | MailboxNode>()
  readonly #awaited: ReadonlySet<string>
  #isFinished = false
  #leftAtLastLook = -1

  constructor(context: ReactiveContext, stored: StoredContext) {
    this.#context = context
    this.#cells = new Map(Object.entries(stored.cells))
    this.queue = [...stored.queue]
    this.timers = new Map(stored.timers.entries())
    this.#awaited = new Set(stored.queue.map(({ addr }) => addr))
  }

  unclaimed(): Record<string, StoredCell> {
    return Object.fromEntries(this.#cells)
  }

  /** A cell was created: it gets the state that is stored under its address. */
  claim(handle: Handle): void {
    const node: unknown = 'node' in handle ? handle.node : handle
    const stored = this.#cells.get(handle.addr)
    if (stored === undefined || !fits(node, stored)) return
    this.#cells.delete(handle.addr)
    if (this.#awaited.has(handle.addr)) this.#claimed.set(handle.addr, node as SignalNode)
    const copy = copyData(stored)
    if (copy.kind === 'signal') this.#restoreSignal(node as SignalNode, copy)
    else if (copy.kind === 'deferred') (node as DeferredNode).restore(copy.result)
    else if (copy.kind === 'mailbox') this.#restoreMailbox(node as MailboxNode, copy)
    if (this.#isFinished) this.#deliver()
  }

  claimSpin(node: SpinNode): void {
    const stored = this.#cells.get(node.addr)
    if (stored?.kind !== 'spin') return
    this.#cells.delete(node.addr)
    const { result, stamp, log, isSpawned, isRunning, isResultMade, isCancelled, observers } = copyData(stored)
    if (observers !== undefined) this.#observed.push({ node, observers })
    node.result = result
    node.stamp = stamp
    node.reportedStamp = stamp
    if (isSpawned === true) node.spawned = { onError: undefined }
    node.log.load(log)
    this.#claimTimer(node)
    const isCompleted = result !== undefined || isResultMade === true
    if (isCancelled === true || (!isCompleted && isRunning !== true && log.length === 0)) return
    node.flags |= REPLAY
    this.#replays.set(node, isRunning === true ? -1 : log.length)
    this.#context.enqueue({ type: 'spin-execution', node, caller: undefined })
  }

  /** The spin was completed when it was stored, and has not replayed its log yet. */
  isCompleted(node: SpinNode): boolean {
    return (this.#replays.get(node) ?? -1) >= 0
  }

  /** Called when a run completes. True when it was the replay of a completed run: the stored result stays. */
  endReplay(node: SpinNode): boolean {
    const length = this.#replays.get(node)
    if (length === undefined) return false
    this.#replays.delete(node)
    return length >= 0 && node.log.length === length
  }

  noteOutdated(node: SpinNode): void {
    this.#outdated.add(node)
  }

  /** Called by the event that follows the replays: again and again until all are done. Returns whether they are. */
  finish(): boolean {
    const left = [...this.#replays.keys()].filter(({ flags }) => (flags & (REPLAY | DISPOSED)) === REPLAY).length
    const hasProgressed = left !== this.#leftAtLastLook
    this.#leftAtLastLook = left
    if (left > 0 && hasProgressed) return false
    this.#isFinished = true
    for (const { box, addrs } of this.#takers.splice(0)) box.reorderTakers(addrs)
    for (const { node, observers } of this.#observed.splice(0)) reorderObservers(node, observers)
    const sleepers = this.#sleepers.toSorted((a, b) => a.order - b.order)
    for (const { node } of sleepers) node.run?.parked?.rearm()
    this.#sleepers.length = 0
    this.#markOutdated()
    this.#deliver()
    return true
  }

  #markOutdated(): void {
    for (const node of this.#outdated) {
      if ((node.flags & DISPOSED) !== 0) continue
      node.flags |= MARKED
      markObservers(node)
      reach(node)
      this.#context.enqueue({ type: 'spin-execution', node, caller: undefined })
    }
    this.#outdated.clear()
  }

  /** Queues the stored events of cells that exist now. */
  #deliver(): void {
    const queue = this.queue
    this.queue = []
    for (const event of queue) {
      const node = this.#claimed.get(event.addr)
      if (node === undefined) this.queue.push(event)
      else this.#enqueue(copyData(event), node)
    }
  }

  #enqueue(event: StoredEvent, node: SignalNode | DeferredNode | MailboxNode): void {
    const context = this.#context
    if (event.type === 'signal-change') context.announceChange(node as SignalNode, undefined)
    else if (event.type === 'mailbox-post') {
      context.enqueue({ type: event.type, node: node as MailboxNode, message: event.message })
    } else {
      ;(node as DeferredNode).isDelivered = true
      context.enqueue({ type: event.type, node: node as DeferredNode, result: event.result })
    }
    context.trigger()
  }

  #restoreSignal(node: SignalNode, stored: StoredSignal): void {
    node.takeOver(stored)
    if (stored.observers !== undefined) this.#observed.push({ node, observers: stored.observers })
  }

  #restoreMailbox(node: MailboxNode, stored: StoredMailbox): void {
    node.restore(stored.messages, stored.lastOrder)
    this.#takers.push({ box: node, addrs: stored.takers })
  }

  #claimTimer(node: SpinNode): void {
    for (const [order, timer] of this.timers) {
      if (timer.spin !== node.addr) continue
      this.timers.delete(order)
      this.#sleepers.push({ order, node })
      this.#context.wakes.set(node, { addr: timer.addr, at: this.#context.now() + timer.remainingMs, order })
      return
    }
  }
}

function reorderObservers(node: GraphNode, observers: readonly string[]): void {
  const ranks = new Map(observers.map((addr, index) => [addr, index]))
  reorderSubs(node, (sub) => ranks.get((sub as Partial<SpinNode>).addr ?? '') ?? observers.length)
}

function fits(node: unknown, stored: StoredCell): boolean {
  if (stored.kind === 'signal') return node instanceof SignalNode
  if (stored.kind === 'deferred') return node instanceof DeferredNode
  return stored.kind === 'mailbox' && node instanceof MailboxNode
}
