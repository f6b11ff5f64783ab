import { isFinal } from '../../../src/job/rules/states.js'
import type { Scenario } from '../stage.js'

/** Commands: what was acknowledged has happened, and what failed may be repeated. */
export const COMMANDS: readonly Scenario[] = [
  {
    name: 'cancel-waiting',
    async run(stage) {
      const { id } = await stage.enqueue('work', {}, { in: 1_000 })
      await stage.call(() => stage.mill.cancel(id))
      // A cancel that came too late found it done.
      await stage.until(id, isFinal)
    },
  },
  {
    name: 'cancel-running',
    async run(stage) {
      const { id } = await stage.enqueue('patient', { ms: 6_000 })
      await stage.until(id, (state) => state === 'running' || isFinal(state))
      await stage.call(() => stage.mill.cancel(id))
      await stage.until(id, isFinal)
      await stage.expectState(id, 'cancelled', 'done')
    },
  },
  {
    name: 'pause-waiting',
    async run(stage) {
      const { id } = await stage.enqueue('work', {}, { in: 300 })
      await stage.call(() => stage.mill.pause(id))
      await stage.wait(700)
      // A pause that came too late found it running, and lets it end.
      await stage.expectState(id, 'paused', 'done', 'running')
      await stage.call(() => stage.mill.resume(id))
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'pause-running',
    async run(stage) {
      const { id } = await stage.enqueue('slow', { ms: 2_000 })
      await stage.until(id, (state) => state === 'running' || state === 'retrying' || isFinal(state))
      await stage.call(() => stage.mill.pause(id))
      await stage.until(id, (state) => state === 'paused' || state === 'done')
      await stage.call(() => stage.mill.resume(id))
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'pause-queue',
    async run(stage) {
      const queue = stage.mill.queue('mail')
      await stage.call(() => queue.pause())
      const { id } = await stage.enqueue('work', {}, { queue: 'mail' })
      await stage.wait(300)
      await stage.expectState(id, 'ready')
      await stage.call(() => queue.resume())
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'pause-queue-until',
    async run(stage) {
      await stage.call(() => stage.mill.queue('mail').pauseUntil(600))
      const { id } = await stage.enqueue('work', {}, { queue: 'mail' })
      await stage.until(id, (state) => state === 'done')
      await stage.enqueue('resting', {}, { queue: 'mail' })
      const next = await stage.enqueue('work', {}, { queue: 'mail' })
      await stage.until(next.id, (state) => state === 'done')
    },
  },
  {
    name: 'edit',
    async run(stage) {
      const { id } = await stage.enqueue('work', { n: 1 }, { in: 60_000 })
      await stage.call(() => stage.mill.edit(id, { payload: { n: 2 }, in: 100, priority: 3, queue: 'mail' }))
      await stage.until(id, (state) => state === 'done')
    },
    check: (stage) =>
      stage.expectJobs(
        (jobs) => jobs.some(({ n, queue, state }) => n === 2 && queue === 'mail' && state === 'done'),
        'an edit was acknowledged and lost',
      ),
    // A job whose enqueue was repeated waits for a minute.
    config: { drainMs: 90_000 },
  },
  {
    name: 'delete',
    async run(stage) {
      const waiting = await stage.enqueue('work', {}, { in: 1_000 })
      await stage.call(() => stage.mill.delete(waiting.id))
      await stage.expectState(waiting.id, 'gone')
      const ended = await stage.enqueue('work', {})
      await stage.until(ended.id, (state) => state === 'done')
      await stage.call(() => stage.mill.delete(ended.id))
      await stage.expectState(ended.id, 'gone')
    },
  },
  {
    name: 'retry-failed',
    async run(stage) {
      const { id } = await stage.enqueue('quitter')
      await stage.until(id, (state) => state === 'failed')
      await stage.call(() => stage.mill.retry(id))
      await stage.until(id, (state) => state === 'failed')
      const cancelled = await stage.enqueue('work', {}, { in: 5_000 })
      await stage.call(() => stage.mill.cancel(cancelled.id))
      await stage.call(() => stage.mill.retry(cancelled.id))
      await stage.until(cancelled.id, (state) => state === 'done')
    },
  },
]
