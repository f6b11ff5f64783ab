import type { AddressKind } from '../replay/address.js'
import { Scope } from '../replay/address.js'
import { swapContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import type { EffectNode, EffectOwner } from '../graph/effect.js'
import type { Cleanup } from './cancel.js'
import type { CancelledError } from '../errors.js'
import { EffectTypeError, describe } from '../errors.js'
import type { Entry, ReplayLog } from '../replay/log.js'
import type { Request } from './request.js'
import { Refusal } from './request.js'
import type { SpinNode } from './spin.js'

/** The generator that a body returned. */
export type BodyIterator = Iterator<unknown, unknown, unknown>

/** What a run, or one turn of a loop in it, has created. */
export interface Holdings extends EffectOwner {
  /**
   * Addresses of the children and cells that were created or found again, each with the number of log entries before it; the
   * others are dropped at the end.
   */
  used: Map<string, number> | undefined
  /** Effects created. */
  owned: EffectNode[] | undefined
  /** What to call on cancel. */
  cancelHooks: (() => void)[] | undefined
}

/**
 * One run of a spin's body: the generator, its position, and what it waits for. A spin has at most one run in progress.
 * A superseded run is dead; code that still references it checks `isDead` first.
 */
export class Run implements Holdings {
  readonly node: SpinNode
  readonly context: ReactiveContext
  generator: BodyIterator | undefined
  log: ReplayLog
  /** The request on which the run is parked, or is about to park. */
  parked: Request<unknown> | undefined
  /** Superseded, cancelled, disposed or finished: nothing may resume it. */
  isDead = false
  /** Its code is on the call stack. */
  isDriving = false
  /** Being closed: every effect is refused. */
  isClosing = false
  /** The cancellation to throw into the body, once. */
  cancelled: CancelledError | undefined
  isCancelThrown = false
  /** Set when it ends together with others: its clean-up, which a parent may wait for. */
  cleanup: Cleanup | undefined
  /** It has performed an effect that was not recorded: from here on captured values may differ from the last run's. */
  isLive = false
  scope: Scope
  used: Map<string, number> | undefined
  owned: EffectNode[] | undefined
  cancelHooks: (() => void)[] | undefined
  /** What was created before the loops the run is in, outermost first. */
  readonly #outside: Holdings[] = []
  #hasBegun = false
  /** Errors that effects threw in the body since it last waited. */
  #thrown = 0

  constructor(node: SpinNode, log: ReplayLog) {
    this.node = node
    this.context = node.context
    this.log = log
    this.scope = new Scope(node.addr)
  }

  /** Returns the log entry of an effect; an entry without a recorded answer makes the run live. */
  nextEntry(kind: AddressKind, key: string, target: unknown): Entry {
    const entry = this.log.nextEntry(this.scope, kind, key, target)
    if (!entry.isAnswered) this.isLive = true
    const { tracer } = this.context
    if (tracer !== undefined) tracer.effectRequested(entry)
    return entry
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Starts the generator, or resumes it with the answer on which it is parked. */
  resume(): IteratorResult<unknown, unknown> {
    if (!this.#hasBegun) {
      this.#hasBegun = true
      return this.step('first', undefined)
    }
    const request = this.parked as Request<unknown>
    this.parked = undefined
    const arrival = request.take()
    return arrival.ok ? this.step('next', arrival.value) : this.step('throw', arrival.error)
  }

  /** The body yielded something that is not a request of this run: the error is thrown at the yield. */
  refuse(yielded: unknown): void {
    this.noteThrown()
    this.parked = new Refusal(yielded)
  }

  /** An effect throws in the body. Returns whether the body is a loop that catches such errors and never waits. */
  noteThrown(): boolean {
    return ++this.#thrown > THROWN_MAX
  }

  /** The error of a body that is such a loop. */
  get runaway(): EffectTypeError | undefined {
    if (this.#thrown <= THROWN_MAX) return undefined
    return new EffectTypeError(
      `spin ${this.node.addr} caught ${THROWN_MAX} errors of its effects and never waited in between; ` +
        'rethrow what the body cannot handle, or wait with yield* waitFor(sleep(ms)) before it tries again',
    )
  }

  /** The body waits: its errors are counted from zero again. */
  noteWaiting(): void {
    this.#thrown = 0
  }

  /** A child or cell was created, or found again. */
  noteUsed(addr: string): void {
    ;(this.used ??= new Map()).set(addr, this.log.cursor)
  }

  /** Children in progress that the next run cannot keep: they were created after the entry `cutAt`, and declare no `deps`. */
  *replacedChildren(cutAt: number): Generator<SpinNode> {
    for (const { used } of [...this.#outside, this]) {
      for (const [addr, before] of used ?? []) {
        const child = this.node.children?.get(addr)
        if (child?.run !== undefined && before > cutAt && child.captures === undefined) yield child
      }
    }
  }

  /** Called when a loop begins: sets aside what the run created, so that each turn has its own holdings. */
  enterLoop(): void {
    this.#outside.push(this.takeHoldings())
  }

  /** Called when the loop ends: merges what was set aside with what the last turn created. */
  leaveLoop(): void {
    const { used, owned, cancelHooks } = this.#outside.pop() as Holdings
    if (used !== undefined) this.used = new Map([...used, ...(this.used ?? [])])
    if (owned !== undefined) this.owned = [...owned, ...(this.owned ?? [])]
    if (cancelHooks !== undefined) this.cancelHooks = [...cancelHooks, ...(this.cancelHooks ?? [])]
  }

  /** Returns the current holdings and clears them. */
  takeHoldings(): Holdings {
    const { used, owned, cancelHooks } = this
    this.used = undefined
    this.owned = undefined
    this.cancelHooks = undefined
    return { used, owned, cancelHooks }
  }

  /** The run ends inside a loop: adds the effects and hooks that were set aside, so that they end with those of the turn. */
  gatherHoldings(): void {
    for (const held of this.#outside.toReversed()) {
      if (held.owned !== undefined) this.owned = [...held.owned, ...(this.owned ?? [])]
      if (held.cancelHooks !== undefined) this.cancelHooks = [...held.cancelHooks, ...(this.cancelHooks ?? [])]
      held.owned = undefined
      held.cancelHooks = undefined
    }
  }

  /** Advances the generator in the spin's async-local stores, with the context and the run current. */
  step(how: How, input: unknown): IteratorResult<unknown, unknown> {
    const { stores } = this.node
    const { context } = this
    if (stores === undefined || context.activeStores === stores) return this.stepHere(how, input)
    const before = context.activeStores
    context.activeStores = stores
    try {
      return stores.runInAsyncScope(stepHere, undefined, this, how, input)
    } finally {
      context.activeStores = before
    }
  }

  /** Like `step`, when the stores are already in place. */
  stepHere(how: How, input: unknown): IteratorResult<unknown, unknown> {
    const { context } = this
    const { activeRun, cause, graph } = context
    const { active } = graph
    const before = swapContext(context)
    context.activeRun = this
    context.cause = this.node
    graph.active = undefined
    this.isDriving = true
    try {
      if (how !== 'first') return (this.generator as Required<BodyIterator>)[how](input)
      // For a generator function this call does not execute the body yet.
      const generator = openBody(this.node)
      this.generator = generator
      return generator.next()
    } finally {
      this.isDriving = false
      graph.active = active
      context.cause = cause
      context.activeRun = activeRun
      swapContext(before)
    }
  }
}

/** After so many errors of effects that a body has caught without waiting, it counts as a loop that would never end. */
const THROWN_MAX = 10_000

type How = 'first' | 'next' | 'throw' | 'return'

const stepHere = (run: Run, how: How, input: unknown): IteratorResult<unknown, unknown> => run.stepHere(how, input)

/** Calls the body. It may also return one effect, as in `() => iterate(...)`: then that effect is driven. */
function openBody(node: SpinNode): BodyIterator {
  const opened: unknown = node.body()
  if (node.isBodyChecked) return opened as BodyIterator
  if (isBodyIterator(opened)) {
    node.isBodyChecked = true
    return opened
  }
  const inner: unknown = (opened as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator]?.()
  if (isBodyIterator(inner)) return inner
  if (opened instanceof Promise) opened.catch(() => undefined) // The error below is reported; a rejection is not needed.
  throw notAGenerator(opened)
}

function isBodyIterator(value: unknown): value is BodyIterator {
  if (typeof value !== 'object' || value === null) return false
  const { next, throw: raise, return: close } = value as Record<string, unknown>
  return typeof next === 'function' && typeof raise === 'function' && typeof close === 'function'
}

export function notAGenerator(got: unknown): TypeError {
  return new TypeError(
    `spin body must be a generator function; use yield* waitFor(promise) instead of await (got ${describe(got)})`,
  )
}
