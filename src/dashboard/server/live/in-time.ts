import type { World } from '../../../world/world.js'
import type { Cancel } from '../../../world/timers.js'

/** A read that has no answer by then is reported: the user must not wait for a database that hangs. */
const ANSWER_MS = 5_000

/** The store did not answer in time. */
export class SlowStore extends Error {}

/** The answer of a read, or SlowStore. The read itself goes on. */
export async function inTime<T>(read: Promise<T>, { timers }: Pick<World, 'timers'>): Promise<T> {
  let cancel: Cancel = () => undefined
  const late = new Promise<never>((_, reject) => {
    cancel = timers.after(
      ANSWER_MS,
      () => reject(new SlowStore(`The store did not answer within ${ANSWER_MS / 1_000} s.`)),
      { idle: true },
    )
  })
  read.catch(() => undefined)
  return Promise.race([read, late]).finally(() => cancel())
}
