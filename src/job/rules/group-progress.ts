import type { State } from './states.js'
import { isFinal, STATES } from './states.js'

/** How many members of a group stand in a state of a queue. */
export interface MemberCount {
  readonly queue: string
  readonly state: State
  readonly members: number
}

/** Members by state, how many there are in all, and how many of them have not ended. */
export interface GroupCounts extends Readonly<Record<State, number>> {
  readonly total: number
  /** All that are not done, failed or cancelled; `parked` ones too, which wait for a person. */
  readonly unfinished: number
}

/** How a group stands. Members that were pruned stay counted as they ended; deleted ones do not. */
export interface GroupProgress extends GroupCounts {
  /** Only its own running jobs may still add to it. */
  readonly sealed: boolean
  /** When it was sealed and no member was unfinished, for the first time: `whenDone` was enqueued then. */
  readonly completedAt: Date | undefined
  /** The same counts for each queue that members are in. */
  readonly queues: Readonly<Record<string, GroupCounts>>
}

/** Adds up what is kept by queue and state; `queue` narrows it to one. */
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
