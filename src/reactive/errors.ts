import { MillraceError } from '../errors.js'

/**
 * Every error of `millrace/reactive`. Each extends `MillraceError`, has a stable `code`, and its message names
 * the thing, what was expected, what came and what to try.
 */

/** The caller created or wrote a cell where no context is current. */
export class NoContextError extends MillraceError {
  constructor(what: string) {
    super('E_NO_CONTEXT', `${what}: no current context: call inside ctx.enter(...)`)
  }
}

/** The context was stopped or closed; it runs nothing any more. */
export class ContextStoppedError extends MillraceError {
  constructor(what: string, state: string) {
    super('E_CONTEXT_STOPPED', `${what}: the context is ${state}, so nothing of it runs any more; create a new one`)
  }
}

/** The caller read a spin synchronously, or moved the clock, inside a drain: the call would wait for itself. */
export class DerefInDrainError extends MillraceError {
  constructor(what: string) {
    super(
      'E_DEREF_IN_DRAIN',
      `${what}: cannot read a spin synchronously from inside a drain; use yield* waitFor(spin) or ctx.spawn(spin)`,
    )
  }
}

/** `spin.get()` was called while the spin has no valid result. */
export class NotReadyError extends MillraceError {
  constructor(addr: string, why: string) {
    super('E_NOT_READY', `spin ${addr} ${why}; await ctx.run(spin) first, or use result() for the last one`)
  }
}

/** `runSync` of a spin that cannot finish now; its run continues. */
export class NotSettledError extends MillraceError {
  constructor(message: string) {
    super('E_NOT_SETTLED', message)
  }
}

/** A computation depends on itself, or keeps changing what it reads. */
export class CycleError extends MillraceError {
  /** The addresses on the cycle; the first and the last are the same. */
  readonly path: readonly string[]
  constructor(path: readonly string[], message?: string) {
    super(
      'E_REACTIVE_CYCLE',
      message ?? `a computation waits for itself: ${path.join(' -> ')}; break one of these dependencies`,
    )
    this.path = path
  }
}

/** The run was cancelled; `cause` is the reason given to `cancel(reason)`. */
export class CancelledError extends MillraceError {
  constructor(addr: string, reason?: unknown) {
    const why = reason === undefined ? '' : `: ${describe(reason)}`
    super('E_CANCELLED', `spin ${addr} was cancelled${why}`, { cause: reason })
  }
}

/** The spin or signal was disposed; it will not run, and cannot be written. */
export class DisposedError extends MillraceError {
  constructor(addr: string, what = 'spin') {
    super('E_DISPOSED', `${what} ${addr} was disposed and cannot be used again; create a new one`)
  }
}

/** An effect got an argument of the wrong type, a body yielded something else than an effect, or a computed did more than read. */
export class EffectTypeError extends MillraceError {
  constructor(message: string) {
    super('E_EFFECT_TYPE', message)
  }
}

/** An effect such as `track(...)` was used outside the body that created it, or twice. */
export class EffectOutsideSpinError extends MillraceError {
  constructor(kind: string, why: string) {
    super(
      'E_EFFECT_OUTSIDE',
      `${kind}(...) ${why}; write yield* ${kind}(...) directly in the body of a spin, and create it again for each use`,
    )
  }
}

/** The log has dropped entries that a re-run would need, so the body may not observe anything new. */
export class LogLimitError extends MillraceError {
  constructor(addr: string, limit: number) {
    super(
      'E_LOG_LIMIT',
      `${addr}: its log has reached ${limit} entries and has dropped entries, so that nothing new may be observed; ` +
        'use iterate for long loops',
    )
  }
}

/** Two live spins have the same address and contradictory options, or a key is used twice outside any body. */
export class AddressCollisionError extends MillraceError {
  readonly addr: string
  constructor(addr: string, detail: string) {
    super('E_ADDRESS', `${addr} is already taken ${detail}; give the two different keys, or dispose the first`)
    this.addr = addr
  }
}

/** The caller moved the clock of a context that runs on real time. */
export class ClockModeError extends MillraceError {
  constructor(what: string) {
    super(
      'E_CLOCK_MODE',
      `${what} needs a virtual clock; create the context with createSimulation() or { clock: 'virtual' }`,
    )
  }
}

/** A cell of one root context was used in another. */
export class ForeignContextError extends MillraceError {
  constructor(what: string) {
    super(
      'E_FOREIGN_CONTEXT',
      `${what} belongs to another root context; pass its value, or create the cell in the context that uses it`,
    )
  }
}

/** A snapshot cannot be written as text, or a text is not a snapshot. */
export class SerializeError extends MillraceError {
  /** The address of the cell or spin whose state cannot be written; '' when the text as a whole is wrong. */
  readonly addr: string
  /** Where in that state: `value.user.db`. */
  readonly path: string
  constructor(message: string, options: { cause?: unknown; addr?: string; path?: string } = {}) {
    super('E_SERIALIZE', message, options)
    this.addr = options.addr ?? ''
    this.path = options.path ?? ''
  }
}

/** Describes a value for an error message: its type, and its text if that is short. */
export function describe(value: unknown): string {
  if (value instanceof Error) return value.message
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}...` : value)
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`
  if (typeof value === 'symbol') return 'a symbol'
  if (typeof value !== 'object') return `${value as number}`
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== 'Object' ? `a ${name}` : 'an object'
}
