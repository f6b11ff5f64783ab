import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Context } from '../../src/job/attempt/context.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'

/** What all parts of the workload share in one history. */
export interface SharedState {
  readonly sim: Simulation
  /** The tenant: captured at each enqueue. */
  readonly tenant: AsyncLocalStorage<string>
  /** How often each job has snoozed or paused its queue. */
  readonly dozed: Map<string, number>
  /** The newest number that was acknowledged for a job that is postponed or scheduled, and the newest that its handler got. */
  readonly newest: Map<string, number>
  readonly seen: Map<string, number>
}

/** The shared state, with one process. */
export interface ProcessState extends SharedState {
  readonly process: SimProcess
  readonly wait: (ms: number) => Promise<void>
}

/** Every payload has its tenant, so that a handler can check whether the captured value is the right one. */
export interface TenantPayload {
  readonly tenant?: string | undefined
}

/** Enqueues as one of a few tenants, or without one. */
export function asTenant<T>({ tenant }: SharedState, random: Random, call: (name: string | undefined) => T): T {
  const name = random.pick([undefined, 'ada', 'bob'])
  return name === undefined ? call(name) : tenant.run(name, () => call(name))
}

/** A handler that checks the promise about context: the captured value is restored from its first line to its last (C1). */
export function inContext<Payload extends TenantPayload, Result>(
  state: SharedState,
  run: (payload: Payload, ctx: Context) => Promise<Result>,
): (payload: Payload, ctx: Context) => Promise<Result> {
  return async (payload, ctx) => {
    checkContext(state, payload, ctx)
    try {
      return await run(payload, ctx)
    } finally {
      checkContext(state, payload, ctx)
    }
  }
}

export function checkContext({ sim, tenant }: SharedState, payload: TenantPayload, ctx: Context): void {
  const inPlace = tenant.getStore()
  if (inPlace !== payload.tenant)
    sim.fail(new BrokenPromise(`C1: job ${ctx.id} was enqueued as ${payload.tenant} and runs as ${inPlace}`))
  else if (inPlace !== undefined) sim.count('context in place')
}

/** Whether this is the first run of this job: planned failures occur only then. */
export function isFirstRun({ sim }: SharedState, ctx: Context): boolean {
  return sim.runs.runsOf(ctx.id).length <= 1
}
