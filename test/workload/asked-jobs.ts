import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { Context } from '../../src/job/attempt/context.js'
import { JobCancelledError } from '../../src/errors.js'
import { Snooze } from '../../src/job/attempt/control-errors.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import { SLOW_MAX_MS } from '../../src/testing/simulation/faults.js'
import { handlerPauses } from '../../src/testing/simulation/witness.js'
import type { Cast, Told } from './stage.js'
import { inContext, isFirstRun } from './stage.js'

/** How a handler takes it when its job is cancelled while it runs. */
export const MANNERS = ['obeys', 'fails', 'returns'] as const
export type Manner = (typeof MANNERS)[number]

/** A second, and what it takes to look and to tell. */
const TOLD_WITHIN_MS = 1_050

/** Jobs that are asked for something while they run, and one that asks for a rest of its queue. */
export function askedJobs(cast: Cast): AnyJob[] {
  const { sim, wait, dozed } = cast
  const patient = job('patient', {
    run: inContext(cast, async (p: Told & { ms: number; manner: Manner }, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        if (ctx.signal.reason instanceof JobCancelledError) sim.count(`told of a cancel: ${p.manner}`)
      })
      if (p.manner === 'obeys') await untilAborted(wait(p.ms), ctx)
      else await wait(p.ms)
      checkTold(cast, ctx)
      if (p.manner === 'fails' && (ctx.signal.aborted || isFirstRun(cast, ctx))) throw new Error('told or not')
    }),
    retry: { limit: 6, backoff: { start: 200, max: 1_000 } },
  })
  // Hears of nothing for longer than the grace of a cancelled job.
  const deaf = job(
    'deaf',
    inContext(cast, async (p: Told & { ms: number }, ctx) => {
      await wait(p.ms)
      if (ctx.signal.aborted) sim.count('came back after its grace')
    }),
  )
  const resting = job(
    'resting',
    inContext(cast, async (p: Told & { restMs: number }, ctx) => {
      if (dozed.has(ctx.id)) return
      dozed.set(ctx.id, 1)
      await handlerPauses(sim, ctx.queue.name, p.restMs, () => ctx.queue.pauseUntil(p.restMs))
      sim.count('queues paused by a handler')
      throw new Snooze(p.restMs)
    }),
  )
  return [patient, deaf, resting] as AnyJob[]
}

/**
 * A handler is told of a cancel within a second (X7): by a hint, or at the next look of its worker, whatever hints are lost.
 * Not held against a process that slept or was failed by its store meanwhile, or whose last answer may be on its way yet.
 */
function checkTold({ sim, process }: Cast, ctx: Context): void {
  const since = sim.asks.cancelledSince(ctx.id)
  const isUntold = since !== undefined && sim.time.now - since > TOLD_WITHIN_MS && !ctx.signal.aborted
  const troubledAt = Math.max(process.troubledAt, process.frozenUntil, process.blockedUntil)
  if (isUntold && troubledAt < since - SLOW_MAX_MS)
    sim.fail(new BrokenPromise(`X7: job ${ctx.id} was cancelled ${sim.time.now - since} ms ago, and was not told`))
}

/** As `fetch(url, { signal })` does: waits, or throws the reason. */
function untilAborted(waited: Promise<void>, { signal }: Context): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    waited.then(resolve, reject)
  })
}
