import type { State } from '../job/rules/states.js'
import { isFinal } from '../job/rules/states.js'

/** What a move needs to know of a job: its group, if it is a member of one, and its queue. */
export interface GroupMember {
  readonly group?: string | null | undefined
  readonly queue: string
}

/** How many more members of a group stand in a state of a queue than before; fewer, when negative. */
export interface GroupMove {
  readonly group: string
  readonly queue: string
  readonly state: State
  readonly members: number
}

/**
 * The moves of members, by double entry: the code that takes a job out of a state says that it leaves, the code that puts it into
 * one that it enters. So no move can be counted that was not made, and each is counted where it is made. Jobs without a group pay one
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

  /** What has moved since the last call; what left and came back has not. */
  take(): GroupMove[] {
    if (this.#moves.size === 0) return []
    const moves = [...this.#moves.values()].filter((move) => move.members !== 0)
    this.#moves.clear()
    return moves
  }

  #add(group: string, queue: string, of: State, members: number): void {
    const state = counted(of)
    // None of the three can hold a line break.
    const name = `${group}\n${queue}\n${state}`
    const move = this.#moves.get(name)
    if (move === undefined) this.#moves.set(name, { group, queue, state, members })
    else move.members += members
  }
}

/** A claim writes nothing about the jobs it takes, so a member that runs is still counted as ready. */
function counted(state: State): State {
  return state === 'running' ? 'ready' : state
}

/** By how many the unfinished members of each group changed. */
export function unfinishedOf(moves: readonly GroupMove[]): Map<string, number> {
  const changes = new Map<string, number>()
  for (const { group, state, members } of moves)
    changes.set(group, (changes.get(group) ?? 0) + (isFinal(state) ? 0 : members))
  return changes
}
