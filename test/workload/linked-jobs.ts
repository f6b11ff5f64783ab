import { job } from '../../src/job/definition/define.js'
import type { AnyJob } from '../../src/job/definition/define.js'
import { BrokenPromise } from '../../src/testing/checkers/broken-promise.js'
import type { ProcessState, TenantPayload } from './shared-state.js'
import { inContext } from './shared-state.js'

/** A job that reads the results of its parents. */
export function linkedJobs(state: ProcessState): AnyJob[] {
  const { sim, wait } = state
  const joiner = job('joiner', {
    run: inContext(state, async (p: TenantPayload & { ms: number }, ctx) => {
      const [wanted, given] = [givenBy(state, ctx.id), await ctx.results('steady')]
      // One may have been deleted meanwhile.
      if (wanted === givenBy(state, ctx.id) && wanted !== given.join(' '))
        sim.fail(new BrokenPromise(`P3: the parents of job ${ctx.id} gave ${wanted}, and it got ${given.join(' ')}`))
      if (given.length > 0) sim.count('results of parents')
      await wait(p.ms)
      return given.length
    }),
    retry: { limit: 4, backoff: { start: 100, max: 1_000 } },
  })
  return [joiner] as AnyJob[]
}

/** What parents of one kind returned: the number in their payload, in the order of `after`. */
function givenBy({ sim }: ProcessState, id: string): string {
  const { jobs } = sim.census()
  const after = jobs.find((each) => each.id === id)?.after ?? []
  return after
    .flatMap((parent) => jobs.filter((each) => each.id === parent && each.name === 'steady' && each.state === 'done'))
    .map(({ n }) => n)
    .join(' ')
}
