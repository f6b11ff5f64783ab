import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { Context } from '../../src/job/attempt/context.js'
import { JobCancelledError } from '../../src/errors.js'
import { Snooze } from '../../src/job/attempt/control-errors.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import { SLOW_MAX_MS } from '../../src/testing/simulation/faults.js'
import { handlerPauses } from '../../src/testing/simulation/recording-mill.js'
import type { ProcessState, TenantPayload } from './shared-state.js'
import { inContext, isFirstRun } from './shared-state.js'

/** How a handler reacts when its job is cancelled while it runs. */
export const HANDLER_BEHAVIOURS = ['obeys', 'fails', 'returns'] as const
export type HandlerBehaviour = (typeof HANDLER_BEHAVIOURS)[number]

/** A second, plus the time to read the request and abort the signal. */
const ABORTED_WITHIN_MS = 1_050

/** Jobs with requested changes while they run, and one that pauses its queue. */
export function cancellableJobs(state: ProcessState): AnyJob[] {
  const { sim, wait, dozed } = state
  const patient = job('patient', {
    run: inContext(state, async (p: TenantPayload & { ms: number; behaviour: HandlerBehaviour }, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        if (ctx.signal.reason instanceof JobCancelledError) sim.count(`signal aborted by a cancel: ${p.behaviour}`)
      })
      if (p.behaviour === 'obeys') await untilAborted(wait(p.ms), ctx)
      else await wait(p.ms)
      checkAbortedInTime(state, ctx)
      if (p.behaviour === 'fails' && (ctx.signal.aborted || isFirstRun(state, ctx))) throw new Error('cancelled or not')
    }),
    retry: { limit: 6, backoff: { start: 200, max: 1_000 } },
  })
  // Ignores its signal for longer than the grace of a cancelled job.
  const deaf = job(
    'deaf',
    inContext(state, async (p: TenantPayload & { ms: number }, ctx) => {
      await wait(p.ms)
      if (ctx.signal.aborted) sim.count('came back after its grace')
    }),
  )
  const resting = job(
    'resting',
    inContext(state, async (p: TenantPayload & { restMs: number }, ctx) => {
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
 * A handler's signal is aborted within a second of a cancel (X7): by a hint, or by the next poll of its worker, whatever hints are lost.
 * A process is exempt that slept or whose store failed meanwhile, or whose last reply may still be in transit.
 */
function checkAbortedInTime({ sim, process }: ProcessState, ctx: Context): void {
  const since = sim.requests.cancelledSince(ctx.id)
  const isUntold = since !== undefined && sim.time.now - since > ABORTED_WITHIN_MS && !ctx.signal.aborted
  const storeFailedAt = Math.max(process.storeFailedAt, process.frozenUntil, process.blockedUntil, process.waitsUntil)
  if (isUntold && storeFailedAt < since - SLOW_MAX_MS)
    sim.fail(new BrokenPromise(`X7: job ${ctx.id} was cancelled ${sim.time.now - since} ms ago, and was not told`))
}

/** Like `fetch(url, { signal })`: waits, or throws the reason. */
function untilAborted(waited: Promise<void>, { signal }: Context): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    waited.then(resolve, reject)
  })
}
