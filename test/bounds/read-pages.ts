import { expect } from 'vitest'
import { job } from '../../src/index.js'
import { Registry } from '../../src/job/definition/registry.js'
import { defaultCodec } from '../../src/codec/codec.js'
import { countJobs } from '../../src/client/read/count.js'
import type { Mill } from '../../src/index.js'
import type { Bench, Bound } from './bound.js'
import { lengthOf, noop, payloads, text } from './bound.js'
import { openStore } from './stores.js'

/** The numbers in the payloads of what a filter finds. */
async function found(mill: Mill, filter: Parameters<Mill['find']>[0]): Promise<number[]> {
  const numbers: number[] = []
  for await (const record of mill.find(filter)) numbers.push((record.payload as { n: number }).n)
  return numbers
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** Adds jobs up to a size; their payloads count on. */
function growTo(bench: Bench, mill: Mill, size: number, options: object = {}): Promise<void> {
  return bench.grow(size, (missing) =>
    mill.enqueueMany(
      noop,
      range(missing).map((i) => ({ n: size - missing + i })),
      options,
    ),
  )
}

/** In both orders every match comes once; a page that is exactly full loses none and repeats none. */
async function findsAll(size: number, bench: Bench, filter: { queue?: string; label?: string } = {}): Promise<void> {
  const { mill } = await bench.kit()
  await growTo(bench, mill, size, { labels: ['dense'] })
  expect(await found(mill, { order: 'oldest', ...filter })).toEqual(range(size))
  expect(await found(mill, { order: 'newest', ...filter })).toEqual(range(size).reverse())
}

/** One job in both indexes, and so many after it that are in one of them, in turn. */
async function growBesides(size: number, bench: Bench, mill: Mill): Promise<void> {
  if (bench.made === 0) await mill.enqueue(noop, { n: 0 }, { queue: 'right', labels: ['right'] })
  const sides = [
    { queue: 'right', labels: ['left'] },
    { queue: 'left', labels: ['right'] },
  ]
  await bench.grow(size, (missing) =>
    mill.enqueueMany(noop, payloads(2 * missing), (_, i) => sides[i % 2] as (typeof sides)[0]),
  )
}

/**
 * Two dense indexes and one match, the oldest job: the search has to read its whole window, and one candidate more, before it
 * finds it.
 */
async function findsBehindWindow(size: number, bench: Bench): Promise<void> {
  const { mill } = await bench.kit()
  await growBesides(size, bench, mill)
  expect(await found(mill, { queue: 'right', label: 'right' })).toEqual([0])
  expect(await mill.count({ queue: 'right', label: 'right' })).toEqual({ count: 1, exact: true })
}

/** A count that reads so many pages, and then one match more than they hold. */
async function countsSparsely(size: number, bench: Bench, pages: number, window: number): Promise<void> {
  const store = await openStore(bench)
  const registry = new Registry([noop], {
    codec: defaultCodec,
    retry: undefined,
    timeoutMs: 1,
    keep: undefined,
    unknown: undefined,
  })
  // The candidates of `pages` full windows; the case runs where there is one less, as many, and one more.
  const candidates = pages * window + (size - 100)
  await bench.grow(candidates, async (missing) => {
    const row = (queue: string, label: string) => store.job({ queue, options: JSON.stringify({ labels: [label] }) })
    await store.insert(range(missing).flatMap(() => [row('right', 'left'), row('left', 'right')]))
  })
  const counted = await countJobs({ queue: 'right', label: 'right' }, registry, store.store, pages)
  expect(counted).toEqual({ count: 0, exact: candidates < pages * window })
}

/** Pages and windows of the reads. */
export const readPages: readonly Bound[] = [
  { of: 'src/client/read/query.ts#PAGE', at: 200, on: 'both', holds: (size, bench) => findsAll(size, bench) },
  {
    of: 'src/client/read/query.ts#PAGE',
    at: 200,
    on: 'both',
    when: 'with a limit around the page',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await growTo(bench, mill, 201)
      bench.made = 201
      expect(await found(mill, { order: 'oldest', limit: size })).toEqual(range(size))
    },
  },
  {
    of: 'src/store/sqlite/verbs/find.ts#WINDOW_MAX',
    at: 5_000,
    on: 'sqlite',
    holds: findsBehindWindow,
  },
  {
    of: 'src/store/postgres/verbs/find.ts#WINDOW_MAX',
    at: 2_000,
    on: 'postgres',
    holds: findsBehindWindow,
  },
  {
    of: 'src/store/postgres/verbs/find.ts#SLICE_MIN',
    at: 32,
    on: 'postgres',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The match is the last of so many candidates: it is in the first slice, or just behind it.
      await growBesides(size, bench, mill)
      expect(await found(mill, { queue: 'right', label: 'right', limit: 1 })).toEqual([0])
    },
  },
  {
    of: 'src/client/read/count.ts#COUNT_MAX',
    at: 10_000,
    on: 'both',
    isLong: 'postgres',
    also: ['src/store/find.ts#READY_MAX', 'src/store/observing/statistics.ts#QUEUE_COUNT_MAX'],
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await growTo(bench, mill, size)
      const counted = { count: Math.min(size, 10_000), exact: size <= 10_000 }
      expect(await mill.count({})).toEqual(counted)
      // Ready jobs are looked up by state up to the same number.
      expect(await mill.count({ state: 'ready' })).toEqual(counted)
      const queues = Object.values(await mill.stats.queues())
      expect(queues.map(({ ready, exact }) => ({ count: ready, exact }))).toEqual([counted])
      expect(await found(mill, { state: 'ready', order: 'newest', limit: 2 })).toEqual([size - 1, size - 2])
      expect(await found(mill, { state: 'ready', order: 'oldest', limit: 2 })).toEqual([0, 1])
    },
  },
  {
    of: 'src/client/read/count.ts#PAGES_MAX',
    at: 100,
    on: 'sqlite',
    isLong: true,
    holds: (size, bench) => countsSparsely(size, bench, 1, 5_000),
  },
  {
    of: 'src/client/read/count.ts#PAGES_MAX',
    at: 100,
    on: 'postgres',
    isLong: true,
    when: 'with two pages',
    holds: (size, bench) => countsSparsely(size, bench, 2, 2_000),
  },
  {
    of: 'src/store/find.ts#LANES_MAX',
    at: 16,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await bench.grow(size, async (missing) => {
        for (let n = size - missing; n < size; n += 1) await mill.enqueue(noop, { n }, { queue: `queue ${n}` })
      })
      await mill.enqueue(noop, { n: -1 }, { queue: 'another' })
      const queue = range(size).map((n) => `queue ${n}`)
      expect(await found(mill, { queue, order: 'oldest' })).toEqual(range(size))
      expect(await mill.count({ queue })).toEqual({ count: size, exact: true })
    },
  },
  {
    of: 'src/live/observed-reads.ts#READ_BATCH',
    at: 1_000,
    on: 'both',
    isLong: 'postgres',
    also: ['src/client/read/await-result.ts#AWAITED_PER_MS', 'src/client/read/await-result.ts#SOON_MS'],
    holds: async (size, bench) => {
      const echo = job('echo', async ({ n }: { n: number }) => n)
      const mill = await bench.mill({ jobs: [echo], concurrency: 100, poll: '10m' })
      const handles = await mill.enqueueMany(echo, payloads(size))
      expect(await Promise.all(handles.map((handle) => handle.result({ timeout: '30s' })))).toEqual(range(size))
    },
  },
  {
    of: 'src/client/read/parent-results.ts#PAGE',
    at: 500,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const parent = job('parent', async ({ n }: { n: number }) => n)
      const child = job('child', async (_: undefined, ctx) => ctx.results(parent))
      const mill = await bench.mill({ jobs: [parent, child], concurrency: 100 })
      const parents = await mill.enqueueMany(parent, payloads(size))
      const last = await mill.enqueue(child, undefined, { after: parents })
      expect(await last.result({ timeout: '30s' })).toEqual(range(size))
    },
  },
  {
    of: 'src/client/commands/command-all.ts#PAGE',
    at: 500,
    on: 'both',
    isLong: 'postgres',
    also: ['src/store/postgres/verbs/change.ts#TOGETHER_MAX'],
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const group = mill.group(`of ${size}`)
      await mill.enqueueMany(noop, payloads(size), { group: group.id, in: '1h' })
      expect(await group.pause()).toBe(size)
      expect(await group.progress()).toMatchObject({ total: size, paused: size })
      expect(await group.cancel()).toBe(size)
      expect(await group.progress()).toMatchObject({ total: size, cancelled: size, unfinished: 0 })
    },
  },
  {
    of: 'src/store/postgres/queries/read.ts#ANSWER_BYTES',
    at: 4 * 1_024 * 1_024,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // Five jobs of so many bytes together, and one that still fits into the same answer, or does not.
      const each = Math.floor(size / 5)
      const queue = `of ${size}`
      // Encoded, a text has two quotes more.
      for (const bytes of [each, each, each, each, size - 4 * each, 10])
        await mill.enqueue(noop, text(bytes - 2), { queue })
      expect(await lengthOf(mill.find({ queue, order: 'oldest' }))).toBe(6)
      expect(await lengthOf(mill.find({ queue, order: 'newest' }))).toBe(6)
    },
  },
]
