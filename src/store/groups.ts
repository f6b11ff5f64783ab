import { DuplicateJobError, DuplicateKeyError } from '../errors.js'
import type { MemberCount } from '../job/rules/group-progress.js'
import type { InsertOptions, NewJob } from './store.js'

/**
 * The role of groups: jobs that belong together, by a name given at enqueue. How many members stand in which state is kept, so
 * that no read counts members; a running member is counted as ready, and a read looks at the leases for how many of those run.
 * Pruned members stay counted in the state in which they ended, deleted ones do not.
 */
export interface GroupStore {
  /** The counts of a group. One that no job ever named is empty and not sealed. */
  readGroup(group: string): Promise<GroupRow>
  /** Says that no more members come, but from members that run; false when it was said before, and then nothing is written. */
  sealGroup(seal: GroupSeal): Promise<boolean>
}

export interface GroupRow {
  readonly sealedAt: number | null
  /** When it was sealed and no member was unfinished, for the first time. */
  readonly completedAt: number | null
  readonly counts: readonly MemberCount[]
}

export interface GroupSeal {
  readonly group: string
  /** What is enqueued once, when the group is complete: by the process that next promotes jobs. */
  readonly whenDone: WhenDone | null
}

export interface WhenDone {
  readonly job: NewJob
  readonly options: Pick<InsertOptions, 'onDuplicate' | 'keepCancelledMs'>
}

/** Groups that are complete, and for which what follows could not be written: each is tried again by the next look. */
export interface GroupTroubles {
  readonly troubled: readonly { readonly group: string; readonly error: unknown }[]
}

/** The following job exists already, enqueued under the same key or slot: nothing more is to be done. */
export function isThereAlready(error: unknown): boolean {
  return error instanceof DuplicateKeyError || error instanceof DuplicateJobError
}

/** A group is forgotten so long after the last of its members was. */
export const GROUP_KEEP_MS = 7 * 86_400_000

/** Counts running members apart from those that are ready. */
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

/** As it is kept until then. Bytes are written as base64; a time that never ends as one that is far. */
export function writeWhenDone({ job, options }: WhenDone): string {
  const { payload, ...rest } = job
  const body = typeof payload === 'string' ? { text: payload } : { bytes: Buffer.from(payload).toString('base64') }
  return JSON.stringify({ job: rest, ...body, options }, (_, value: unknown) => (value === Infinity ? FOR_EVER : value))
}

export function readWhenDone(written: string): WhenDone {
  const kept = JSON.parse(written, (_, value: unknown) => (value === FOR_EVER ? Infinity : value)) as Kept
  const { job, text, bytes, options } = kept
  return { job: { ...job, payload: text ?? new Uint8Array(Buffer.from(bytes ?? '', 'base64')) }, options }
}

const FOR_EVER = Number.MAX_SAFE_INTEGER

interface Kept {
  readonly job: Omit<NewJob, 'payload'>
  readonly text?: string
  readonly bytes?: string
  readonly options: WhenDone['options']
}
