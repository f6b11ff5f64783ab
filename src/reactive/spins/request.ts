import { ambientContext } from '../context/ambient.js'
import { CancelledError, EffectOutsideSpinError, EffectTypeError, describe } from '../errors.js'
import type { Entry } from '../replay/log.js'
import type { Result } from '../result.js'
import { failure } from '../result.js'
import type { Run } from './run.js'
import type { SpinNode } from './spin.js'

/** An operation that a body requests from the engine. Use it with `yield*`. */
export interface Op<T> {
  [Symbol.iterator](): Iterator<EffectRequest, T, unknown>
}

/** What a body yields to the engine; only the effects of this library create it. */
export interface EffectRequest {
  readonly name: string
}

/** The end of a sleep, for a copy of the run in a fork or restored context: it sleeps for the rest of the time only. */
export interface Wake {
  /** The address of the sleep. */
  readonly addr: string
  readonly at: number
  /** Timers that are due at the same time fire in this order. */
  readonly order: number
}

/** Returned by `perform` when there is no answer yet. */
export const PARK: unique symbol = Symbol('park')

/**
 * The base of every effect: an iterator of at most one yield. When the answer is available, from the log or live, the
 * effect returns it at once without a yield; so a loop over available answers needs no stack and no turn. Otherwise the
 * request yields itself, the run parks on it, and `arrive` delivers the answer.
 */
export abstract class Request<T> implements EffectRequest, Op<T>, Iterator<EffectRequest, T, unknown> {
  readonly name: string
  readonly run: Run | undefined = ambientContext()?.activeRun
  /** The log entry for the answer, if there is one. */
  entry: Entry | undefined
  /** The answer that arrived while the run was parked; the body does not have it yet. */
  arrival: Result<unknown> | undefined
  #state: 'new' | 'parked' | 'used' = 'new'

  constructor(name: string) {
    this.name = name
  }

  /** Returns the answer, throws, or returns `PARK` after registering for the answer. */
  protected abstract perform(run: Run): unknown

  /** Unregisters; called when its run is superseded, cancelled or disposed. */
  release(): void {}

  /** The spins that it waits for. */
  get targets(): readonly SpinNode[] {
    return NONE
  }

  /** For a sleep: when it ends. */
  get wake(): Wake | undefined {
    return undefined
  }

  /** For a sleep: arms its timer again, after all that are armed now. */
  rearm(): void {}

  /** Called instead of resuming when the run of this request has ended before the answer arrived. */
  undelivered(_result: Result<unknown>): void {}

  /** The next spin that must be settled before there can be an answer; each is returned once. */
  nextChild(): SpinNode | undefined {
    return undefined
  }

  /** Called when one of its targets has completed; `poll` follows. */
  targetCompleted(_target: SpinNode): void {}

  /** True when the answer has arrived or can be taken now. */
  poll(): boolean {
    return this.arrival !== undefined
  }

  /** Writes the arrived answer to the log and returns it. */
  take(): Result<unknown> {
    const arrival = this.arrival as Result<unknown>
    this.arrival = undefined
    const { entry } = this
    if (entry !== undefined) this.run?.log.settle(entry, !arrival.ok, arrival.ok ? arrival.value : arrival.error)
    return arrival
  }

  /** Queues the event that delivers the answer. */
  protected arrive(result: Result<unknown>): void {
    const context = this.run?.context
    if (context === undefined || context.state !== 'running') return
    context.enqueue({ type: 'resume', request: this, result })
  }

  [Symbol.iterator](): Iterator<EffectRequest, T, unknown> {
    return this
  }

  next(answer?: unknown): IteratorResult<EffectRequest, T> {
    if (this.#state === 'parked') {
      this.#state = 'used'
      return { done: true, value: answer as T }
    }
    let value: unknown
    try {
      value = this.perform(this.#begin())
    } catch (error) {
      if (this.run?.noteThrown() !== true) throw error
      value = PARK // The engine gets control at the yield, and ends the run.
    }
    if (value !== PARK) return { done: true, value: value as T }
    this.#state = 'parked'
    ;(this.run as Run).parked = this
    return { done: false, value: this }
  }

  throw(error: unknown): IteratorResult<EffectRequest, T> {
    this.#state = 'used'
    throw error
  }

  return(value?: T): IteratorResult<EffectRequest, T> {
    this.#state = 'used'
    return { done: true, value: value as T }
  }

  #begin(): Run {
    if (this.#state === 'used') throw new EffectOutsideSpinError(this.name, 'was used a second time')
    const run = ambientContext()?.activeRun
    if (run === undefined) throw new EffectOutsideSpinError(this.name, 'was used outside the body of a spin')
    if (run !== this.run) throw new EffectOutsideSpinError(this.name, 'was created in another run or outside a body')
    this.#state = 'used'
    refuseWhenEnding(run, this.name)
    return run
  }
}

const NONE: readonly SpinNode[] = []

/** Replaces a yielded value that is no effect; its answer is the error. */
export class Refusal extends Request<never> {
  constructor(yielded: unknown) {
    super('yield')
    const hint =
      yielded instanceof Request ? 'write yield* with the star' : 'write yield* track(...) or yield* waitFor(...)'
    this.arrival = failure(
      new EffectTypeError(`a spin body yielded ${describe(yielded)}, which is not an effect on its own; ${hint}`),
    )
  }

  protected override perform(): typeof PARK {
    return PARK
  }
}

/** Throws in a run that is being closed, and throws the cancellation once in a cancelled run. */
export function refuseWhenEnding(run: Run, name: string): void {
  if (run.isClosing) {
    const error = new CancelledError(run.node.addr, `its run was superseded and may not use ${name} while it unwinds`)
    run.context.fault('continuation-fault', name, error, run.node.addr)
    throw error
  }
  if (run.cancelled !== undefined && !run.isCancelThrown) {
    run.isCancelThrown = true
    throw run.cancelled
  }
}

/** Returns a recorded answer, or throws a recorded error. */
export function replay(entry: Entry): unknown {
  if (entry.isError) throw entry.value
  return entry.value
}

/** Returns the run whose body is executing; throws outside one. */
export function requireRun(name: string): Run {
  const run = ambientContext()?.activeRun
  if (run === undefined) throw new EffectOutsideSpinError(name, 'was used outside the body of a spin')
  refuseWhenEnding(run, name)
  return run
}
