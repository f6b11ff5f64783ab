import { Batch } from '../graph/batch.js'
import { enter } from '../context/ambient.js'
import { ReactiveContext } from '../context/context.js'
import type { Context } from '../context/context-interface.js'
import type { ContextOptions } from '../context/options.js'
import { checkContextOptions, checkRecord } from '../context/options.js'
import { describe } from '../errors.js'
import { synchronousExecutor } from '../executors/executors.js'
import type { Snapshot } from './snapshot.js'
import { storedIn } from './snapshot.js'

/** The options of `createContext`, and how the program's cells come back. */
export interface RestoreOptions extends ContextOptions {
  /**
   * Creates the cells and spins again, as the program did at its start: a cell with the same address gets its stored
   * state. It runs with the new context current. Default: nothing is created; cells may be created later.
   */
  readonly build?: ((ctx: Context) => void) | undefined
  /** Whether spins are replayed and queued events processed before `restore` returns. Default: true. */
  readonly drain?: boolean | undefined
}

/**
 * Makes a running context from a snapshot. Functions cannot be stored, so `build` creates the cells and spins again; each
 * gets its stored state by its address, which its key and the order of creation decide. Bodies run once more, and their
 * stored logs answer: no step is called again, no message is taken twice, and a sleep lasts for the rest of its time. The
 * clock is the stored one; a virtual clock comes with an inline executor, unless another is given.
 *
 * ```ts
 * import { createSimulation, restore, signal } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * ctx.enter(() => signal(1, { key: 'count' })).set(5)
 * const again = restore(ctx.snapshot(), {
 *   build: () => console.log(signal(1, { key: 'count' }).get()), // 5
 * })
 * ```
 */
export function restore(snapshot: Snapshot, options: RestoreOptions = {}): Context {
  checkRecord('restore', options)
  const { build, drain = true, ...others } = options
  checkContextOptions(others, 'restore')
  if (build !== undefined && typeof build !== 'function') {
    throw new TypeError(`restore: build must be a function, got ${describe(build)}`)
  }
  if (typeof drain !== 'boolean') throw new TypeError(`restore: drain must be true or false, got ${describe(drain)}`)
  const stored = storedIn(snapshot, 'restore')
  const clock = others.clock ?? stored.clock
  const executor = others.executor ?? (clock === 'virtual' ? synchronousExecutor() : undefined)
  const context = new ReactiveContext({ ...others, clock, executor }, undefined, stored)
  rebuild(context, build)
  if (drain) context.drainNow()
  return context
}

/** Calls `build`, and queues what is to happen after the replays. Nothing runs meanwhile: the cells are not complete yet. */
function rebuild(context: ReactiveContext, build: ((ctx: Context) => void) | undefined): void {
  const batch = new Batch()
  context.batch = batch
  try {
    if (build !== undefined) enter(context, () => build(context))
    context.enqueue({ type: 'restore-end' })
  } finally {
    context.batch = undefined
  }
  batch.announce(context)
}
