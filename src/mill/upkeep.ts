import type { Registry } from '../job/definition/registry.js'
import { isFinal } from '../job/rules/states.js'
import type { EngineEvents } from '../observe/engine-events.js'
import { logHeld } from '../observe/log-lines.js'
import { Scheduler } from '../schedule/scheduler.js'
import type { SettledJob, Store } from '../store/store.js'
import { Promoter } from '../upkeep/promote.js'
import type { PromoteParts } from '../upkeep/promote.js'
import { Pruner } from '../upkeep/prune.js'
import { Rescuer } from '../upkeep/rescue.js'
import type { HeldElsewhere } from '../upkeep/rescue.js'
import type { WorkerOptions } from '../worker/worker.js'
import { silentLog } from '../world/log.js'
import type { Log } from '../world/log.js'
import type { World } from '../world/world.js'
import { firePartsOf } from './recurring.js'

export interface UpkeepParts {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  readonly events: EngineEvents
  readonly options: () => WorkerOptions
  /** The worker of the same mill, which must not be rescued. */
  readonly self: () => string | undefined
  /** Receives, at the start, the jobs that wait for another worker's lease to expire; undefined when logging is off. */
  readonly held: ((held: HeldElsewhere) => void) | undefined
}

/** The background parts beside a worker: promote due jobs, fire schedules, rescue the jobs of dead workers, prune old jobs. */
export interface Upkeep {
  /** The worker settled a job. */
  settled(job: SettledJob): void
  /** The options were changed. */
  configured(): void
  stop(): Promise<unknown>
}

export function promotePartsOf({
  world,
  store,
  registry,
  events,
}: Pick<UpkeepParts, 'world' | 'store' | 'registry' | 'events'>): PromoteParts {
  return {
    world,
    store,
    registry,
    followedUp: (group, job) => events.enqueued([job], { verb: 'whenDone', group }),
    cancelled: (job, reason) => events.changed(job, 'cancelled', reason),
    storeFailed: (what, error) => events.storeFailed(what, error),
  }
}

export function startUpkeep(given: UpkeepParts): Upkeep {
  const { world, store, events, options } = given
  const storeFailed = (what: string, error: unknown): void => events.storeFailed(what, error)
  const pollMs = (): number => options().pollMs
  const pruner = new Pruner(world, store, storeFailed)
  const promoter = new Promoter({ pollMs, probeEveryMs: pollMs, ...promotePartsOf(given) })
  const scheduler = new Scheduler({
    ...firePartsOf(given),
    pollMs,
    stepped: (step) => events.clockStepped(step),
    scheduleRecovered: (schedule, aheadMs) => events.scheduleRecovered(schedule, aheadMs),
  })
  const parts = [
    promoter,
    scheduler,
    new Rescuer({
      world,
      store,
      self: given.self,
      held: given.held,
      leaseMs: () => options().leaseMs,
      crashBudget: () => options().crashBudget,
      isIsolated: (name) => given.registry.get(name)?.isolation?.executor === 'process',
      rescued: (worker, jobs, parked) => events.rescued(worker, jobs, parked),
      settled: (job) => events.settled(job, undefined),
      storeFailed,
    }),
    pruner,
  ]
  for (const part of parts) part.start()
  return {
    settled: ({ to, keepMs }) => {
      if (isFinal(to) && keepMs > 0) pruner.ended(keepMs)
    },
    configured: () => {
      promoter.configured()
      scheduler.configured()
    },
    stop: () => Promise.all(parts.map((part) => part.stop())),
  }
}

/** Undefined when logging is off, so that no rows are read for a line that is not written. */
export function heldJobsLogger(log: Log): UpkeepParts['held'] {
  return log === silentLog ? undefined : (held) => logHeld(log, held)
}

/** The worker's events, with settled jobs passed to the upkeep too: it prunes about as many jobs as end. */
export function withUpkeepNotified(events: EngineEvents, upkeep: () => Upkeep | undefined): EngineEvents {
  const settled: EngineEvents['settled'] = (job, tookMs, running) => {
    upkeep()?.settled(job)
    events.settled(job, tookMs, running)
  }
  return { ...events, settled }
}
