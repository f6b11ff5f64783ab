import { UNKNOWN_PROCESSES } from '../../world/processes.js'
import type { ProcessMark, Processes } from '../../world/processes.js'

/** What the machines know of a simulated process. */
export interface SimResident {
  readonly name: string
  readonly alive: boolean
}

/**
 * The machines of a simulated fleet. Pids are few: the same one exists on each machine, and a process that is started again
 * has the pid of the one before it, as in a container. So nothing can be judged by a pid alone.
 */
export class SimMachines {
  readonly #residents = new Map<string, { readonly process: SimResident; readonly identity: string }>()
  #started = 0
  /** Whether machines can be identified at all; where not, the heartbeat alone decides. */
  provable = true

  /** A process starts: what it can see of itself and of its neighbours. */
  enter(process: SimResident): Processes {
    const { machine, pid } = placeOf(process.name)
    if (!this.provable) return { ...UNKNOWN_PROCESSES, own: { host: machine, pid, identity: null } }
    const identity = `${machine}.${(this.#started += 1)}`
    this.#residents.set(`${machine} ${pid}`, { process, identity })
    const isLocal = (other: ProcessMark): boolean => other.identity?.startsWith(`${machine}.`) === true
    return {
      own: { host: machine, pid, identity },
      isLocal,
      isDebugged: () => false,
      isGone: (other) => {
        if (!isLocal(other)) return false
        const found = this.#residents.get(`${machine} ${other.pid}`)
        return found?.process.alive !== true || found.identity !== other.identity
      },
    }
  }
}

/** Workers with odd numbers share one machine, the others a second one. */
export function placeOf(name: string): { readonly machine: string; readonly pid: number } {
  const number = Number(name.replace(/\D/g, ''))
  return { machine: number % 2 === 1 ? 'odd' : 'even', pid: Math.ceil(number / 2) }
}
