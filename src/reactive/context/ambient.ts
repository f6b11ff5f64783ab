import type { ReactiveContext } from './context.js'
import { NoContextError } from '../errors.js'
import * as host from '../host.js'

/**
 * Which context is current.
 *
 * Inside a drain and inside `ctx.enter(f)` it is one variable, set around the call and restored before the call returns.
 * An async-local store carries it through promises, timers and callbacks. The variable is the only module state of this
 * engine: it names the running context, as a call stack does, and is undefined between turns. Contexts of one process
 * therefore stay independent.
 */
let current: ReactiveContext | undefined

const store = host.AsyncStores === undefined ? undefined : new host.AsyncStores<ReactiveContext>()

export function ambientContext(): ReactiveContext | undefined {
  return current ?? store?.getStore()
}

export function requireContext(what: string): ReactiveContext {
  const context = current ?? store?.getStore()
  if (context === undefined) throw new NoContextError(what)
  return context
}

/** Makes `context` current for `f`, which gets it as its argument, and for everything `f` starts. */
export function enter<R>(context: ReactiveContext, f: (context: ReactiveContext) => R): R {
  const before = current
  current = context
  try {
    return isStored(context) ? f(context) : (store as NonNullable<typeof store>).run(context, f, context)
  } finally {
    current = before
  }
}

/** Runs `f` so that what it starts gets no context. */
export function outsideContext<R>(f: () => R): R {
  return store === undefined ? f() : store.exit(f)
}

/** True when what the current code starts gets `context` already, or nothing can carry it. */
function isStored(context: ReactiveContext): boolean {
  return store === undefined || store.getStore() === context
}

/** Makes `context` current until the caller restores the result. Cheaper than `enter`: the async-local store is not set. */
export function swapContext(context: ReactiveContext | undefined): ReactiveContext | undefined {
  const before = current
  current = context
  return before
}

/** Captures the caller's async-local stores, with `context` current in them; undefined where there are none. */
export function captureStores(context: ReactiveContext): host.Stores | undefined {
  return isStored(context) || store === undefined ? host.snapshotStores() : store.run(context, host.snapshotStores)
}
