import { StoreError } from '../../../errors.js'
import type { World } from '../../../world/world.js'

/** How long a verb retries on a lock of another transaction. */
export const LOCK_PATIENCE_MS = 10_000
/** The longest wait before the first retry; it doubles up to the second number. */
const AGAIN_MS = 20
const AGAIN_MAX_MS = 160

/**
 * Runs work that may wait for locks of other transactions. Each attempt waits only a moment for a lock and then frees the
 * connection, so that verbs that do not need the lock can run: a caller's transaction may hold a key for any length of
 * time. After `patienceMs` the error is thrown.
 *
 * The wait before a retry is random. Two transactions that wait for each other reach their lock timeout at about the same time; if
 * both waited equally long they would begin together again, and on a busy machine, where the locks of the one that gave up
 * are released late, neither would get through.
 */
export async function whileLocked<T>(
  world: World,
  patienceMs: number,
  /**
   * `until`, of the monotonic clock: an attempt that would start later is refused. Undefined: one attempt is made in
   * any case.
   */
  work: (until: number | undefined) => Promise<T>,
): Promise<T> {
  const end = world.clock.monotonic() + patienceMs
  const until = patienceMs > 0 ? end : undefined
  for (let longestMs = AGAIN_MS; ; longestMs = Math.min(2 * longestMs, AGAIN_MAX_MS)) {
    try {
      return await work(until)
    } catch (error) {
      if (!isLocked(error) || world.clock.monotonic() >= end) throw error
    }
    await new Promise<void>((next) => world.timers.after(world.random() * longestMs, next))
  }
}

/** Another transaction holds a lock that this work needs: a retry may succeed. */
export function isLocked(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'E_STORE_LOCKED'
}
