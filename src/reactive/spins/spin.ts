import type { AddressKind } from '../replay/address.js'
import { formatAddress } from '../replay/address.js'
import { ambientContext, requireContext } from '../context/ambient.js'
import { cancelSpin, disposeSpin } from './cancel.js'
import type { Handle } from '../graph/cell.js'
import { isIn, requireIn, readableContext } from '../graph/cell.js'
import type { ReactiveContext } from '../context/context.js'
import type { EffectOwner } from '../graph/effect.js'
import {
  AddressCollisionError,
  DerefInDrainError,
  DisposedError,
  EffectTypeError,
  NotReadyError,
  describe,
} from '../errors.js'
import { DISPOSED, FOLLOWING, MARKED, REPLAY, SPIN, STALE, markObservers } from '../graph/graph.js'
import type { Stores } from '../host.js'
import { ReplayLog } from '../replay/log.js'
import type { Op, Request } from './request.js'
import type { Result } from '../result.js'
import { unwrap } from '../result.js'
import type { Run } from './run.js'
import { notAGenerator } from './run.js'
import { SpinState } from './spin-state.js'
import type { Equality } from '../graph/signal.js'
import { checkCellOptions, refuseInComputed } from '../graph/signal.js'

/** The code of a spin: a generator function without arguments. */
export type Body<T> = () => Op<T>

export interface SpinOptions<T> {
  /** The name of the spin in addresses and messages. Default: none, spins are numbered. */
  readonly key?: string | undefined
  /** For a spin created in another's body: while these values are the same, a new closure does not run it again. */
  readonly deps?: readonly unknown[] | undefined
  /** When a new result counts as unchanged, so that dependents do not run. Default: `Object.is`. */
  readonly equals?: Equality<T> | undefined
}

/** A cached, resumable computation. It runs when it is run, spawned or waited for, and again when something it read changes. */
export interface Spin<T> {
  readonly addr: string
  /** It has completed at least once. */
  readonly completed: boolean
  /** A run is in progress, parked or not. */
  readonly running: boolean
  /** Something it depends on may have changed since the last result. */
  readonly dirty: boolean
  /** The last result, even while dirty; undefined before the first. */
  result(): Result<T> | undefined
  /** The valid value, or throws its error; throws `NotReadyError` when there is none. Refused inside a drain. */
  get(): T
  /** Requests cancellation: `CancelledError` is thrown at the point where the body is parked, and becomes the result. */
  cancel(reason?: unknown): void
  /** Cancels it and drops its state: no result, no observers, and it never runs again. */
  dispose(): void
}

/**
 * Creates a spin in the current context; inside a body, as a child of that body's spin.
 *
 * ```ts
 * import { createContext, read, signal, spin } from 'millrace/reactive'
 *
 * const ctx = createContext()
 * const price = ctx.enter(() => signal(100))
 * const tax = ctx.enter(() => spin(function* () {
 *   return (yield* read(price)) * 0.2
 * }))
 * const due = await ctx.run(tax) // 20
 * ```
 */
export function spin<T>(body: Body<T>, options: SpinOptions<T> = {}): Spin<T> {
  const context = requireContext('spin')
  refuseInComputed(context, 'spin')
  checkCellOptions('spin', options)
  checkBody(body)
  const node = open(context, 'spin', body as Body<unknown>, options as SpinOptions<unknown>)
  return handleOf(node) as unknown as Spin<T>
}

/**
 * The handle of a spin that is created now. A child keeps its handle, because its owner creates it again and must get the
 * same one. Another node does not refer to its handle: its collection shows that only the engine can use the spin.
 */
function handleOf(node: SpinNode): SpinCell {
  if (node.owner !== undefined) return (node.cell ??= new SpinCell(node))
  const handle = new SpinCell(node)
  node.context.noteHandle(handle)
  return handle
}

/** Returns the node of a handle, or creates a spin for a bare body. */
export function nodeOf(context: ReactiveContext, spin: unknown, what: string): SpinNode {
  if (spin instanceof SpinCell) {
    requireIn(spin, context, what)
    return context.nodeFor(spin.node)
  }
  if (typeof spin !== 'function') {
    throw new EffectTypeError(`${what} takes a spin or a generator function, got ${describe(spin)}`)
  }
  checkBody(spin)
  return open(context, what === 'spawn' ? 'spawn' : 'spin', spin as Body<unknown>, {})
}

function open(
  context: ReactiveContext,
  kind: AddressKind,
  body: Body<unknown>,
  options: SpinOptions<unknown>,
): SpinNode {
  const run = context.activeRun
  if (run !== undefined) return openChild(run, kind, body, options)
  const { scope } = context
  if (options.key !== undefined) context.refuseTaken(kind, options.key)
  const isPlain = kind === 'spin' && options.key === undefined && context.restored === undefined
  const name = isPlain ? scope.next('spin', '') : scope.address(kind, options.key ?? '')
  const node = new SpinNode(context, name, body, options, undefined)
  if (options.key !== undefined) context.register(node, kind, options.key)
  context.restored?.claimSpin(node)
  return node
}

function openChild(run: Run, kind: AddressKind, body: Body<unknown>, options: SpinOptions<unknown>): SpinNode {
  const owner = run.node
  const addr = run.scope.address(kind, options.key ?? '')
  const children = (owner.children ??= new Map<string, SpinNode>())
  run.noteUsed(addr)
  const known = children.get(addr)
  if (known !== undefined) {
    known.reopen(body, options, run.isLive)
    return known
  }
  const child = new SpinNode(owner.context, addr, body, options, owner)
  children.set(addr, child)
  owner.context.restored?.claimSpin(child)
  return child
}

export class SpinNode extends SpinState implements EffectOwner, Handle {
  /** The address, or the number of a spin that was created without a key outside any body: its text is made when asked for. */
  readonly #name: string | number
  owner: SpinNode | undefined
  readonly equals: Equality<unknown> | undefined
  /** The handle of a child; a fork's node has the handle of the node it was copied from. */
  cell: SpinCell | undefined
  readonly log: ReplayLog
  body: Body<unknown>
  result: Result<unknown> | undefined
  run: Run | undefined
  /** Calls of `run` that wait for the next result. */
  callers: Caller[] | undefined
  /** Requests of other runs parked on this spin. */
  waiters: Set<Request<unknown>> | undefined
  /** While it cannot be validated: the dependency whose result it needs first. */
  blockedOn: SpinNode | undefined
  /** Set by `spawn`: handles an error that no caller waits for. */
  spawned: { readonly onError: ((error: unknown) => void) | undefined } | undefined
  /** The async-local stores in which its body runs: those of the code that started it. */
  stores: Stores | undefined

  constructor(
    context: ReactiveContext,
    name: string | number,
    body: Body<unknown>,
    options: SpinOptions<unknown>,
    owner: SpinNode | undefined,
    cell?: SpinCell,
  ) {
    super(context.graph, SPIN)
    this.#name = name
    this.body = body
    if (options.deps !== undefined) this.captures = options.deps
    this.equals = options.equals
    this.owner = owner
    this.log = new ReplayLog(context.logPolicy)
    this.cell = cell
  }

  get context(): ReactiveContext {
    return this.graph.context
  }

  get addr(): string {
    const name = this.#name
    return typeof name === 'string' ? name : formatAddress(this.context.scope.path, 'spin', '', name)
  }

  get home(): ReactiveContext {
    return this.graph.context
  }

  dropped(): void {}

  /** It has a result, and nothing it depends on has changed since. */
  get isSettled(): boolean {
    if (this.result === undefined || this.run !== undefined || this.isBeingChecked) return false
    return (this.flags & (MARKED | STALE | REPLAY)) === 0
  }

  /** It can be settled now: it never ran, or may be out of date. */
  get needsSettling(): boolean {
    if (this.isOnStack || (this.flags & DISPOSED) !== 0) return false
    if ((this.flags & (MARKED | STALE | REPLAY)) !== 0) return true
    return this.run === undefined && this.result === undefined
  }

  /** It has no observer, caller or waiter, and was not spawned. */
  get isUnobserved(): boolean {
    const { callers, waiters } = this
    return this.subs === undefined && !callers?.length && !waiters?.size && this.spawned === undefined
  }

  /** Nothing but its owner waits for it or has its result. */
  get isOnlyForOwner(): boolean {
    const { callers, waiters, owner } = this
    if (callers?.length || waiters?.size || this.spawned !== undefined) return false
    for (let link = this.subs; link !== undefined; link = link.nextSub) if (link.sub !== owner) return false
    return true
  }

  /** The owner's body created it again. While the owner replays, the closure cannot have changed. */
  reopen(body: Body<unknown>, options: SpinOptions<unknown>, isOwnerLive: boolean): void {
    if (shapeOf(options.equals) !== shapeOf(this.equals)) {
      throw new AddressCollisionError(this.addr, 'by a spin with another `equals`')
    }
    if (!isOwnerLive) return
    if (areSame(this.captures, options.deps)) return
    this.body = body
    this.isBodyChecked = false
    this.captures = options.deps
    this.flags &= ~FOLLOWING // In a fork, the parent's result is one of another closure.
    if (this.run === undefined && this.result === undefined) return
    this.flags |= STALE
    // The owner's current run replaced the body. Unless that run has used the old result, the owner is not out of date.
    const { owner } = this
    markObservers(this, owner?.run?.log.recall(this) === undefined ? owner : undefined)
    this.context.spinRunner.noteStale(this)
  }
}

/** The promise callbacks of one call of `run`. */
export interface Caller {
  resolve(value: unknown): void
  reject(error: unknown): void
}

export class SpinCell implements Spin<unknown>, Handle {
  readonly node: SpinNode

  constructor(node: SpinNode) {
    this.node = node
  }

  get home(): ReactiveContext {
    return this.node.context
  }

  get addr(): string {
    return this.node.addr
  }

  dropped(): void {}

  get completed(): boolean {
    return this.#nodeHere().result !== undefined
  }

  get running(): boolean {
    const node = this.#nodeHere()
    return node.run !== undefined || (node.flags & REPLAY) !== 0
  }

  get dirty(): boolean {
    return (this.#nodeHere().flags & (MARKED | STALE)) !== 0
  }

  result(): Result<unknown> | undefined {
    return this.#nodeHere().result
  }

  get(): unknown {
    const context = readableContext(this, 'spin.get')
    if (context.isDraining) throw new DerefInDrainError('spin.get')
    if (ambientContext()?.graph.active !== undefined) {
      throw new EffectTypeError(
        'spin.get: a computed or effect would not run again on changes; wait for the spin in a spin',
      )
    }
    const node = context.nodeFor(this.node)
    if ((node.flags & DISPOSED) !== 0) throw new DisposedError(node.addr)
    if (node.result === undefined) throw new NotReadyError(node.addr, 'has no result yet')
    if (!node.isSettled) throw new NotReadyError(node.addr, 'is dirty')
    return unwrap(node.result)
  }

  cancel(reason?: unknown): void {
    const node = this.#nodeHere()
    if (node.context.state === 'running') cancelSpin(node, reason)
  }

  dispose(): void {
    disposeSpin(this.#nodeHere())
  }

  /** The spin in the current context, if it exists there, else where it was created. */
  #nodeHere(): SpinNode {
    const { node } = this
    if (!node.graph.isForked) return node
    const context = ambientContext()
    return context !== undefined && isIn(this, context) ? context.nodeFor(node) : node
  }
}

const isAsync = /^\[object Async/

function checkBody(body: unknown): void {
  if (typeof body === 'function' && !isAsync.test(Object.prototype.toString.call(body))) return
  throw notAGenerator(body)
}

function shapeOf(equals: unknown): string {
  return equals === false ? 'never' : typeof equals
}

function areSame(a: readonly unknown[] | undefined, b: readonly unknown[] | undefined): boolean {
  if (a === undefined || b === undefined || a.length !== b.length) return false
  return a.every((item, index) => Object.is(item, b[index]))
}
