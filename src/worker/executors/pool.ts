import type { Isolation } from '../../job/definition/isolation.js'
import type { Cancel, Timers } from '../../world/timers.js'
import { startChild } from './child.js'
import type { Child } from './child.js'

/** A child that had no attempt for this long is ended. */
const IDLE_MS = 30_000

/** A child with its key: children of the same module and limits are interchangeable. */
export interface PooledChild extends Child {
  readonly key: string
}

/** Threads and processes that have loaded their module and wait for the next attempt. */
export class ChildPool {
  readonly #timers: Timers
  readonly #start: (isolation: Isolation) => Child
  readonly #idle = new Map<PooledChild, Cancel>()
  readonly #all = new Set<PooledChild>()
  readonly #killAll = (): void => this.close()

  constructor(timers: Timers, start: (isolation: Isolation) => Child = startChild) {
    this.#timers = timers
    this.#start = start
  }

  get size(): number {
    return this.#all.size
  }

  take(isolation: Isolation): PooledChild {
    const key = keyOf(isolation)
    for (const [child, cancel] of this.#idle) {
      if (child.key !== key) continue
      cancel()
      this.#idle.delete(child)
      child.setIdle(false)
      return child
    }
    const child = Object.assign(this.#start(isolation), { key })
    // When this process exits, a child whose event loop is blocked would not notice it.
    if (this.#all.size === 0) process.once('exit', this.#killAll)
    this.#all.add(child)
    return child
  }

  /** The child's attempt has ended, and the child can take the next one. */
  giveBack(child: PooledChild): void {
    if (!this.#all.has(child)) return child.kill()
    child.onMessage = () => undefined
    child.onEnd = () => this.remove(child)
    child.setIdle(true)
    this.#idle.set(
      child,
      this.#timers.after(IDLE_MS, () => this.discard(child), { idle: true }),
    )
  }

  /** Ends a child that must not run another attempt. */
  discard(child: PooledChild): void {
    this.remove(child)
    child.kill()
  }

  /** The child has ended. */
  remove(child: PooledChild): void {
    this.#idle.get(child)?.()
    this.#idle.delete(child)
    if (this.#all.delete(child) && this.#all.size === 0) process.off('exit', this.#killAll)
  }

  close(): void {
    for (const child of this.#all) this.discard(child)
  }
}

function keyOf({ executor, module, memoryMb }: Isolation): string {
  return `${executor} ${memoryMb ?? ''} ${module}`
}
