import type { Scenario } from '../stage.js'

/** What becomes of an attempt: each ends as its handler says, counted once. */
export const ATTEMPTS: readonly Scenario[] = [
  {
    name: 'retry',
    async run(stage) {
      const { id } = await stage.enqueue('flaky', { fails: 2 })
      await stage.until(id, (state) => state === 'done')
    },
    check: (stage) =>
      stage.expectJobs((jobs) => jobs.every(({ attempt }) => attempt >= 3), 'an attempt was not counted'),
  },
  {
    name: 'fail',
    async run(stage) {
      const doomed = await stage.enqueue('doomed')
      const aborted = await stage.enqueue('quitter')
      await stage.until(doomed.id, (state) => state === 'failed')
      await stage.until(aborted.id, (state) => state === 'failed')
    },
  },
  {
    name: 'snooze',
    async run(stage) {
      const { id } = await stage.enqueue('dozer', { until: stage.sim.clock.now + 500 })
      await stage.until(id, (state) => state === 'done')
    },
    check: (stage) =>
      stage.expectJobs(
        (jobs) => jobs.every(({ retries }) => retries <= stage.failedStarts),
        'a snooze counted as a retry',
      ),
  },
  {
    name: 'timeout',
    async run(stage) {
      const { id } = await stage.enqueue('slow', { ms: 2_000 })
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'result',
    async run(stage) {
      const handle = await stage.enqueue('work', { n: 7, ms: 100 })
      const result = await stage.call(() => handle.result({ timeout: stage.patienceMs }))
      stage.expect(result === 7, `the result is ${String(result)}`)
      const failing = await stage.enqueue('quitter')
      const code = await stage.refusal(() => failing.result({ timeout: stage.patienceMs }))
      stage.expect(code === 'E_JOB_FAILED', `the result of a failed job is refused by ${code}`)
    },
  },
  {
    name: 'child',
    async run(stage) {
      const { id } = await stage.enqueue('parent', {})
      await stage.until(id, (state) => state === 'done')
    },
    check: (stage) =>
      stage.expectJobs(
        (jobs) => jobs.filter(({ name }) => name === 'child').length * 2 >= jobs.length,
        'a parent is done, and its child was not written',
      ),
  },
  {
    name: 'transaction',
    async run(stage) {
      const { id } = await stage.enqueue('bank')
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'progress',
    async run(stage) {
      const { id } = await stage.enqueue('work', { ms: 900, n: 1 })
      await stage.wait(500)
      await stage.call(() => stage.mill.get(id))
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'find-and-count',
    async run(stage) {
      const { mill } = stage
      await stage.call(() => mill.enqueueMany('work', [{ n: 1 }, { n: 2 }, { n: 3 }], { labels: ['found'] }))
      const found = await stage.call(async () => {
        const ids = new Set<string>()
        for await (const { id } of mill.find({ label: 'found' })) ids.add(id)
        return ids
      })
      const { count } = await stage.call(() => mill.count({ label: 'found' }))
      stage.expect(found.size === count && count % 3 === 0, `${found.size} jobs are found, and ${count} are counted`)
    },
  },
  {
    name: 'unkept',
    async run(stage) {
      const { id } = await stage.enqueue('unkept')
      stage.sim.deletable.add(id)
      await stage.wait(500)
    },
  },
]
