import type { LeaseStore } from '../store/store.js'
import type { WorkerAbout } from '../store/observing/lists.js'
import type { Heartbeat } from '../store/workers.js'
import type { World } from '../world/world.js'
import type { LoopWatch } from './in-flight/loop-watch.js'

/**
 * A worker's lease, kept by heartbeats. They come from a thread of the store where it has one; else from this event loop, and
 * then a handler that blocks the loop for a lease loses it (`beatsFromThread` says which).
 */
export class Lease {
  readonly worker: string
  readonly beatsFromThread: boolean
  readonly #store: LeaseStore
  readonly #stopBeating: () => Promise<void>

  private constructor(worker: string, store: LeaseStore, beatsFromThread: boolean, stopBeating: () => Promise<void>) {
    this.worker = worker
    this.#store = store
    this.beatsFromThread = beatsFromThread
    this.#stopBeating = stopBeating
  }

  /** Registers a worker under a new random id and starts its heartbeat, three beats a lease. A lease without end needs none. */
  static async take(
    store: LeaseStore,
    world: World,
    leaseMs: number,
    onLost: (why: string) => void,
    loop: LoopWatch,
    about?: WorkerAbout,
  ): Promise<Lease> {
    const worker = world.ids.workerId()
    const everyMs = leaseMs / 3
    const isEndless = leaseMs === Infinity
    await store.addWorker({ id: worker, ...world.processes.own, leaseMs: isEndless ? undefined : leaseMs, about })
    const heartbeat = isEndless ? undefined : await store.startHeartbeat(worker, everyMs, onLost, loop.share)
    if (heartbeat?.watchesLoop === true) loop.attach(worker)
    return new Lease(
      worker,
      store,
      heartbeat !== undefined,
      stopper(heartbeat, () => beatByTimer(store, world, worker, everyMs, onLost)),
    )
  }

  /** Stops the heartbeat and removes the worker's row. */
  async end(): Promise<void> {
    await this.#stopBeating()
    await this.#store.dropWorker(this.worker)
  }

  /** Stops the heartbeat only: the worker's row is removed already. */
  abandon(): Promise<void> {
    return this.#stopBeating()
  }
}

function stopper(heartbeat: Heartbeat | undefined, beatHere: () => () => void): () => Promise<void> {
  if (heartbeat !== undefined) return () => heartbeat.stop()
  const stop = beatHere()
  return () => {
    stop()
    return Promise.resolve()
  }
}

function beatByTimer(
  store: LeaseStore,
  world: World,
  worker: string,
  everyMs: number,
  onLost: (why: string) => void,
): () => void {
  let ended = false
  let cancel = (): void => undefined
  const next = (): void => {
    cancel = world.timers.after(everyMs, () => void beat(), { idle: true })
  }
  const beat = async (): Promise<void> => {
    try {
      const alive = await store.beat(worker)
      if (ended) return
      if (!alive) return onLost('it was declared dead')
    } catch {
      // The store fails for now. The next beat tries again; a rescuer waits for one lease.
    }
    if (!ended) next()
  }
  next()
  return () => {
    ended = true
    cancel()
  }
}
