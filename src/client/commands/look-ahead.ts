import type { Store } from '../../store/store.js'
import type { World } from '../../world/world.js'

/**
 * Resolves when every worker that holds jobs in advance (look-ahead), in any process, has confirmed them again. From then on no
 * worker begins a job that this command took back.
 */
export function waitForLookAhead({ world, store }: { readonly world: World; readonly store: Store }): Promise<void> {
  if (store.info.heldUnconfirmedMs === 0) return Promise.resolve()
  return new Promise((resolve) => world.timers.after(store.info.heldUnconfirmedMs * 2, resolve))
}
