import type { ReactiveContext } from '../context/context.js'
import type { ReactiveEvent } from '../drain/events.js'
import { VirtualTimers } from '../executors/timers.js'
import { directDependents } from '../fork/dependents.js'
import type { Place } from '../fork/place.js'
import type { Handle } from '../graph/cell.js'
import { ComputedNode } from '../graph/computed.js'
import { CancelledError, SerializeError } from '../errors.js'
import type { GraphNode } from '../graph/graph.js'
import { DISPOSED, REPLAY, STALE } from '../graph/graph.js'
import { SignalNode } from '../graph/signal.js'
import { DeferredNode } from '../mailboxes/deferred.js'
import { MailboxNode } from '../mailboxes/mailbox.js'
import type { Entry } from '../replay/log.js'
import { UnboundEntry } from '../replay/log.js'
import type { Result } from '../result.js'
import type { Request } from '../spins/request.js'
import { SpinNode } from '../spins/spin.js'
import { copyData } from './copy.js'
import type { SnapshotOptions } from './snapshot.js'
import type { StoredCell, StoredContext, StoredEntry, StoredEvent, StoredTimer } from './stored.js'
import { FORMAT, VERSION } from './stored.js'

/** Writes down the state of a context, as it sees it: for a fork, with everything that it inherits. */
export function storeContext(context: ReactiveContext, options: Required<SnapshotOptions>): StoredContext {
  const places = findPlaces(context)
  const events = context.queued()
  const pending = findPending(context, events)
  const cells: Record<string, StoredCell> = { ...context.root.restored?.unclaimed() }
  for (const [addr, node] of places) {
    const stored = storeCell(node, pending, options)
    if (stored !== undefined) cells[addr] = stored
  }
  const isVirtual = context.root.timers instanceof VirtualTimers
  return copyStored({
    format: FORMAT,
    version: VERSION,
    clock: isVirtual ? 'virtual' : 'real',
    now: isVirtual ? context.now() : 0,
    stamp: context.graph.stamp,
    generation: context.generation,
    cells,
    queue: options.includePending ? [...storeEvents(events), ...(context.restored?.queue ?? [])] : [],
    timers: storeTimers(context, places),
  })
}

/** Copies the state, so that later changes of its values do not change the snapshot. */
function copyStored(stored: StoredContext): StoredContext {
  try {
    return copyData(stored)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const addr = Object.keys(stored.cells).find((each) => isTooDeep(stored.cells[each])) ?? ''
    const message = `snapshot: the state of ${addr} is nested too deep to be copied; store it as a flat list or as text`
    throw new SerializeError(message, { cause, addr })
  }
}

function isTooDeep(cell: StoredCell | undefined): boolean {
  try {
    copyData(cell)
    return false
  } catch {
    return true
  }
}

/** The nodes of everything that can be found from cells with a key, spawned spins, and runs in progress, by address. */
function findPlaces(context: ReactiveContext): Map<string, Place> {
  const homes = new Set<Place>()
  for (let level: ReactiveContext | undefined = context; level !== undefined; level = level.parent) {
    for (const handle of level.registry?.handles() ?? []) homes.add(homeNodeOf(handle))
    for (const run of level.runs) homes.add(level.homeOf(run.node))
  }
  for (const event of context.queued()) if ('node' in event) homes.add(context.homeOf(event.node as Place))
  const places = new Map<string, Place>()
  for (const home of homes) {
    if (context.overlay?.isReplaced(home) === true) continue
    const node = context.nodeFor(home)
    const addr = addressOf(node)
    if (addr !== undefined && !places.has(addr)) places.set(addr, node)
    for (const next of around(node, home, context)) if (isPlace(next)) homes.add(next) // The walk goes on to it.
  }
  return places
}

/** What is connected to a node: what it depends on, what depends on it, its owner, and what it has created. */
function* around(node: Place, home: Place, context: ReactiveContext): Generator<unknown> {
  yield* directDependents(home, context)
  if (node instanceof ComputedNode || node instanceof SpinNode) {
    for (let link = node.deps; link !== undefined; link = link.nextDep) yield context.homeOf(link.dep)
  }
  if (!(node instanceof SpinNode)) return
  for (let index = 0; index < node.log.length; index++) yield node.log.at(index)?.target
  if (node.owner !== undefined) yield context.homeOf(node.owner)
  for (const child of node.children?.values() ?? []) yield context.homeOf(child)
  for (const cell of node.cells?.values() ?? []) yield homeNodeOf(cell)
}

/** Computeds have none: they are not stored but computed again. */
function addressOf(node: Place): string | undefined {
  return node instanceof ComputedNode ? undefined : (node as { readonly addr?: string }).addr
}

function isPlace(value: unknown): value is Place {
  return [SignalNode, ComputedNode, SpinNode, DeferredNode, MailboxNode].some((kind) => value instanceof kind)
}

function homeNodeOf(handle: Handle): Place {
  return 'node' in handle ? (handle.node as Place) : (handle as unknown as Place)
}

/** What the queue says about spins. */
interface Pending {
  /** Answers that have arrived and that their runs do not have yet. A stored log has them as if the run had. */
  readonly answers: ReadonlyMap<Request<unknown>, Result<unknown>>
  /** Spins that are about to run for the first time. */
  readonly started: ReadonlySet<SpinNode>
}

function findPending(context: ReactiveContext, events: readonly ReactiveEvent[]): Pending {
  const answers = new Map<Request<unknown>, Result<unknown>>()
  const started = new Set<SpinNode>()
  for (const event of events) {
    if (event.type === 'resume') answers.set(event.request, event.result)
    else if (event.type === 'spin-execution' && event.node.result === undefined) started.add(event.node)
  }
  for (const { parked } of context.runs) if (parked?.arrival !== undefined) answers.set(parked, parked.arrival)
  return { answers, started }
}

function storeCell(node: Place, pending: Pending, options: Required<SnapshotOptions>): StoredCell | undefined {
  if (node instanceof SignalNode) {
    const { value, old, changes, stamp } = node
    return { kind: 'signal', value, old, changes, stamp, ...storeObservers(node) }
  }
  if (node instanceof DeferredNode) {
    return { kind: 'deferred', ...(node.result === undefined ? {} : { result: node.result }) }
  }
  if (node instanceof MailboxNode) return storeMailbox(node, pending)
  if (!(node instanceof SpinNode) || (node.flags & DISPOSED) !== 0) return undefined
  return storeSpin(node, pending, options)
}

/** A message whose taker has died on the way is in the mailbox again. */
function storeMailbox(node: MailboxNode, pending: Pending): StoredCell {
  const messages = node.messages()
  for (const [{ entry, run }, result] of pending.answers) {
    if (entry?.target !== node.context.homeOf(node) || !result.ok) continue
    if (run === undefined || run.isDead) messages.push({ order: entry.order, body: result.value })
  }
  messages.sort((a, b) => a.order - b.order)
  const takers = [...node.waiters].flatMap(({ run }) => (run === undefined ? [] : [run.node.addr]))
  return { kind: 'mailbox', messages, lastOrder: node.lastOrder, takers }
}

function storeSpin(node: SpinNode, pending: Pending, options: Required<SnapshotOptions>): StoredCell {
  const isReplay = (node.flags & REPLAY) !== 0
  const isRestored = node.context.restored?.isCompleted(node) === true
  const isRunning = node.run !== undefined || (isReplay && !isRestored)
  const isStale = (node.flags & STALE) !== 0 // It starts over, whatever its last result was.
  const result = isStale || (isRunning && options.cleanInFlight) ? undefined : node.result
  const isCancelled = result?.ok === false && result.error instanceof CancelledError && node.log.length === 0
  return {
    kind: 'spin',
    stamp: node.stamp,
    ...(result !== undefined && node.isSpent === undefined ? { result } : {}),
    ...(result !== undefined && node.isSpent !== undefined ? { isResultMade: true } : {}),
    log: storeLog(node, pending),
    ...(node.spawned === undefined ? {} : { isSpawned: true }),
    ...(isCancelled && !isRunning ? { isCancelled } : {}),
    ...storeObservers(node),
    ...(isRunning || pending.started.has(node) ? { isRunning: true } : {}),
  }
}

function storeObservers(node: GraphNode): { readonly observers?: string[] } {
  const observers: string[] = []
  for (let link = node.subs; link !== undefined; link = link.nextSub) {
    if (link.sub instanceof SpinNode) observers.push(link.sub.addr)
  }
  return observers.length < 2 ? {} : { observers }
}

function storeLog(node: SpinNode, pending: Pending): StoredEntry[] {
  const entries: StoredEntry[] = []
  if ((node.flags & STALE) !== 0) return entries
  for (let index = 0; index < node.log.length; index++) entries.push(storeEntry(node.log.at(index) as Entry))
  const parked = node.run?.parked
  const answer = parked && pending.answers.get(parked)
  if (parked?.entry !== undefined && answer !== undefined) entries.push(storeAnswer(parked.entry, answer))
  return entries
}

function storeEntry(entry: Entry): StoredEntry {
  const { kind, key, path, n, target, isError, value, link, order } = entry
  const addr = target instanceof Object && 'addr' in target ? target.addr : target
  const stamp = link?.stamp ?? (entry instanceof UnboundEntry ? entry.stamp : undefined)
  return {
    kind,
    key,
    path,
    n,
    value,
    ...(addr === undefined ? {} : { target: addr as string }),
    ...(isError ? { isError } : {}),
    ...(stamp === undefined ? {} : { stamp }),
    ...(order === 0 ? {} : { order }),
  }
}

function storeAnswer(open: Entry, result: Result<unknown>): StoredEntry {
  const { value: _, ...entry } = storeEntry(open)
  return result.ok ? { ...entry, value: result.value } : { ...entry, value: result.error, isError: true }
}

function* storeEvents(events: readonly ReactiveEvent[]): Generator<StoredEvent> {
  for (const event of events) {
    if (event.type === 'signal-change') yield { type: event.type, addr: event.node.addr }
    else if (event.type === 'deferred-delivery') yield { type: event.type, addr: event.node.addr, result: event.result }
    else if (event.type === 'mailbox-post') yield { type: event.type, addr: event.node.addr, message: event.message }
  }
}

function storeTimers(context: ReactiveContext, places: ReadonlyMap<string, Place>): StoredTimer[] {
  const asleep = [...(context.restored?.timers ?? [])].map(([order, timer]) => ({ order, timer }))
  for (const node of places.values()) {
    if (!(node instanceof SpinNode) || (node.flags & DISPOSED) !== 0) continue
    const wake = node.run === undefined ? context.wakes.get(node) : node.run.parked?.wake
    if (wake === undefined || node.run?.parked?.arrival !== undefined) continue
    const remainingMs = Math.max(0, wake.at - context.now())
    asleep.push({ order: wake.order, timer: { spin: node.addr, addr: wake.addr, remainingMs } })
  }
  return asleep.sort((a, b) => a.order - b.order).map(({ timer }) => timer)
}
