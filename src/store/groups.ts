import { DuplicateJobError, DuplicateKeyError } from '../errors.js'
import type { MemberCount } from '../job/rules/group-progress.js'
import type { AuditNote } from '../job/command-options.js'
import type { InsertOptions, NewJob } from './store.js'

/**
 * The groups role: jobs that share a group name given at enqueue. The store keeps the number of members in each state,
 * so a read never counts members. A running member is counted as ready; a read takes the number of running members from
 * the leases. Pruned members stay counted in the state they ended in; deleted members do not.
 */
export interface GroupStore {
  /** The counts of a group. A group that no job has named is empty and not sealed. */
  readGroup(group: string): Promise<GroupRow>
  /**
   * Closes the group to new members, except those that its running members add. False, and nothing is written, if it
   * was sealed before.
   */
  sealGroup(seal: GroupSeal): Promise<boolean>
}

export interface GroupRow {
  readonly sealedAt: number | null
  /** The first time that the group was sealed and had no unfinished member. */
  readonly completedAt: number | null
  readonly counts: readonly MemberCount[]
}

export interface GroupListed extends GroupRow {
  readonly id: string
}

export interface GroupSeal {
  readonly group: string
  /** The job to enqueue once, when the group is complete. The next process that promotes jobs enqueues it. */
  readonly whenDone: WhenDone | null
  readonly audit?: AuditNote | undefined
}

export interface WhenDone {
  readonly job: NewJob
  readonly options: Pick<InsertOptions, 'onDuplicate' | 'keepCancelledMs'>
}

/** Complete groups whose `whenDone` job could not be enqueued. The next promotion tries each of them again. */
export interface FailedGroups {
  readonly failedGroups: readonly { readonly group: string; readonly error: unknown }[]
}

/** A `whenDone` job that was written. */
export interface FollowUp {
  readonly group: string
  readonly job: NewJob
}

/** The `whenDone` job exists already, under the same key or slot: nothing is left to do. */
export function isDuplicateError(error: unknown): boolean {
  return error instanceof DuplicateKeyError || error instanceof DuplicateJobError
}

/** The store deletes a group this long after the last of its members was deleted. */
export const GROUP_KEEP_MS = 7 * 86_400_000

/** Counts running members apart from ready ones. */
export function withRunning(
  counts: readonly MemberCount[],
  running: readonly { readonly queue: string; readonly members: number }[],
): MemberCount[] {
  const runs = new Map(running.map(({ queue, members }) => [queue, members]))
  return [
    ...counts.map(({ queue, state, members }) => ({
      queue,
      state,
      members: state === 'ready' ? members - (runs.get(queue) ?? 0) : members,
    })),
    ...running.map(({ queue, members }) => ({ queue, state: 'running' as const, members })),
  ].filter((count) => count.members !== 0)
}

/** The stored form of the `whenDone` job. Bytes are written as base64, an infinite time as a far one. */
export function writeWhenDone({ job, options }: WhenDone): string {
  const { payload, ...rest } = job
  const body = typeof payload === 'string' ? { text: payload } : { bytes: Buffer.from(payload).toString('base64') }
  return JSON.stringify({ job: rest, ...body, options }, (_, value: unknown) => (value === Infinity ? FOR_EVER : value))
}

export function readWhenDone(written: string): WhenDone {
  const kept = JSON.parse(written, (_, value: unknown) => (value === FOR_EVER ? Infinity : value)) as StoredWhenDone
  const { job, text, bytes, options } = kept
  return { job: { ...job, payload: text ?? new Uint8Array(Buffer.from(bytes ?? '', 'base64')) }, options }
}

const FOR_EVER = Number.MAX_SAFE_INTEGER

interface StoredWhenDone {
  readonly job: Omit<NewJob, 'payload'>
  readonly text?: string
  readonly bytes?: string
  readonly options: WhenDone['options']
}
