import type { GroupRow, GroupSeal, GroupStore } from '../../groups.js'
import type { CancelledByParent } from '../../links.js'
import type { Promoted } from '../../store.js'
import { completeGroup, isOfTheStore, readFollowing, sealGroup } from './group-ends.js'
import { foldMoves, readGroup } from './groups.js'
import type { VerbParts } from '../connection/session.js'
import { isLocked } from '../connection/while-locked.js'

/** The role of groups on PostgreSQL, and the look at them that belongs to `promoteJobs`. */
export class PostgresGroups implements GroupStore {
  readonly #parts: VerbParts

  constructor(parts: VerbParts) {
    this.#parts = parts
  }

  async readGroup(group: string): Promise<GroupRow> {
    const { isLong, ...row } = await this.#parts.plain((s) => readGroup(s, group))
    if (isLong) await this.#parts.plain(foldMoves)
    return row
  }

  sealGroup(seal: GroupSeal): Promise<boolean> {
    return this.#parts.kept.command([], (s) => sealGroup(s, seal))
  }

  /**
   * Adds up what members have moved, and enqueues what follows the groups that are complete. Where that cannot be done no other
   * group is held up: the moves stay, and tell the next look. What came of it is added to what was promoted.
   */
  async complete(promoted: Promoted): Promise<Promoted> {
    const { complete, isMore } = await this.#parts.plain(foldMoves)
    const calledOff: CancelledByParent[] = [...promoted.cancelledByParents]
    const troubled: { group: string; error: unknown }[] = []
    let isLeft = isMore
    for (const group of complete)
      try {
        const done = await this.#completeOne(group)
        if (done === undefined) isLeft = true
        else calledOff.push(...done)
      } catch (error) {
        if (isLocked(error)) isLeft = true
        else if (isOfTheStore(error)) throw error
        else troubled.push({ group, error })
      }
    return { ...promoted, cancelledByParents: calledOff, troubled, nextInMs: isLeft ? 0 : promoted.nextInMs }
  }

  async #completeOne(group: string): Promise<readonly CancelledByParent[] | undefined> {
    const { lanes, plain, transact } = this.#parts
    // Lanes are made apart from any transaction, and so before this one.
    const following = await plain((s) => readFollowing(s, group))
    return lanes.sure(following === undefined ? [] : [following], () => transact((s) => completeGroup(s, group), 0))
  }
}
