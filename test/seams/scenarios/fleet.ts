import type { Scenario } from '../stage.js'

/** What workers and upkeep do by themselves: start, stop, rescue, promote, expire, prune, quarantine. */
export const FLEET: readonly Scenario[] = [
  {
    name: 'start',
    async run(stage) {
      await stage.wait(500)
    },
  },
  {
    name: 'stop',
    config: { concurrency: 2 },
    async run(stage) {
      await stage.call(() => stage.mill.enqueueMany('work', [{ ms: 100 }, { ms: 700 }, { ms: 900 }, { ms: 1_200 }]))
      await stage.wait(200)
      stage.sim.deploy(stage.sim.random('stop'), 300)
      await stage.wait(2_500)
    },
  },
  {
    name: 'stop-idle',
    async run(stage) {
      await stage.wait(100)
      stage.sim.deploy(stage.sim.random('stop'), 1_000)
      const { id } = await stage.enqueue('work', {})
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'rescue',
    async run(stage) {
      const { id } = await stage.enqueue('pill', { kills: 1 })
      await stage.call(() => stage.mill.enqueueMany('work', [{ ms: 300 }, { ms: 300 }]))
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'rescue-by-proof',
    config: { workers: 3, seed: 2 },
    async run(stage) {
      const { id } = await stage.enqueue('pill', { kills: 1 })
      await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'quarantine',
    config: { crashBudget: 2, quarantineMs: 2_000, drainMs: 80_000 },
    async run(stage) {
      const { id } = await stage.enqueue('pill', { kills: 99 })
      await stage.call(() => stage.mill.enqueueMany('work', [{ ms: 50 }, { ms: 50 }]))
      await stage.wait(5_000)
      await stage.until(id, (state) => state === 'parked')
    },
  },
  {
    name: 'promote',
    async run(stage) {
      const payloads = Array.from({ length: 10 }, (_, n) => ({ n }))
      const handles = await stage.call(() => stage.mill.enqueueMany('work', payloads, (_, n) => ({ in: 100 + 60 * n })))
      for (const { id } of handles) await stage.until(id, (state) => state === 'done')
    },
  },
  {
    name: 'expire',
    async run(stage) {
      await stage.call(() => stage.mill.queue('held').pause())
      const { id } = await stage.enqueue('work', {}, { queue: 'held', expires: 400 })
      const { id: late } = await stage.enqueue('work', {}, { in: 3_000, expires: 500 })
      for (const each of [id, late]) await stage.until(each, (state) => state === 'cancelled')
      await stage.call(() => stage.mill.queue('held').resume())
    },
  },
  {
    name: 'prune',
    async run(stage) {
      await stage.call(() => stage.mill.enqueueMany('brief', [undefined, undefined, undefined]))
      await stage.wait(2_500)
    },
    // A prune that failed is repeated after 30 s.
    config: { drainMs: 40_000 },
  },
]
