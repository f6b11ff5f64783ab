import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import { Abort, Snooze } from '../../src/job/attempt/control-errors.js'
import type { ProcessState, TenantPayload } from './shared-state.js'
import { checkContext, inContext, isFirstRun } from './shared-state.js'

/** Jobs that are steady, quick, flaky, doomed, quitting, dozing, sleeping, rare and poisonous. */
export function plainJobs(state: ProcessState): AnyJob[] {
  const { sim, process, wait, dozed } = state
  const steady = job(
    'steady',
    inContext(state, async (p: TenantPayload & { ms: number; n: number }, ctx) => {
      ctx.progress(1, 2)
      state.seen.set(ctx.id, Math.max(p.n, state.seen.get(ctx.id) ?? 0))
      await wait(p.ms)
      return p.n
    }),
  )
  // Returns at once when it has nothing to wait for: whole bursts of these are held in advance, and run in one turn.
  // Kept for a moment, so that a run of seconds sees jobs pruned.
  const quick = job('quick', {
    keep: { done: '1s', cancelled: '2s' },
    run: (p: TenantPayload & { ms: number }, ctx) => {
      checkContext(state, p, ctx)
      return p.ms === 0 ? undefined : wait(p.ms)
    },
  })
  const dozer = job(
    'dozer',
    inContext(state, async (p: TenantPayload & { times: number }, ctx) => {
      const times = dozed.get(ctx.id) ?? 0
      dozed.set(ctx.id, times + 1)
      if (times < p.times) throw new Snooze('400ms')
    }),
  )
  const parent = job(
    'parent',
    inContext(state, async (p: TenantPayload & { ms: number; group?: string }, ctx) => {
      await wait(p.ms)
      const options = p.group === undefined ? {} : { group: p.group }
      const child = await ctx.enqueue(steady, { ms: 10, n: 0, tenant: state.tenant.getStore() }, options)
      sim.acknowledged.add(child.id)
    }),
  )
  const rare = job(
    'rare',
    inContext(state, async (p: TenantPayload & { ms: number }) => wait(p.ms)),
  )
  const pill = job(
    'pill',
    inContext(state, async (p: TenantPayload & { kills: number }, ctx) => {
      await wait(5)
      if (sim.runs.runsOf(ctx.id).length <= p.kills) await sim.kill(process)
    }),
  )
  const shared = [steady, quick, dozer, parent, pill, ...failingJobs(state)] as AnyJob[]
  return process.name === 'worker-1' || process.name === 'client' ? [...shared, rare as AnyJob] : shared
}

function failingJobs(state: ProcessState): AnyJob[] {
  const { sim, process, wait } = state
  const flaky = job('flaky', {
    run: inContext(state, async (p: TenantPayload & { ms: number; fails: number }, ctx) => {
      await wait(p.ms)
      if (ctx.attempt <= p.fails) throw new Error(`attempt ${ctx.attempt} fails`)
    }),
    retry: { limit: 8, backoff: { start: 200, max: 2_000 } },
  })
  const doomed = job('doomed', {
    run: inContext(state, async (p: TenantPayload & { ms: number }) => {
      await wait(p.ms)
      throw new Error('always')
    }),
    retry: { limit: 2, backoff: { start: 100 } },
  })
  const quitter = job(
    'quitter',
    inContext(state, async () => {
      throw new Abort('no use')
    }),
  )
  // Resumes after it was declared dead, and continues.
  const sleeper = job('sleeper', {
    run: inContext(state, async (p: TenantPayload & { ms: number; fails: number }, ctx) => {
      await (isFirstRun(state, ctx) ? sim.sleep(process) : wait(p.ms))
      if (ctx.attempt <= p.fails) throw new Error(`attempt ${ctx.attempt} fails`)
    }),
    retry: { limit: 3, backoff: { start: 100 } },
  })
  return [flaky, doomed, quitter, sleeper] as AnyJob[]
}
