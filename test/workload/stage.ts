import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Context } from '../../src/job/attempt/context.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'

/** What all parts of the workload share in one history. */
export interface Stage {
  readonly sim: Simulation
  /** Whose work it is: captured at each enqueue. */
  readonly tenant: AsyncLocalStorage<string>
  /** How often each dozing or resting job has done so. */
  readonly dozed: Map<string, number>
  /** The newest number that was acknowledged for a job that is put off or scheduled, and the newest that its handler saw. */
  readonly newest: Map<string, number>
  readonly seen: Map<string, number>
}

/** The stage as one process sees it. */
export interface Cast extends Stage {
  readonly process: SimProcess
  readonly wait: (ms: number) => Promise<void>
}

/** Every payload says for whom it was enqueued, so that a handler can see whether the captured value is the right one. */
export interface Told {
  readonly tenant?: string | undefined
}

/** Enqueues as one of a few tenants, or as nobody. */
export function asTenant<T>({ tenant }: Stage, random: Random, call: (name: string | undefined) => T): T {
  const name = random.pick([undefined, 'ada', 'bob'])
  return name === undefined ? call(name) : tenant.run(name, () => call(name))
}

/** A handler with the promise about context around it: what was in place at the enqueue is in place from its first line to its last (C1). */
export function inContext<Payload extends Told, Result>(
  stage: Stage,
  run: (payload: Payload, ctx: Context) => Promise<Result>,
): (payload: Payload, ctx: Context) => Promise<Result> {
  return async (payload, ctx) => {
    checkContext(stage, payload, ctx)
    try {
      return await run(payload, ctx)
    } finally {
      checkContext(stage, payload, ctx)
    }
  }
}

export function checkContext({ sim, tenant }: Stage, payload: Told, ctx: Context): void {
  const inPlace = tenant.getStore()
  if (inPlace !== payload.tenant)
    sim.fail(new BrokenPromise(`C1: job ${ctx.id} was enqueued as ${payload.tenant} and runs as ${inPlace}`))
  else if (inPlace !== undefined) sim.count('context in place')
}

/** This is the first time that a handler of this job runs: what goes wrong on purpose does so only then. */
export function isFirstRun({ sim }: Stage, ctx: Context): boolean {
  return sim.book.runsOf(ctx.id).length <= 1
}
