import type { State } from './states.js'
import { isFinal, STATES } from './states.js'

/** How many members of a group are in one state and one queue. */
export interface MemberCount {
  readonly queue: string
  readonly state: State
  readonly members: number
}

/** The number of members by state, in total, and unfinished. */
export interface GroupCounts extends Readonly<Record<State, number>> {
  readonly total: number
  /** Members that are not done, failed or cancelled. Parked members count as unfinished. */
  readonly unfinished: number
}

/** The progress of a group. Pruned members stay counted in their final state; deleted ones are not counted. */
export interface GroupProgress extends GroupCounts {
  /** True: only its own running members may still add to it. */
  readonly sealed: boolean
  /** When the group was first sealed with no unfinished member: `whenDone` was enqueued then. */
  readonly completedAt: Date | undefined
  /** The same counts for each queue that members are in. */
  readonly queues: Readonly<Record<string, GroupCounts>>
}

/** Sums the counters by queue and state; `queue` selects one queue. */
export function progressOf(
  group: {
    readonly sealedAt: number | null
    readonly completedAt: number | null
    readonly counts: readonly MemberCount[]
  },
  queue: string | undefined,
): GroupProgress {
  const counts = queue === undefined ? group.counts : group.counts.filter((count) => count.queue === queue)
  const names = [...new Set(counts.map((count) => count.queue))].sort()
  return {
    ...addUp(counts),
    sealed: group.sealedAt !== null,
    completedAt: group.completedAt === null ? undefined : new Date(group.completedAt),
    queues: Object.fromEntries(names.map((name) => [name, addUp(counts.filter((count) => count.queue === name))])),
  }
}

function addUp(counts: readonly MemberCount[]): GroupCounts {
  const states = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>
  for (const { state, members } of counts) states[state] += members
  const sum = (which: readonly State[]): number => which.reduce((total, state) => total + states[state], 0)
  return { total: sum(STATES), ...states, unfinished: sum(STATES.filter((state) => !isFinal(state))) }
}
