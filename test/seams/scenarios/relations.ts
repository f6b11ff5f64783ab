import type { Scenario, Stage } from '../stage.js'

/** Groups, links and schedules: counts and links stay exact, and what follows comes once. */
export const RELATIONS: readonly Scenario[] = [
  {
    name: 'group-seal',
    async run(stage) {
      const group = stage.mill.group('g', { whenDone: ['work', { follows: 'g', n: 9 }] })
      await stage.call(() => stage.mill.enqueueMany('work', [{ ms: 50 }, { ms: 100 }], { group: 'g' }))
      await stage.enqueue('parent', { group: 'g' }, { group: 'g' })
      await stage.call(() => group.seal())
      const { unfinished } = await stage.call(() => group.progress())
      stage.expect(unfinished >= 0, 'the group has no progress')
      await stage.wait(1_000)
    },
    check: (stage) =>
      stage.expectJobs((jobs) => jobs.filter(({ n }) => n === 9).length === 1, 'what follows a group comes once'),
  },
  {
    name: 'group-commands',
    async run(stage) {
      const group = stage.mill.group('h')
      await stage.call(() => stage.mill.enqueueMany('work', [{ n: 1 }, { n: 2 }], { group: 'h', in: 400 }))
      await stage.enqueue('quitter', undefined, { group: 'h' })
      await stage.call(() => group.pause())
      await stage.wait(600)
      await stage.call(() => group.resume())
      await stage.wait(300)
      for (const { id } of await stage.jobs()) stage.sim.revivals.set(id, stage.sim.revivals.get(id) ?? 5)
      await stage.call(() => group.retryFailed())
      await stage.call(() => stage.mill.enqueueMany('work', [{ n: 3 }], { group: 'h', in: 3_000 }))
      for (const { id } of await stage.jobs()) stage.sim.cancelled.add(id)
      await stage.call(() => group.cancel())
      await stage.call(() => group.seal())
    },
  },
  {
    name: 'link-wait',
    async run(stage) {
      const parent = await stage.enqueue('quitter')
      const child = await stage.enqueue('work', { asked: [parent.id] }, { after: [parent] })
      await stage.until(parent.id, (state) => state === 'failed')
      await stage.wait(200)
      await stage.expectState(child.id, 'blocked')
      await stage.call(() => stage.mill.delete(parent.id))
      await stage.until(child.id, (state) => state === 'cancelled')
    },
  },
  {
    name: 'link-done',
    async run(stage) {
      const parents = [await stage.enqueue('work', { ms: 50 }), await stage.enqueue('work', { ms: 120 })]
      const asked = parents.map(({ id }) => id)
      const child = await stage.enqueue('joiner', { asked }, { after: parents })
      const grandchild = await stage.enqueue('work', { asked: [child.id] }, { after: [child] })
      await stage.until(grandchild.id, (state) => state === 'done')
    },
  },
  {
    name: 'link-cancel',
    async run(stage) {
      const parent = await stage.enqueue('quitter', undefined, { in: 200 })
      const policy = 'cancel' as const
      const child = await stage.enqueue(
        'work',
        { asked: [parent.id], policy },
        { after: [parent], onParentFailure: policy },
      )
      await stage.until(child.id, (state) => state === 'cancelled')
    },
  },
  {
    name: 'link-run',
    async run(stage) {
      const parent = await stage.enqueue('work', {}, { in: 3_000 })
      const policy = 'run' as const
      const child = await stage.enqueue(
        'work',
        { asked: [parent.id], policy },
        { after: [parent], onParentFailure: policy },
      )
      await stage.call(() => stage.mill.cancel(parent.id))
      await stage.until(child.id, (state) => state === 'done')
    },
  },
  {
    name: 'link-edit',
    async run(stage) {
      const parent = await stage.enqueue('work', { ms: 100 })
      const child = await stage.enqueue('work', {}, { in: 2_000 })
      stage.sim.lateLinks.set(`${child.id} ${parent.id}`, 'wait')
      await stage.call(() => stage.mill.edit(child.id, { after: [parent], in: 50 }))
      await stage.until(child.id, (state) => state === 'done')
    },
  },
  {
    name: 'recurring',
    async run(stage) {
      const { mill } = stage
      await recur(stage, 1)
      await stage.wait(1_600)
      await recur(stage, 2)
      await stage.call(() => mill.schedules.pause('tick'))
      await stage.call(() => mill.schedules.resume('tick'))
      await stage.wait(1_500)
      await stage.call(() => mill.deleteRecurring('tick'))
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length >= 2, 'two ticks have a job'),
  },
  {
    name: 'recurring-by-hand',
    async run(stage) {
      const { mill, sim } = stage
      await stage.call(() => mill.recurring('hourly', 'work', { n: 1 }, '0 * * * *'))
      await stage.call(() => mill.schedules.runNow('hourly'))
      const [from, to] = [new Date(sim.clock.now - 7_300_000), new Date(sim.clock.now)]
      await stage.call(() => mill.schedules.backfill('hourly', from, to))
      await stage.call(() => mill.upcoming('2h'))
      await stage.wait(300)
      await stage.call(() => mill.deleteRecurring('hourly'))
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length >= 3, 'three ticks have a job'),
  },
]

function recur(stage: Stage, n: number): Promise<unknown> {
  return stage.call(() => stage.mill.recurring('tick', 'work', { n }, { every: 1_000 }, { missed: 'all' }))
}
