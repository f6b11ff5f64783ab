import { ambientContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, EffectTypeError, ForeignContextError } from '../errors.js'

/**
 * A handle names a place in a context; the context holds the state. Reads and writes work from anywhere: outside a context
 * they use the one that created the cell. Inside a fork the same handle names the fork's own state of that place.
 */
export interface Handle {
  /** The context that created it. */
  readonly home: ReactiveContext
  /** Its address: the same in every run that takes the same path. */
  readonly addr: string
  /** Called when the body that created it completed a run without creating it again. */
  dropped(): void
  /** For a cell with state of its own that is not in nodes: the one that a fork uses. */
  forkTo?(context: ReactiveContext): Handle
}

/** The base of handles that are not nodes of the graph. */
export abstract class Cell implements Handle {
  readonly home: ReactiveContext
  readonly addr: string

  constructor(home: ReactiveContext, addr: string) {
    this.home = home
    this.addr = addr
  }

  dropped(): void {}

  protected writable(what: string): ReactiveContext {
    return writableContext(this, what)
  }

  protected readable(what: string): ReactiveContext {
    return readableContext(this, what)
  }
}

/** Whether a cell exists in a context: it was created there, or in one that this was forked from. */
export function isIn(cell: Handle, context: ReactiveContext): boolean {
  const { home } = cell
  for (let at: ReactiveContext | undefined = context; at !== undefined; at = at.parent) if (at === home) return true
  return false
}

export function requireIn(cell: Handle, context: ReactiveContext, what: string): void {
  if (!isIn(cell, context)) throw new ForeignContextError(`${what}: ${cell.addr}`)
}

/**
 * Returns the context to write to: the current one if there is one, else the one that created the cell. Throws when the
 * cell does not exist in it, it is stopped, or evaluates a computed.
 */
export function writableContext(cell: Handle, what: string): ReactiveContext {
  const { home } = cell
  const context = ambientContext() ?? home
  if (context !== home) requireIn(cell, context, what)
  if (context.graph.evaluating.length > 0) {
    throw new EffectTypeError(`${what}: a computed may only read; write from an effect, a spin or plain code`)
  }
  if (context.state !== 'running') throw new ContextStoppedError(what, context.state)
  return context
}

/** Returns the context to read from: the current one if the cell exists there, else the one that created it. */
export function readableContext(cell: Handle, what: string): ReactiveContext {
  const current = ambientContext()
  const context = current !== undefined && isIn(cell, current) ? current : cell.home
  if (context.state === 'closed') throw new ContextStoppedError(what, context.state)
  return context
}
