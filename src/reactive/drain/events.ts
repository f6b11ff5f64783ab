import { driveCleanup, reapSpin, restSpin } from '../spins/cancel.js'
import type { ReactiveContext } from '../context/context.js'
import type { DeferredNode } from '../mailboxes/deferred.js'
import { EffectNode } from '../graph/effect.js'
import { EffectTypeError } from '../errors.js'
import type { Write } from '../graph/graph.js'
import {
  CAUSED_MAX,
  DISPOSED,
  EFFECT,
  HOOKED,
  MARKED,
  ORPHANED,
  QUEUED,
  RESTS,
  STALE,
  countRounds,
} from '../graph/graph.js'
import type { MailboxNode } from '../mailboxes/mailbox.js'
import type { Request } from '../spins/request.js'
import type { Result } from '../result.js'
import { failure } from '../result.js'
import type { Run } from '../spins/run.js'
import type { SignalNode } from '../graph/signal.js'
import type { Caller } from '../spins/spin.js'
import { SpinNode } from '../spins/spin.js'

/** Every cause of work, in one queue. */
export type ReactiveEvent =
  | {
      readonly type: 'signal-change'
      readonly node: SignalNode
      /** Shared by the writes of a batch; undefined for a single write. */
      readonly generation: Generation | undefined
      /** The spin or effect that wrote, and the write that made it run; undefined for a write from outside. */
      readonly write: Write | undefined
    }
  | { readonly type: 'spin-execution'; readonly node: SpinNode; readonly caller: Caller | undefined }
  | { readonly type: 'spin-completion'; readonly node: SpinNode }
  | { readonly type: 'deferred-delivery'; readonly node: DeferredNode; readonly result: Result<unknown> }
  | { readonly type: 'mailbox-post'; readonly node: MailboxNode; readonly message: unknown }
  /** Follows the replays of a restored context. */
  | { readonly type: 'restore-end' }
  /** The first observer has come, or the last has ended. */
  | { readonly type: 'observation'; readonly node: SignalNode | SpinNode }
  /** The handle of a spin was collected, or a spin without a handle has ended. */
  | { readonly type: 'gc-cleanup'; readonly node: SpinNode }
  | { readonly type: 'resume'; readonly request: Request<unknown>; readonly result: Result<unknown> }

/** All writes of one batch. It gets its number when the drain processes the first of them. */
export interface Generation {
  number: number
}

export function processEvent(context: ReactiveContext, event: ReactiveEvent): void {
  context.graph.causingWrite = undefined
  switch (event.type) {
    case 'signal-change':
      return onSignalChange(context, event)
    case 'spin-execution':
      return onSpinExecution(context, event.node, event.caller)
    case 'spin-completion':
      return onSpinCompletion(context, event.node)
    case 'deferred-delivery':
      return event.node.settle(event.result)
    case 'mailbox-post':
      return event.node.receive(event.message)
    case 'restore-end':
      if (context.restored?.finish() === false) context.enqueue(event)
      return
    case 'observation':
      return event.node instanceof SpinNode ? onLostObserver(event.node) : event.node.syncFeed(context)
    case 'gc-cleanup':
      return reapSpin(event.node)
    case 'resume':
      return onResume(context, event.request, event.result)
    default: {
      const unknown: { readonly type?: unknown } = event satisfies never
      context.fault('unknown-event', 'drain', new EffectTypeError(`no event of type ${String(unknown.type)} is known`))
    }
  }
}

/** Passes an error of event processing to the caller or the waiting runs, or else to the fault hook. */
export function failEvent(context: ReactiveContext, event: ReactiveEvent, error: unknown): void {
  if (event.type === 'spin-execution' && event.caller !== undefined) return event.caller.reject(error)
  if (event.type === 'spin-completion' && event.node.waiters !== undefined) {
    for (const { run } of Array.from(event.node.waiters)) if (run !== undefined) failRun(context, run, error)
    return
  }
  context.fault('event-error', event.type, error)
}

function failRun(context: ReactiveContext, run: Run, error: unknown): void {
  run.parked?.release()
  context.spinRunner.complete(run, failure(error))
}

type SignalChange = Extract<ReactiveEvent, { type: 'signal-change' }>

function onSignalChange(context: ReactiveContext, { generation, write }: SignalChange): void {
  if (generation === undefined || generation.number === 0) {
    const number = ++context.generation
    if (generation !== undefined) generation.number = number
    if (write !== undefined) countCaused(context, write)
  }
  settleReached(context)
}

/** Processes a single write that was not queued. */
export function settleWrite(context: ReactiveContext, write: Write | undefined): void {
  context.graph.causingWrite = undefined
  context.generation++
  if (write !== undefined) countCaused(context, write)
  settleReached(context)
}

/**
 * Stops a spin or effect whose own writes make it run again and again. One that merely writes often continues: past the
 * limit, the chain of causing writes distinguishes the two.
 */
function countCaused(context: ReactiveContext, write: Write): void {
  const cause = write.writer as EffectNode | SpinNode
  if (cause.caused === 0) context.recentWriters.push(cause)
  if (cause.caused < CAUSED_MAX) cause.caused++
  else if (cause.caused === CAUSED_MAX && countRounds(write) > CAUSED_MAX) {
    cause.caused++
    if (cause instanceof EffectNode) cause.stopRunaway()
    else context.spinRunner.stopRunaway(cause)
  }
}

/** Refreshes the nodes that were marked before this event. Nodes marked by its own writes have later events. */
function settleReached(context: ReactiveContext): void {
  const { reached } = context.graph
  for (let left = reached.length; left > 0; left--) {
    const node = reached.shift()
    if (node === undefined) return
    node.flags &= ~QUEUED
    context.graph.causingWrite = node.reachedBy
    node.reachedBy = undefined
    if ((node.flags & DISPOSED) !== 0) continue
    if ((node.flags & EFFECT) !== 0) (node as EffectNode).refresh()
    else if ((node.flags & (MARKED | STALE)) !== 0) context.spinRunner.settle(node as SpinNode)
  }
}

function onSpinExecution(context: ReactiveContext, node: SpinNode, caller: Caller | undefined): void {
  context.graph.causingWrite = node.causingWrite
  if (caller !== undefined) (node.callers ??= []).push(caller)
  if (node.isSettled || (node.flags & DISPOSED) !== 0) return answerCallers(context, node)
  context.spinRunner.settle(node)
}

function onSpinCompletion(context: ReactiveContext, node: SpinNode): void {
  context.graph.causingWrite = node.causingWrite
  for (const request of Array.from(node.waiters ?? [])) {
    request.targetCompleted(node)
    if (request.run !== undefined) wake(context, request.run)
  }
  for (const parent of blockedObservers(node)) context.spinRunner.settle(parent)
  answerCallers(context, node)
}

/** The observing spins that are marked as out of date. The list is copied because settling changes it. */
function blockedObservers(node: SpinNode): SpinNode[] {
  const blocked: SpinNode[] = []
  for (let link = node.subs; link !== undefined; link = link.nextSub) {
    if ((link.sub.flags & MARKED) !== 0 && link.sub instanceof SpinNode) blocked.push(link.sub)
  }
  return blocked
}

function onLostObserver(node: SpinNode): void {
  if ((node.flags & RESTS) !== 0) restSpin(node)
  if ((node.flags & ORPHANED) !== 0) reapSpin(node)
}

function onResume(context: ReactiveContext, request: Request<unknown>, result: Result<unknown>): void {
  const { run } = request
  if (run === undefined || run.isDead || run.parked !== request) return request.undelivered(result)
  request.arrival = result
  wake(context, run)
}

/** Checks whether a parked run can continue, and resumes it. */
function wake(context: ReactiveContext, run: Run): void {
  if (run.isDead) return
  if (run.node.run === run) context.spinRunner.settle(run.node)
  else if (run.parked?.poll() === true) driveCleanup(run)
}

function answerCallers(context: ReactiveContext, node: SpinNode): void {
  const { result, callers, spawned } = node
  if (result === undefined || !node.isSettled) return
  node.callers = undefined
  for (const caller of callers ?? []) {
    if (result.ok) caller.resolve(result.value)
    else caller.reject(result.error)
  }
  if (callers !== undefined && (node.flags & HOOKED) !== 0) context.noteObservation(node)
  if (result.ok || spawned === undefined || callers !== undefined || node.reportedStamp === node.stamp) return
  node.reportedStamp = node.stamp
  context.reportSpawnError(node, result.error)
}
