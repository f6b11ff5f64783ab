import { requireContext } from './ambient.js'
import type { Context } from './context-interface.js'
import { ReactiveContext } from './context.js'
import { synchronousExecutor } from '../executors/executors.js'
import type { ContextOptions } from './options.js'
import { checkContextOptions, checkSimulationOptions } from './options.js'

/**
 * Creates a context, independent of all others. It schedules nothing until work arrives, so an idle context does not
 * keep the process alive.
 *
 * ```ts
 * import { createContext, signal } from 'millrace/reactive'
 *
 * const ctx = createContext({ onFault: (fault) => console.error(fault.code, fault.error) })
 * const count = ctx.enter(() => signal(0))
 * await ctx.close()
 * ```
 */
export function createContext(options: ContextOptions = {}): Context {
  checkContextOptions(options)
  return new ReactiveContext(options)
}

/**
 * Creates a context for tests: it has a virtual clock and an inline executor, so every call has taken effect when it
 * returns, and the same calls give the same trace.
 *
 * ```ts
 * import { createSimulation, sleep } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * ctx.spawn(ctx.enter(() => sleep(1000)))
 * ctx.advanceBy(1000) // 1
 * ```
 */
export function createSimulation(options: Omit<ContextOptions, 'clock'> = {}): Context {
  checkSimulationOptions(options)
  return createContext({ executor: synchronousExecutor(), ...options, clock: 'virtual' })
}

/** Returns the current context; throws `NoContextError` when there is none. */
export function currentContext(): Context {
  return requireContext('currentContext')
}
