import { ambientContext, requireContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, EffectTypeError, ForeignContextError } from '../errors.js'

/**
 * What every handle is: a name for a place in a context. The state is the context's; the handle only says where.
 * Reads work from anywhere. Writes need a current context of the same root, because the same handle will name
 * another place in a fork.
 */
export abstract class Cell {
  readonly home: ReactiveContext
  /** Where it stands: the same in every run that takes the same path. */
  readonly addr: string

  constructor(home: ReactiveContext, addr: string) {
    this.home = home
    this.addr = addr
  }

  /** Called when the run of the body it was made in no longer has it. */
  dropped(): void {}

  /** The context a write goes to; throws when there is none, when it is foreign, stopped, or in a computed. */
  protected writable(what: string): ReactiveContext {
    const context = requireContext(what)
    if (context.root !== this.home.root) throw new ForeignContextError(`${what}: ${this.addr}`)
    if (context.graph.computing > 0) {
      throw new EffectTypeError(`${what}: a computed may only read; write from an effect, a spin or plain code`)
    }
    if (context.state !== 'running') throw new ContextStoppedError(what, context.state)
    return context
  }

  /** The context a read looks into: the current one where it is of the same root, else the one it was made in. */
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
