import type { ReactiveContext } from './context.js'
import { NoContextError } from '../errors.js'
import * as host from '../host.js'

/**
 * Which context is current.
 *
 * Inside a drain and inside `ctx.enter(f)` it is one variable, set around the call and put back before control leaves;
 * through promises, timers and callbacks it is carried by an async-local store. The variable is the only thing of this
 * engine that lives in a module: it says who is running at this instant, as a call stack does, and holds nothing
 * between turns, so two contexts in one process never meet in it.
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

/** Makes `context` current for `f` and for everything `f` starts. */
export function enter<R>(context: ReactiveContext, f: () => R): R {
  const before = current
  current = context
  try {
    return store === undefined ? f() : store.run(context, f)
  } finally {
    current = before
  }
}

/** Makes `context` current for this call only; cheaper than `enter`, and used where the store is right already. */
export function swapContext(context: ReactiveContext | undefined): ReactiveContext | undefined {
  const before = current
  current = context
  return before
}

/** Captures the caller's async-local stores, with `context` current in them; undefined where there are none. */
export function captureStores(context: ReactiveContext): host.Stores | undefined {
  return store === undefined || store.getStore() === context ? host.keepStores() : store.run(context, host.keepStores)
}
