import type { Changed, GuardedChange } from '../../store.js'
import { changeJob } from './change.js'
import { changeTogether, mayShare, TOGETHER_MAX } from './change-batch.js'
import { Gather } from '../connection/gather.js'
import { readById } from './read.js'
import type { VerbParts } from '../connection/session.js'
import { isLocked, LOCK_PATIENCE_MS } from '../connection/while-locked.js'

/** Commands to jobs: those that are given while one is under way are done together. */
export class Commands {
  readonly #parts: VerbParts
  readonly #gather: Gather<GuardedChange, Changed | undefined>

  constructor(parts: VerbParts) {
    this.#parts = parts
    this.#gather = new Gather({ write: (changes) => this.#some(changes), weigh: () => 1, max: TOGETHER_MAX })
  }

  change(change: GuardedChange): Promise<Changed> {
    return this.#parts.kept.known({
      ids: [change.id],
      write: async (isAgain) =>
        (mayShare(change) && !isAgain ? await this.#gather.add(change) : undefined) ?? this.#alone(change),
      read: (answer, index) => (JSON.parse(answer as string) as (Changed | null)[])[index] ?? undefined,
    })
  }

  async #some(changes: readonly GuardedChange[]): Promise<readonly (Changed | undefined)[]> {
    const [only] = changes
    try {
      if (only !== undefined && changes.length === 1) return [await this.#alone(only, 0)]
      return await this.#parts.kept.transactKept(
        (s) => changeTogether(s, changes),
        (done) => done,
        0,
      )
    } catch (error) {
      // On a lock conflict each change is made alone and waits for the lock, so that no other change waits behind it.
      if (isLocked(error)) return []
      throw error
    }
  }

  async #alone(change: GuardedChange, patienceMs = LOCK_PATIENCE_MS): Promise<Changed> {
    const { lanes, plain, kept } = this.#parts
    const queue = change.edit?.queue
    const job = queue === undefined ? undefined : await plain((s) => readById(s, change.id))
    const moved = queue === undefined || job === undefined ? [] : [{ queue, name: job.name }]
    return lanes.sure(moved, () =>
      kept.transactKept(
        (s) => changeJob(s, change),
        (done) => [done],
        patienceMs,
      ),
    )
  }
}
