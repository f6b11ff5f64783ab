import { expect } from 'vitest'
import { job } from '../../src/index.js'
import type { Mill } from '../../src/index.js'
import type { Bound } from './bound.js'
import { noop, payloads } from './bound.js'
import { openStore } from './stores.js'

const parent = job<unknown, unknown>('parent', async () => undefined)
const follows = job<unknown, unknown>('follows', async () => undefined)

/** The number of jobs in a queue that are in a state. */
async function inState(mill: Mill, queue: string, state: 'ready' | 'blocked' | 'cancelled' | 'done'): Promise<number> {
  return (await mill.count({ queue, state })).count
}

/** Waits for a condition in real time. */
async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  await expect.poll(condition, { timeout: 20_000, interval: 10, message: what }).toBe(true)
}

/** Batches of the upkeep. A poll of ten minutes: what one batch leaves must not wait for the next poll. */
export const upkeepBatches: readonly Bound[] = [
  {
    of: 'src/upkeep/promote.ts#BATCH',
    at: 1_000,
    on: 'both',
    when: 'due jobs',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const queue = `due ${size}`
      await kit.mill.enqueueMany(noop, payloads(size), { queue, in: '1m' })
      await kit.advance('1m')
      expect(await inState(kit.mill, queue, 'ready')).toBe(size)
    },
  },
  {
    of: 'src/upkeep/promote.ts#BATCH',
    at: 1_000,
    on: 'both',
    when: 'due members of a group',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const queue = `due ${size}`
      await kit.mill.enqueueMany(noop, payloads(size), { queue, in: '1m', group: queue })
      await kit.advance('1m')
      expect(await kit.mill.group(queue).progress()).toMatchObject({ total: size, ready: size })
    },
  },
  {
    of: 'src/upkeep/promote.ts#BATCH',
    at: 1_000,
    on: 'both',
    when: 'expired jobs, in real time',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const mill = await bench.mill({ jobs: [noop], poll: '10m' })
      const queue = `expired ${size}`
      await mill.queue(queue).pause()
      await mill.enqueueMany(noop, payloads(size), { queue, expires: 1 })
      await until(async () => (await inState(mill, queue, 'cancelled')) === size, `${size} expired jobs are cancelled`)
    },
  },
  {
    of: 'src/upkeep/promote.ts#BATCH',
    at: 1_000,
    on: 'both',
    when: 'the children of one parent, in real time',
    also: ['src/store/sqlite/verbs/links.ts#AT_ONCE'],
    isLong: 'postgres',
    holds: async (size, bench) => {
      const mill = await bench.mill({ jobs: [noop, parent], poll: '10m' })
      const queue = `children ${size}`
      await mill.queue(queue).pause()
      const first = await mill.enqueue(parent, {}, { in: '1h' })
      await mill.enqueueMany(noop, payloads(size), { queue, after: [first] })
      expect(await inState(mill, queue, 'blocked')).toBe(size)
      await mill.edit(first.id, { in: 0 })
      await until(async () => (await inState(mill, queue, 'ready')) === size, `${size} children are released`)
    },
  },
  {
    of: 'src/upkeep/promote.ts#BATCH',
    at: 1_000,
    on: 'both',
    when: 'parents that have ended, with a smaller batch',
    holds: async (size, bench) => {
      const store = await openStore(bench)
      const [count, batch] = [20 + size - 1_000, 20]
      const parents = Array.from({ length: count }, () => store.job({ due: { inMs: 3_600_000 } }))
      await store.insert(parents)
      const children = parents.map(({ id }) => store.job({ after: [{ id }], onParentFailure: 'cancel' }))
      await store.insert(children)
      for (const { id } of parents)
        await store.store.jobs.changeJob({ id, from: 'scheduled', to: 'cancelled', keepMs: Infinity })
      const cancelled: string[] = []
      for (let again = true; again;) {
        const promoted = await store.store.jobs.promoteJobs(batch)
        cancelled.push(...promoted.cancelledByParents.map(({ id }) => id))
        again = promoted.again
      }
      expect(cancelled.toSorted()).toEqual(children.map(({ id }) => id).toSorted())
    },
  },
  {
    of: 'src/upkeep/promote.ts#BATCH',
    at: 1_000,
    on: 'sqlite',
    when: 'groups that are complete, in real time',
    holds: async (size, bench) => {
      const mill = await bench.mill({ jobs: [follows], poll: '10m' })
      const queue = `follows ${size}`
      await mill.queue(queue).pause()
      const names = payloads(size).map(({ n }) => `${size} ${n}`)
      await Promise.all(names.map((name) => mill.group(name, { whenDone: [follows, {}, { queue }] }).seal()))
      await until(async () => (await inState(mill, queue, 'ready')) === size, `${size} groups are complete`)
    },
  },
  {
    of: 'src/upkeep/prune.ts#STEP',
    at: 1_000,
    on: 'both',
    also: ['src/upkeep/prune.ts#BACKLOG_STEP'],
    holds: async (size, bench) => {
      const brief = job<unknown, unknown>('brief', { run: async () => undefined, keep: '200ms' })
      const mill = await bench.mill({ jobs: [brief], concurrency: 100, poll: '10m' })
      await mill.enqueueMany(brief, payloads(size))
      await until(async () => (await mill.count({})).count === 0, `${size} ended jobs are pruned`)
    },
  },
]
