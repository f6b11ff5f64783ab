import { StoreError } from '../../../errors.js'
import { GROUP_KEEP_MS, readWhenDone } from '../../groups.js'
import type { FollowUp, GroupRow, GroupSeal, GroupStore } from '../../groups.js'
import type { CancelledByParent } from '../../links.js'
import type { NewJob, Promoted } from '../../store.js'
import { enqueueWhenDone, NOT_FOLLOWED_UP, readGroup, sealGroup } from '../../verbs/groups.js'
import type { FollowedUp } from '../../verbs/groups.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { VerbRunner } from '../../verbs/verb.js'
import type { Session, VerbParts } from '../connection/session.js'
import { isLocked } from '../connection/while-locked.js'
import type { JobSession } from './job-session.js'

/*
 * Groups on PostgreSQL. Two settlements that commit at the same time do not see each other, so no transaction can
 * decide that it ended the last member. Each inserts its moves, and the process that promotes jobs checks groups that
 * have moves: those of the transaction that commits last are seen after all others. `docs/decisions/groups.md` has the
 * races.
 */

/** Limit of the moves that one fold adds up. */
const FOLD_MAX = 5_000
/** A read of a group with more moves than this folds them for the next read. */
const MOVES_MAX = 1_000

/** The groups role on PostgreSQL, and the check for complete groups that belongs to `promoteJobs`. */
export class PostgresGroups implements GroupStore {
  readonly #parts: VerbParts
  readonly #verbs: VerbRunner

  constructor(parts: VerbParts, verbs: VerbRunner) {
    this.#parts = parts
    this.#verbs = verbs
  }

  async readGroup(group: string): Promise<GroupRow> {
    const { uncounted, ...row } = await this.#verbs.read((session) => readGroup(session, group))
    if (uncounted > MOVES_MAX) await this.#parts.plain(foldMoves)
    return row
  }

  sealGroup(seal: GroupSeal): Promise<boolean> {
    return this.#verbs.write((session) => sealGroup(session, seal))
  }

  /**
   * Folds the moves of members, and enqueues the follow-up jobs of complete groups. If that fails for one group, the
   * others are not delayed: its moves stay, and the next check sees them. The result is added to what was promoted.
   */
  async complete(promoted: Promoted): Promise<Promoted> {
    const { complete, isMore } = await this.#parts.plain(foldMoves)
    const cancelled: CancelledByParent[] = [...promoted.cancelledByParents]
    const followUps: FollowUp[] = []
    const failedGroups: { group: string; error: unknown }[] = []
    let isLeft = isMore
    for (const group of complete)
      try {
        const done = await this.#completeOne(group)
        if (done === undefined) isLeft = true
        cancelled.push(...(done?.cancelled ?? []))
        followUps.push(...(done?.written ?? []).map((job) => ({ group, job })))
      } catch (error) {
        if (isLocked(error)) isLeft = true
        else if (isOfTheStore(error)) throw error
        else failedGroups.push({ group, error })
      }
    return {
      ...promoted,
      followUps,
      cancelledByParents: cancelled,
      failedGroups,
      nextInMs: isLeft ? 0 : promoted.nextInMs,
    }
  }

  async #completeOne(group: string): Promise<FollowedUp | undefined> {
    const { lanes, plain, transact } = this.#parts
    // Lanes are created outside of any transaction, so before this one.
    const following = await plain((session) => readFollowing(session, group))
    return lanes.ensureLanes(following === undefined ? [] : [following], () =>
      transact((session) => completeGroup(session, group), 0),
    )
  }
}

/** Folds moves. Returns the complete groups, and whether there may be more to fold. */
async function foldMoves(session: Session): Promise<{ readonly complete: string[]; readonly isMore: boolean }> {
  const row = await session.one<{ scanned: number; complete: string | null }>(
    session.queries.foldMoves,
    String(FOLD_MAX),
  )
  return { complete: JSON.parse(row.complete ?? '[]') as string[], isMore: row.scanned === FOLD_MAX }
}

/** The follow-up job of a complete group, read before the group is locked: its lane must exist then. */
async function readFollowing(session: Session, group: string): Promise<NewJob | undefined> {
  const [row] = await session.query<{ written: string | null }>(session.queries.whenDone, group)
  return typeof row?.written === 'string' ? readWhenDone(row.written).job : undefined
}

/**
 * Enqueues the follow-up job of a group and records that, if the group is complete and no transaction is adding to it.
 * Undefined if it cannot be completed now. Within a transaction.
 */
async function completeGroup(session: JobSession, group: string): Promise<FollowedUp | undefined> {
  const [row] = await session.query<{ written: string | null }>(session.queries.lockGroup, group)
  if (row === undefined || (await session.query(session.queries.isComplete, group)).length === 0) return undefined
  const done =
    typeof row.written === 'string'
      ? await awaitVerb(enqueueWhenDone(session, readWhenDone(row.written)))
      : NOT_FOLLOWED_UP
  await session.query(session.queries.completeGroup, group, session.nowText)
  return done
}

/** An error of the server or of this mill, and not of one group. */
function isOfTheStore(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'E_STORE'
}

/** Writes the moves of members that this verb has caused. Called at its end, within its transaction. */
export async function countMoves(session: Session): Promise<void> {
  if (session.groupMoves.isEmpty) return
  const moves = session.groupMoves.take()
  if (moves.length === 0) return
  const near = await session.query(session.queries.countMoves, JSON.stringify(moves))
  if (near.length > 0) session.note({ dueInMs: 0 })
}

/** Deletes groups whose members were all pruned long ago: the next few of a walk through all. Returns how many. */
export async function sweepGroups(session: Session, limit: number, walk: { groupsSweptTo: string }): Promise<number> {
  const row = await session.one<{ forgotten: number; scanned: number; last: string | null }>(
    session.queries.sweepGroups,
    session.nowText,
    walk.groupsSweptTo,
    String(limit),
    String(GROUP_KEEP_MS),
  )
  walk.groupsSweptTo = row.scanned === limit ? (row.last ?? '') : ''
  return row.forgotten
}
