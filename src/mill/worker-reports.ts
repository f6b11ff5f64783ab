import type { WorkerAbout } from '../store/observing/lists.js'
import type { Cancel } from '../world/timers.js'
import type { PartsToStart } from './started-parts.js'

/** How often a worker reports memory, event-loop delay and what may have changed: one statement each time. */
const REPORT_MS = 30_000

/** What a worker says about itself, read at each call. */
export function describeWorker({ world, registry, options, version }: PartsToStart): () => WorkerAbout {
  const app = version ?? world.vitals?.appVersion()
  return () => ({
    version: app,
    slots: options().concurrency,
    names: registry.claimable(),
    ...(options().queues.size === 0 ? {} : { queues: Object.fromEntries(options().queues) }),
    ...world.vitals?.read(),
  })
}

/** Reports until stopped. In a simulated world, which has no vitals, a worker reports only when it registers. */
export function reportWorker(
  { world, store, events }: PartsToStart,
  self: () => string | undefined,
  about: () => WorkerAbout,
): Cancel {
  if (world.vitals === undefined) return () => undefined
  let cancel: Cancel = () => undefined
  const next = (): void => {
    cancel = world.timers.after(REPORT_MS, () => void report(), { idle: true })
  }
  const report = async (): Promise<void> => {
    const worker = self()
    try {
      if (worker !== undefined) await store.leases.reportWorker(worker, about())
    } catch (error) {
      events.storeFailed('report the worker', error)
    }
    if (!isStopped) next()
  }
  let isStopped = false
  next()
  return () => {
    isStopped = true
    cancel()
  }
}
