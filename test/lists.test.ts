import { expect, test } from 'vitest'
import { job } from '../src/index.js'
import { openedMills } from './support/opened-mills.js'

/** Workers, groups and sequences as pages, through the public API. */

const { open } = openedMills('lists')

test('a worker is listed with its process, version, slots, names and what it runs, until it stops', async () => {
  let end: () => void = () => undefined
  const slow = job('slow', () => new Promise<void>((resolve) => (end = resolve)))
  const mill = await open({ jobs: [slow], version: '1.42', concurrency: 3 })
  expect(await mill.workers()).toEqual({ rows: [], cursor: undefined })
  await mill.start()
  await mill.enqueue(slow, undefined, { queue: 'mail' })
  await expect
    .poll(async () => (await mill.workers()).rows[0]?.running)
    .toMatchObject([{ job: 'slow', queue: 'mail', count: 1 }])
  const [worker] = (await mill.workers()).rows
  expect(worker).toMatchObject({
    pid: process.pid,
    version: '1.42',
    state: 'alive',
    slots: 3,
    names: ['slow'],
    memoryBytes: expect.any(Number),
    loopDelayMs: expect.any(Number),
    blockedBy: undefined,
  })
  expect(worker?.running[0]?.since).toBeInstanceOf(Date)
  end()
  await mill.stop()
  expect((await mill.workers()).rows).toEqual([])
})

test('without the option, the version is that of the app', async () => {
  const mill = await open()
  await mill.start()
  expect((await mill.workers()).rows[0]?.version).toMatch(/^\d+\.\d+\.\d+/)
})

test('groups and sequences are pages with their progress', async () => {
  const send = job('send', async (n: number) => n)
  const mill = await open({ jobs: [send] })
  for (const group of ['b', 'a', 'c']) await mill.enqueueMany(send, [1, 2], { group })
  const first = await mill.groups({ limit: 2 })
  const rest = await mill.groups({ limit: 2, cursor: first.cursor })
  expect([...first.rows, ...rest.rows].map(({ id, total, ready }) => [id, total, ready])).toEqual([
    ['a', 2, 2],
    ['b', 2, 2],
    ['c', 2, 2],
  ])
  expect(rest.cursor).toBeUndefined()
  for (const list of ['workers', 'sequences'] as const)
    await expect(mill[list]({ cursor: first.cursor })).rejects.toThrow(/cursor must be the cursor that an earlier call/)
  const older = await mill.sequence(send, [1, 2, 3], { key: 'k' })
  const newer = await mill.sequence(send, [1], { start: false, queue: 'mail' })
  const page = await mill.sequences({ limit: 1 })
  expect(page.rows).toMatchObject([{ id: newer.id, job: 'send', queue: 'mail', state: 'waiting', done: 0, total: 1 }])
  expect((await mill.sequences({ cursor: page.cursor })).rows).toMatchObject([
    { id: older.id, key: 'k', state: 'running', total: 3 },
  ])
  for (const list of ['workers', 'groups', 'sequences'] as const) {
    await expect(mill[list]({ limit: 0 })).rejects.toThrow(/limit must be a whole number from 1 to 1000, got 0/)
    await expect(mill[list]({ offset: 5 } as never)).rejects.toThrow(/use cursor: of the page before/)
    await expect(mill[list]({ cursor: '' })).rejects.toThrow(/cursor must be the cursor that an earlier call returned/)
  }
})
