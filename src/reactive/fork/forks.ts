import type { ReactiveContext } from '../context/context.js'
import type { SignalNode } from '../graph/signal.js'
import type { DeferredNode } from '../mailboxes/deferred.js'
import type { Result } from '../result.js'

/** The forks of a context. It does not keep them alive. */
export class Forks {
  readonly #refs = new Set<WeakRef<ReactiveContext>>()
  #sweepAt = SWEEP_MIN
  /** Signals that were written and not yet passed on. */
  #written: SignalNode[] = []

  add(fork: ReactiveContext): void {
    this.#refs.add(new WeakRef(fork))
    if (this.#refs.size < this.#sweepAt) return
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.live().length)
  }

  /** The forks that are in use and not closed. References to those that were collected are dropped on the way. */
  live(): ReactiveContext[] {
    const forks: ReactiveContext[] = []
    for (const ref of this.#refs) {
      const fork = ref.deref()
      if (fork === undefined || fork.state === 'closed') this.#refs.delete(ref)
      else forks.push(fork)
    }
    return forks
  }

  noteWrite(node: SignalNode): void {
    this.#written.push(node)
  }

  /** Passes the noted writes on, after the parent has processed them: forks then find the parent's new results. */
  passOn(): void {
    if (this.#written.length === 0) return
    const written = this.#written
    this.#written = []
    for (const fork of this.live()) if (fork.state === 'running') fork.overlay?.followWrites(written)
  }

  followDispose(node: SignalNode): void {
    for (const fork of this.live()) if (fork.state === 'running') fork.overlay?.followDispose(node)
  }

  followDelivery(node: DeferredNode, result: Result<unknown>): void {
    for (const fork of this.live()) if (fork.state === 'running') fork.overlay?.followDelivery(node, result)
  }
}

/** Below this many references, a sweep costs more than it saves. */
const SWEEP_MIN = 16
