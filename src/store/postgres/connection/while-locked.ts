import { StoreError } from '../../../errors.js'
import type { World } from '../../../world/world.js'

/** How long a verb tries to get at what others have locked. */
export const LOCK_PATIENCE_MS = 10_000
const AGAIN_MS = 20

/**
 * Does a work that others' locks may stand in the way of. Each try waits for a lock for a moment only, then lets go of the
 * connection, so that verbs that do not need that lock go first: a caller's transaction may hold a key for as long
 * as it likes. After `patienceMs` the error is thrown.
 */
export async function whileLocked<T>(
  world: World,
  patienceMs: number,
  /** `until`, of the monotonic clock: a try whose turn comes later need not be made. Undefined: one try is made in any case. */
  work: (until: number | undefined) => Promise<T>,
): Promise<T> {
  const end = world.clock.monotonic() + patienceMs
  const until = patienceMs > 0 ? end : undefined
  for (;;) {
    try {
      return await work(until)
    } catch (error) {
      if (!isLocked(error) || world.clock.monotonic() >= end) throw error
    }
    await new Promise<void>((next) => world.timers.after(AGAIN_MS, next))
  }
}

/** Another process holds a lock that this needs: it can be tried again. */
export function isLocked(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'E_STORE_LOCKED'
}
