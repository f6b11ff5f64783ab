import { ambientContext, requireContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, EffectTypeError, ForeignContextError } from '../errors.js'

/**
 * The base of every handle. A handle names a place in a context; the context holds the state. Reads work from anywhere.
 * Writes need a current context of the same root, because the same handle will name another place in a fork.
 */
export abstract class Cell {
  readonly home: ReactiveContext
  /** Its address: the same in every run that takes the same path. */
  readonly addr: string

  constructor(home: ReactiveContext, addr: string) {
    this.home = home
    this.addr = addr
  }

  /** Called when the body that created it completed a run without creating it again. */
  dropped(): void {}

  /** Returns the context to write to; throws when there is none, or it is foreign, stopped, or evaluates a computed. */
  protected writable(what: string): ReactiveContext {
    const context = requireContext(what)
    if (context.root !== this.home.root) throw new ForeignContextError(`${what}: ${this.addr}`)
    if (context.graph.computing > 0) {
      throw new EffectTypeError(`${what}: a computed may only read; write from an effect, a spin or plain code`)
    }
    if (context.state !== 'running') throw new ContextStoppedError(what, context.state)
    return context
  }

  /** Returns the context to read from: the current one if it has the same root, else the one that created the cell. */
  protected readable(what: string): ReactiveContext {
    const context = ambientContext()
    if (context === undefined || context.root !== this.home.root) return this.open(this.home, what)
    return this.open(context, what)
  }

  private open(context: ReactiveContext, what: string): ReactiveContext {
    if (context.state === 'closed') throw new ContextStoppedError(what, context.state)
    return context
  }
}
