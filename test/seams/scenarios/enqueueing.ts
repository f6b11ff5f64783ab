import type { Handle } from '../../../src/job/enqueue.js'
import type { Scenario, Stage } from '../stage.js'

/** Ways to enqueue: everything that was acknowledged ends, and is written once. */
export const ENQUEUEING: readonly Scenario[] = [
  {
    name: 'enqueue',
    async run(stage) {
      const handle = await stage.enqueue('work', { n: 1 })
      await stage.until(handle.id, (state) => state === 'done')
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length <= 1 + stage.repeated, 'a job was written twice'),
  },
  {
    name: 'enqueue-later',
    async run(stage) {
      const before = stage.sim.clock.soonest
      const handle = await stage.enqueue('work', { n: 1 }, { in: 700 })
      stage.sim.runs.notBefore(handle.id, Math.floor(before) + 700)
      await stage.until(handle.id, (state) => state === 'done')
    },
  },
  {
    name: 'enqueue-keyed',
    async run(stage) {
      const first = await stage.enqueue('work', { n: 1, ms: 300 }, { key: 'k' })
      const second = await stage.enqueue('work', { n: 2 }, { key: 'k' })
      if (second.isNew) await stage.expectState(first.id, 'done')
      await stage.until(first.id, (state) => state === 'done')
      // An answer that came late enough found the key free: the first job had ended.
      if (second.isNew) await stage.until(second.id, (state) => state === 'done')
      const third = await stage.enqueue('work', { n: 3 }, { key: 'k' })
      await stage.until(third.id, (state) => state === 'done')
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length <= 3 + stage.repeated, 'a key was held by two jobs'),
  },
  {
    name: 'enqueue-unique',
    async run(stage) {
      const unique = { by: () => 'u', for: 60_000 }
      const handles: Handle<unknown>[] = []
      for (let n = 0; n < 3; n += 1) handles.push(await stage.enqueue('work', { n }, { unique }))
      for (const { id } of handles) await stage.until(id, (state) => state === 'done')
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length === 1, 'jobs share a unique value'),
  },
  {
    name: 'enqueue-many',
    async run(stage) {
      const payloads = Array.from({ length: 12 }, (_, n) => ({ n }))
      const handles = await stage.call(() => stage.mill.enqueueMany('work', payloads, (_, n) => ({ key: `many-${n}` })))
      for (const { id } of handles) await stage.until(id, (state) => state === 'done')
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length % 12 === 0, 'a part of a bulk was written'),
  },
  {
    name: 'look-ahead',
    config: { concurrency: 2 },
    async run(stage) {
      const payloads = Array.from({ length: 30 }, () => undefined)
      await stage.call(() => stage.mill.enqueueMany('quick', payloads))
      await stage.enqueue('work', { ms: 80 })
      await stage.call(() => stage.mill.enqueueMany('quick', payloads))
      await stage.wait(300)
    },
  },
  {
    name: 'flow',
    async run(stage) {
      const joined = await stage.call(() =>
        stage.mill.flow((f) => {
          const parts = [1, 2, 3].map((n) => f.add('work', { n, ms: 20 * n }))
          f.add('joiner', {}, { after: parts })
        }),
      )
      for (const { id } of joined) await stage.until(id, (state) => state === 'done')
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length % 4 === 0, 'a part of a flow was written'),
  },
  {
    name: 'enqueue-in-transaction',
    async run(stage) {
      await inTransaction(stage, true)
      const ids = await inTransaction(stage, false)
      for (const id of ids) await stage.until(id, (state) => state === 'done')
    },
    check: (stage) => stage.expectJobs((jobs) => jobs.length === 3, 'three jobs were committed'),
  },
  {
    name: 'schedule-and-move',
    async run(stage) {
      const { mill } = stage
      const first = await stage.call(() => mill.schedule('work', { n: 1, ms: 300 }, 3_000, { key: 's' }))
      await stage.call(() => mill.schedule('work', { n: 2, ms: 300 }, 200, { key: 's' }))
      await stage.until(first.id, (state) => state === 'running' || state === 'done')
      const next = await stage.call(() => mill.schedule('work', { n: 3 }, 100, { key: 's' }))
      await stage.until(next.id, (state) => state === 'done')
      await stage.call(() => mill.schedule('work', { n: 4 }, 600_000, { key: 's' }))
      await stage.call(() => mill.unschedule('work', 's'))
    },
    check: (stage) =>
      stage.expectJobs(
        (jobs) => jobs.every(({ n, state }) => n !== 4 || state === 'cancelled'),
        'a job that was unscheduled ran',
      ),
  },
]

/** Three jobs in a transaction of the app; refused calls roll it back, and the app tries again. */
async function inTransaction(stage: Stage, rollsBack: boolean): Promise<readonly string[]> {
  const handles = await stage.call(() =>
    stage.sim.database.engine.inTransaction(rollsBack, (tx) => {
      const one = stage.mill.enqueue('work', { n: 1 }, { tx })
      const more = stage.mill.enqueueMany('work', [{ n: 2 }, { n: 3 }], { tx })
      return Promise.all([one, more])
    }),
  )
  for (const { id } of handles.flat()) (rollsBack ? stage.sim.undone : stage.sim.acknowledged).add(id)
  return handles.flat().map(({ id }) => id)
}
