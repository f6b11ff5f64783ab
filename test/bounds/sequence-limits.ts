import { expect } from 'vitest'
import { job } from '../../src/index.js'
import { itemAddress } from '../../src/job/rules/sequence.js'
import type { NewSequence } from '../../src/store/sequences.js'
import type { ClaimedJob } from '../../src/store/store.js'
import type { ContractFixture } from '../contract/fixture.js'
import { only } from '../contract/fixture.js'
import type { Bench, Bound } from './bound.js'
import { noop } from './bound.js'
import { openStore } from './stores.js'

const echo = job('echo', async (n: number) => n)
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** A sequence of these items, claimed at its first one. */
async function claimed(b: ContractFixture, payloads: readonly string[]): Promise<ClaimedJob> {
  const total = payloads.length
  const row = b.job({ options: JSON.stringify({ sequence: { total } }) })
  const sequence: NewSequence = {
    job: row,
    options: { onDuplicate: 'return', keepCancelledMs: Infinity },
    last: { id: row.id, total, from: 0, payloads },
    start: true,
    empty: { result: '{}', keepMs: Infinity },
  }
  await b.store.sequences.insertSequence(sequence)
  return only(await b.claim(await b.worker()))
}

/** How many items are read ahead with the row of the first. */
async function readAhead(bench: Bench, payloads: readonly string[]): Promise<number> {
  const b = await openStore(bench)
  const { ref, fence, queue, id, sequence } = await claimed(b, payloads)
  const step = { run: 0, address: itemAddress(0), kind: 'item', no: 0, attempt: 1, startedAt: 1, endedAt: 1 }
  const { items } = await b.store.leases.appendStep({
    ref,
    fence,
    queue,
    step: { ...step, value: null, error: null, note: null },
    endsStreak: false,
    itemsFrom: { list: sequence?.list ?? 0, index: 1 },
  })
  await b.store.sequences.changeSequence({ id, verb: 'reset', reason: '', keepMs: Infinity })
  return items.length
}

export const sequenceLimits: readonly Bound[] = [
  {
    of: 'src/client/sequence/items.ts#ITEMS_MAX',
    at: 1_000_000,
    on: 'none',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The items of a list that is not too long are encoded, and the first is wrong: nothing is written.
      const items = Array.from({ length: size }, () => Symbol('unwritable'))
      const error = await mill.sequence(noop, items).catch((thrown: { code: string }) => thrown)
      expect(error).toMatchObject({ code: size <= 1_000_000 ? 'E_INVALID_PAYLOAD' : 'E_INVALID_OPTIONS' })
    },
  },
  {
    of: 'src/client/sequence/sequence.ts#OUTPUT_LIMIT',
    at: 100,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const kit = await bench.another({ jobs: [echo] })
      const sequence = await kit.mill.sequence(echo, numbers(size))
      await kit.drain()
      expect((await sequence.output()).length).toBe(Math.min(size, 100))
    },
  },
  {
    of: 'src/client/sequence/sequence.ts#OUTPUT_LIMIT_MAX',
    at: 1_000,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const sequence = await mill.sequence(noop, [1], { start: false })
      const read = sequence.output({ limit: size })
      if (size <= 1_000) expect(await read).toEqual([])
      else await expect(read).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    },
  },
  {
    of: 'src/store/sequences.ts#ITEMS_PER_WRITE',
    at: 5_000,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const sequence = await mill.sequence(noop, numbers(size), { start: false })
      expect(await sequence.progress()).toEqual({ state: 'waiting', done: 0, total: size })
    },
  },
  {
    of: 'src/store/sequences.ts#ITEMS_AHEAD',
    at: 100,
    on: 'both',
    // One item is the first: so many more follow.
    holds: async (size, bench) =>
      expect(await readAhead(bench, numbers(size + 1).map(String))).toBe(Math.min(size, 100)),
  },
  {
    of: 'src/store/sequences.ts#ITEMS_AHEAD_BYTES',
    at: 1_048_576,
    on: 'both',
    // The first item that is read ahead has so many bytes: only if it has fewer, the next one comes with it.
    holds: async (size, bench) =>
      expect(await readAhead(bench, ['1', 'x'.repeat(size), '2'])).toBe(size < 1_048_576 ? 2 : 1),
  },
  {
    of: 'src/store/sequences.ts#LIST_KEEP_MS',
    at: 3_600_000,
    on: 'both',
    holds: async (size, bench) => {
      const b = await openStore(bench)
      const { id } = b.job()
      await b.store.sequences.addItems({ id, total: 2, from: 0, payloads: ['1'] })
      b.clock.now += size
      for (let left = 4; left > 0; left -= 1) await b.store.jobs.sweepRows(10)
      const more = b.store.sequences.addItems({ id, total: 2, from: 1, payloads: ['2'] })
      if (size < 3_600_000) expect(await more).toBeNull()
      else await expect(more).rejects.toThrow(/an hour/)
    },
  },
]
