import assert from 'node:assert/strict'
import { seeded } from '../../src/testing/simulation/random.js'
import { contract } from './fixture.js'
import type { ContractCase } from './fixture.js'

/** More lanes than a claim reads one by one, on either store. */
const LANES = 70

/** Claims from many lanes: one order over all of them, and nothing that the worker may not claim. */
export const manyLanesCases: readonly ContractCase[] = [
  contract('claims from many lanes take jobs in one order over all of them', async (b) => {
    const random = seeded(7)
    const worker = await b.worker()
    const names = Array.from({ length: LANES }, (_, i) => `job ${i}`)
    const jobs = Array.from({ length: 240 }, (_, i) => {
      // A third of them in one lane, the rest all over.
      const name = i % 3 === 0 ? 'job 5' : random.pick(names)
      return b.job({ name, priority: random.int(-3, 3), due: { at: b.clock.now - random.int(0, 5_000_000) } })
    })
    await b.insert(jobs)
    const place = new Map(jobs.map((job, i) => [job.id, placeOf(job, i)]))
    const claimed: string[] = []
    for (const max of [1, 3, 40, 10, 100, 200])
      claimed.push(...(await b.claim(worker, { names, max })).jobs.map(({ id }) => id))
    const expected = jobs.map(({ id }) => id).toSorted((one, other) => (place.get(one) ?? 0) - (place.get(other) ?? 0))
    assert.deepEqual(
      claimed.map((id) => Math.floor(place.get(id) ?? 0)),
      expected.map((id) => Math.floor(place.get(id) ?? 0)),
    )
    assert.equal(new Set(claimed).size, jobs.length)
  }),

  contract('claims from many lanes leave paused queues, full queues and unknown names alone', async (b) => {
    const worker = await b.worker()
    const queues = Array.from({ length: LANES }, (_, i) => `queue ${i}`)
    // Jobs that may not be claimed are first in order.
    const [foreign, paused] = [
      queues.map((queue) => b.job({ queue, name: 'unknown', priority: 9 })),
      Array.from({ length: 40 }, (_, i) => b.job({ queue: 'halted', name: `name ${i}`, priority: 8 })),
    ]
    const bounded = Array.from({ length: 40 }, (_, i) => b.job({ queue: 'bounded', name: `name ${i}`, priority: 7 }))
    const free = queues.map((queue) => b.job({ queue, name: 'mail' }))
    await b.insert([...foreign, ...paused, ...bounded, ...free])
    await b.store.queues.pauseQueue({ queue: 'halted', until: null })
    const names = ['mail', ...Array.from({ length: 40 }, (_, i) => `name ${i}`)]
    const ids: string[] = []
    let freeLeft = free.length
    for (const max of [1, 9, 30, 100]) {
      const room = ids.length === 0 ? 1 : 2
      const rooms = new Map([['bounded', room]])
      const { jobs } = await b.claim(worker, { names, max, rooms })
      assert.ok(jobs.every(({ queue, name }) => queue !== 'halted' && name !== 'unknown'))
      const freeTaken = Math.min(max - room, freeLeft)
      assert.deepEqual(
        jobs.map(({ queue }) => queue === 'bounded'),
        [...Array<boolean>(room).fill(true), ...Array<boolean>(freeTaken).fill(false)],
        `a claim of ${max} takes what the bounded queue has room for, then all others up to ${max}`,
      )
      freeLeft -= freeTaken
      ids.push(...jobs.map(({ id }) => id))
    }
    const taken = new Set(ids)
    assert.ok(free.every(({ id }) => taken.has(id)))
    assert.equal(taken.size, free.length + 7, 'and as many of the bounded queue as it had room for')
  }),
]

/** The sort position of a job, with its enqueue order as a fraction: equal positions may come in any order. */
function placeOf(job: { readonly due: object; readonly priority: number }, i: number): number {
  return (job.due as { at: number }).at - job.priority * 600_000 + i / 1_000
}
