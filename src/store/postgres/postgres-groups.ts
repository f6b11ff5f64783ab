import type { GroupRow, GroupSeal, GroupStore } from '../groups.js'
import { completeGroup, foldMoves, isLocked, readFollowing, readGroup, sealGroup } from './groups.js'
import { insertJobs } from './insert.js'
import type { Lanes } from './lanes.js'
import type { Session } from './session.js'

export interface GroupParts {
  readonly lanes: Lanes
  /** Statements that each commit by themselves. */
  readonly plain: <T>(work: (s: Session) => Promise<T>) => Promise<T>
  /** All or nothing; what others have locked is waited for as long as that. */
  readonly transact: <T>(work: (s: Session) => Promise<T>, patienceMs?: number) => Promise<T>
}

/** The role of groups on PostgreSQL, and the look at them that belongs to `promoteJobs`. */
export class PostgresGroups implements GroupStore {
  readonly #parts: GroupParts

  constructor(parts: GroupParts) {
    this.#parts = parts
  }

  async readGroup(group: string): Promise<GroupRow> {
    const { isLong, ...row } = await this.#parts.plain((s) => readGroup(s, group))
    if (isLong) await this.#parts.plain(foldMoves)
    return row
  }

  sealGroup(seal: GroupSeal): Promise<boolean> {
    return this.#parts.transact((s) => sealGroup(s, seal))
  }

  /** Adds up what members have moved, and enqueues what follows the groups that are complete. True: come again soon. */
  async complete(): Promise<boolean> {
    const { complete, isMore } = await this.#parts.plain(foldMoves)
    let isLeft = isMore
    for (const group of complete) if (!(await this.#completeOne(group))) isLeft = true
    return isLeft
  }

  async #completeOne(group: string): Promise<boolean> {
    const { lanes, plain, transact } = this.#parts
    // Lanes are made apart from any transaction, and so before this one.
    const following = await plain((s) => readFollowing(s, group))
    try {
      return await lanes.sure(following === undefined ? [] : [following], () =>
        transact((s) => completeGroup(s, group, insertJobs), 0),
      )
    } catch (error) {
      if (isLocked(error)) return false
      throw error
    }
  }
}
