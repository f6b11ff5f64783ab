import { Abort, Snooze } from '../../src/job/attempt/control-errors.js'
import type { Context } from '../../src/job/attempt/context.js'
import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import { handlerPauses } from '../../src/testing/simulation/recording-mill.js'
import type { SimProcess } from '../../src/testing/simulation/sim-process.js'
import type { Simulation } from '../../src/testing/simulation/simulation.js'

/** Jobs whose work and settlement are one transaction. */
export const BANKING: ReadonlySet<string> = new Set(['bank'])

const RETRY = { limit: 6, backoff: { start: 200, factor: 1 }, jitter: 0 }

/** The jobs of every scenario, in one process. */
export function sharedJobs(sim: Simulation, process: SimProcess): AnyJob[] {
  const wait = (ms: number): Promise<void> => sim.wait(process, ms)
  const work = job('work', async (p: { ms?: number; n?: number }, ctx) => {
    ctx.progress(1, 2)
    await wait(p.ms ?? 0)
    ctx.log('worked')
    return p.n
  })
  const quick = job('quick', () => undefined)
  const brief = job('brief', { keep: { done: '1s', cancelled: '1s' }, run: () => undefined })
  const kept = job('unkept', { keep: 'none', run: () => wait(20) })
  const child = job('child', () => wait(5))
  const parent = job('parent', {
    run: async (p: { group?: string }, ctx) => {
      await wait(20)
      const made = await ctx.enqueue(child, undefined, p.group === undefined ? {} : { group: p.group })
      sim.acknowledged.add(made.id)
    },
    retry: RETRY,
  })
  const joiner = job('joiner', {
    run: async (_: unknown, ctx) => (await ctx.results('work')).length,
    retry: RETRY,
  })
  const all = [work, quick, brief, kept, child, parent, joiner, ...endingJobs(sim, wait), ...controlJobs(sim, process)]
  return all as AnyJob[]
}

/** Jobs that fail, abort, snooze, or take too long. */
function endingJobs(sim: Simulation, wait: (ms: number) => Promise<void>): AnyJob[] {
  const flaky = job('flaky', {
    run: async (p: { fails: number }, ctx) => {
      await wait(10)
      if (ctx.attempt <= p.fails) throw new Error(`attempt ${ctx.attempt} fails`)
    },
    retry: RETRY,
  })
  const doomed = job('doomed', {
    run: async () => {
      throw new Error('always')
    },
    retry: { ...RETRY, limit: 1 },
  })
  const quitter = job('quitter', () => {
    throw new Abort('no use')
  })
  const dozer = job('dozer', (p: { until: number }, ctx) => {
    // Times come from the store, so that it snoozes once however often it begins.
    if (sim.clock.now < p.until) throw new Snooze(p.until - sim.clock.now + 1)
    ctx.log('rested')
  })
  const slow = job('slow', {
    timeout: 300,
    run: (p: { ms: number }, ctx) => (ctx.attempt === 1 ? untilAborted(wait(p.ms), ctx) : wait(5)),
    retry: RETRY,
  })
  const patient = job('patient', {
    run: (p: { ms: number }, ctx) => untilAborted(wait(p.ms), ctx),
    retry: RETRY,
  })
  return [flaky, doomed, quitter, dozer, slow, patient] as AnyJob[]
}

/** Jobs that settle themselves, pause their queue, or kill their process. */
function controlJobs(sim: Simulation, process: SimProcess): AnyJob[] {
  const bank = job('bank', {
    run: async (_: unknown, ctx) => {
      await sim.wait(process, 10)
      await ctx.transaction((tx: unknown) => sim.database.engine.writeWork(tx, ctx.id))
    },
    retry: RETRY,
  })
  const resting = job('resting', {
    run: async (_: unknown, ctx) => {
      if (ctx.attempt === 1) await handlerPauses(sim, ctx.queue.name, 400, () => ctx.queue.pauseUntil(400))
    },
    retry: RETRY,
  })
  const pill = job('pill', async (p: { kills: number }, ctx) => {
    await sim.wait(process, 20)
    if (sim.runs.runsOf(ctx.id).length <= p.kills) await sim.kill(process)
  })
  return [bank, resting, pill] as AnyJob[]
}

/** Like `fetch(url, { signal })`: waits, or throws the reason. */
function untilAborted(waited: Promise<void>, { signal }: Context): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    waited.then(resolve, reject)
  })
}
