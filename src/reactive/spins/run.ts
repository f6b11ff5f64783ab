import type { Kind } from '../replay/address.js'
import { Scope } from '../replay/address.js'
import { swapContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import type { EffectNode, EffectOwner } from '../graph/effect.js'
import type { CancelledError } from '../errors.js'
import { describe } from '../errors.js'
import type { Entry, ReplayLog } from '../replay/log.js'
import type { Request } from './request.js'
import { Refusal } from './request.js'
import type { SpinNode } from './spin.js'

/** What drives a body: the generator it returned. */
export type Driven = Iterator<unknown, unknown, unknown>

/** What a run, or one turn of a loop in it, has made. */
export interface Holdings extends EffectOwner {
  /** Children and cells met, by address; what is missing at the end is dropped. */
  met: Set<string> | undefined
  /** Effects created. */
  owned: EffectNode[] | undefined
  /** What to call on cancel. */
  cancelHooks: (() => void)[] | undefined
}

/**
 * One run of a spin's body: a generator, how far it has come, and what it waits for. A spin has at most one run in
 * progress; a superseded run is dead, and whatever still points to it finds that out before doing anything.
 */
export class Run implements Holdings {
  readonly node: SpinNode
  readonly context: ReactiveContext
  generator: Driven | undefined
  log: ReplayLog
  /** The request it is parked on, or is about to be. */
  parked: Request<unknown> | undefined
  /** Superseded, cancelled, disposed or finished: nothing may resume it. */
  isDead = false
  /** Its code is on the call stack. */
  isDriving = false
  /** Being closed: every effect is refused. */
  isClosing = false
  /** Set when it is to be cancelled; thrown into the body once. */
  cancelled: CancelledError | undefined
  isCancelThrown = false
  /** It has asked for something that was not recorded: from here on captures may differ from the last run's. */
  isLive = false
  scope: Scope
  met: Set<string> | undefined
  owned: EffectNode[] | undefined
  cancelHooks: (() => void)[] | undefined
  /** What was made before the loops it is in, outermost first. */
  readonly #outside: Holdings[] = []
  #hasBegun = false

  constructor(node: SpinNode, log: ReplayLog) {
    this.node = node
    this.context = node.context
    this.log = log
    this.scope = new Scope(node.addr)
  }

  /** Asks the log; an answer that is not recorded makes the run live. */
  ask(kind: Kind, key: string, target: unknown): Entry {
    const entry = this.log.ask(this.scope, kind, key, target)
    if (!entry.isAnswered) this.isLive = true
    const { tracer } = this.context
    if (tracer !== undefined) tracer.asked(entry)
    return entry
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Starts the generator, or gives it the answer it is parked on. */
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

  /** The body yielded something that is not a request of this run: it is told so at the yield. */
  refuse(yielded: unknown): void {
    this.parked = new Refusal(yielded)
  }

  /** A loop begins: what was made so far is put aside, and what its turns make is theirs. */
  enterLoop(): void {
    this.#outside.push(this.takeHoldings())
  }

  /** The loop is over: what was put aside and what its last turn made are together again. */
  leaveLoop(): void {
    const { met, owned, cancelHooks } = this.#outside.pop() as Holdings
    if (met !== undefined) this.met = new Set([...met, ...(this.met ?? [])])
    if (owned !== undefined) this.owned = [...owned, ...(this.owned ?? [])]
    if (cancelHooks !== undefined) this.cancelHooks = [...cancelHooks, ...(this.cancelHooks ?? [])]
  }

  /** Gives what is in place, and leaves nothing there. */
  takeHoldings(): Holdings {
    const { met, owned, cancelHooks } = this
    this.met = undefined
    this.owned = undefined
    this.cancelHooks = undefined
    return { met, owned, cancelHooks }
  }

  /** The run ends inside a loop: effects and hooks made before it end and are called with those of the turn. */
  gatherHoldings(): void {
    for (const held of this.#outside.toReversed()) {
      if (held.owned !== undefined) this.owned = [...held.owned, ...(this.owned ?? [])]
      if (held.cancelHooks !== undefined) this.cancelHooks = [...held.cancelHooks, ...(this.cancelHooks ?? [])]
      held.owned = undefined
      held.cancelHooks = undefined
    }
  }

  /** Lets the body go on, with the context, the run and the caller's stores in place. */
  step(how: How, input: unknown): IteratorResult<unknown, unknown> {
    const { bindings } = this.node
    const { context } = this
    if (bindings === undefined || context.bindingsNow === bindings) return this.stepHere(how, input)
    const before = context.bindingsNow
    context.bindingsNow = bindings
    try {
      return bindings.runInAsyncScope(stepHere, undefined, this, how, input)
    } finally {
      context.bindingsNow = before
    }
  }

  /** The same, when the stores are right already. */
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
      if (how !== 'first') return (this.generator as Required<Driven>)[how](input)
      // For a generator function this call runs none of its code yet.
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

type How = 'first' | 'next' | 'throw' | 'return'

const stepHere = (run: Run, how: How, input: unknown): IteratorResult<unknown, unknown> => run.stepHere(how, input)

/** Calls the body. It may also return one effect, as in `() => iterate(...)`: then that is what is driven. */
function openBody(node: SpinNode): Driven {
  const opened: unknown = node.body()
  if (node.isBodyChecked) return opened as Driven
  if (isDriven(opened)) {
    node.isBodyChecked = true
    return opened
  }
  const inner: unknown = (opened as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator]?.()
  if (isDriven(inner)) return inner
  if (opened instanceof Promise) opened.catch(() => undefined) // The mistake is reported; its outcome is of no use.
  throw notAGenerator(opened)
}

function isDriven(value: unknown): value is Driven {
  if (typeof value !== 'object' || value === null) return false
  const { next, throw: raise, return: close } = value as Record<string, unknown>
  return typeof next === 'function' && typeof raise === 'function' && typeof close === 'function'
}

export function notAGenerator(got: unknown): TypeError {
  return new TypeError(
    `spin body must be a generator function; use yield* waitFor(promise) instead of await (got ${describe(got)})`,
  )
}
