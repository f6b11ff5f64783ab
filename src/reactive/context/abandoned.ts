import type { Executor, TimerHandle } from '../executors/executors.js'
import type { Fault } from '../fault.js'
import { reportFault } from '../fault.js'

/** What a context leaves behind when it is collected without having been closed. Nothing here may refer to the context. */
export interface Estate {
  readonly id: string
  readonly executor: Executor
  /** Timers that do not keep their context reachable. */
  readonly timers: ReadonlySet<TimerHandle>
  /** Weak, because a hook may well refer to the context. */
  readonly onFault: WeakRef<(fault: Fault) => void> | undefined
  /** The context was closed, so there is nothing to clean up. */
  isClosed: boolean
}

/** It is one for all contexts, because it must outlive them. It holds no context. */
const contexts = new FinalizationRegistry<Estate>(settleEstate)

/**
 * Watches for the collection of a context that was not closed. There is no way to end it: the table of tokens that this
 * needs does not shrink when very many contexts come and go.
 */
export function watchContext(context: object, estate: Estate): void {
  contexts.register(context, estate)
}

function settleEstate(estate: Estate): void {
  const { id, executor, timers, onFault, isClosed } = estate
  if (isClosed) return
  const isHarmless = timers.size === 0 && executor.offload === undefined
  for (const timer of timers) timer.cancel()
  executor.close().catch(() => undefined) // The fault below is reported; how its executor ended adds nothing.
  const hook = onFault?.deref()
  // A context that left nothing behind is worth no line on stderr: a test may well drop a hundred simulations.
  if (hook === undefined && isHarmless) return
  const error = new Error(`context ${id} was collected and had not been closed; call ctx.close() when it is not needed`)
  try {
    ;(hook ?? reportFault)({ code: 'context-abandoned', site: 'collection', error })
  } catch {
    // The fault hook is the last resort: its own error cannot be reported anywhere.
  }
}
