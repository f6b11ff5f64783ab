import type { State } from '../../job/rules/states.js'
import { isFinal } from '../../job/rules/states.js'

/** The fields of a job that a move needs: its group, if it is a member of one, and its queue. */
export interface GroupMember {
  readonly group?: string | null | undefined
  readonly queue: string
}

/** The change in the number of a group's members in one state of one queue; negative when members left. */
export interface GroupMove {
  readonly group: string
  readonly queue: string
  readonly state: State
  readonly members: number
}

/**
 * The moves of group members, as double entry: code that removes a job from a state calls `leave`, code that inserts it
 * in a state calls `enter`. So each move is counted where it is made, and only there. A job without a group costs one
 * comparison.
 */
export class GroupMoves {
  #moves = new Map<string, { group: string; queue: string; state: State; members: number }>()

  leave(job: GroupMember, state: State): void {
    if (typeof job.group === 'string') this.#add(job.group, job.queue, state, -1)
  }

  enter(job: GroupMember, state: State): void {
    if (typeof job.group === 'string') this.#add(job.group, job.queue, state, 1)
  }

  get isEmpty(): boolean {
    return this.#moves.size === 0
  }

  /** The net moves since the last call. A member that left a state and entered it again is not listed. */
  take(): GroupMove[] {
    if (this.#moves.size === 0) return []
    const moves = [...this.#moves.values()].filter((move) => move.members !== 0)
    this.#moves.clear()
    return moves
  }

  #add(group: string, queue: string, of: State, members: number): void {
    const state = counted(of)
    // None of the three contains a line break.
    const name = `${group}\n${queue}\n${state}`
    const move = this.#moves.get(name)
    if (move === undefined) this.#moves.set(name, { group, queue, state, members })
    else move.members += members
  }
}

/** A claim does not write the jobs it takes, so a running member is counted as ready. */
function counted(state: State): State {
  return state === 'running' ? 'ready' : state
}

/** The change in the number of unfinished members of each group. */
export function unfinishedOf(moves: readonly GroupMove[]): Map<string, number> {
  const changes = new Map<string, number>()
  for (const { group, state, members } of moves)
    changes.set(group, (changes.get(group) ?? 0) + (isFinal(state) ? 0 : members))
  return changes
}
