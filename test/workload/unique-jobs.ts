import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import type { UniqueRule } from '../../src/testing/checkers/unique-checks.js'
import type { ProcessState, TenantPayload } from './shared-state.js'
import { inContext } from './shared-state.js'

const WINDOW_MS = 2_500
const PUT_OFF_MAX_MS = 3_000

/** What the checkers must know of the jobs below. */
export const UNIQUE_RULES: ReadonlyMap<string, UniqueRule> = new Map([
  ['sole', { forMs: null, reschedules: false }],
  ['once', { forMs: WINDOW_MS, reschedules: false }],
  ['behind', { forMs: null, reschedules: false }],
  ['latest', { forMs: PUT_OFF_MAX_MS, reschedules: true }],
])

type Placed = TenantPayload & {
  readonly place: number
  readonly ms: number
  readonly n: number
  readonly fails: number
}

/** One at a time, one per window, one waiting after the running one, and one that each new one postpones. */
export function uniqueJobs(state: ProcessState): AnyJob[] {
  const run = inContext(state, async (p: Placed, ctx) => {
    state.seen.set(ctx.id, Math.max(p.n, state.seen.get(ctx.id) ?? 0))
    await state.wait(p.ms)
    if (ctx.attempt <= p.fails) throw new Error(`attempt ${ctx.attempt} fails`)
  })
  const retry = { limit: 1, backoff: { start: 200 } }
  return [
    job('sole', { run, retry, unique: { by: 'place' } }),
    job('once', { run, retry, unique: { by: 'place', for: WINDOW_MS } }),
    job('behind', { run, retry, unique: { by: 'place', while: 'waiting' } }),
    job('latest', { run, retry, unique: { by: 'place', for: PUT_OFF_MAX_MS, onDuplicate: 'reschedule' } }),
  ] as AnyJob[]
}
