import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { Abort, job, millrace } from '../src/index.js'
import type { JobFilter, Mill } from '../src/index.js'
import { freshStore } from './support/fresh-store.js'

/** What `find` tests job by job, and `findPage`, through the public API. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-scan-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Order {
  readonly user: { readonly id: number; readonly 'odd key'?: string }
  readonly items: readonly { readonly sku: string }[]
  readonly total?: number
  readonly at?: Date
}
const charge = job('charge', {
  run: async (order: Order) => {
    if (order.user.id === 9) throw Object.assign(new Abort('card declined'), { code: 'E_DECLINED' })
    return { receipt: order.user.id }
  },
  title: (order: Order) => `Order of ${order.user.id}`,
})
let mill: Mill
beforeEach(async () => {
  mill = await millrace({ store: freshStore(folder), jobs: [charge], logger: false })
})
afterEach(() => mill.close({ deadline: 0 }))

const order = (id: number, more: Partial<Order> = {}): Order => ({ user: { id }, items: [{ sku: `A${id}` }], ...more })
async function found(filter: JobFilter): Promise<number[]> {
  const users: number[] = []
  for await (const record of mill.find({ order: 'oldest', ...filter })) users.push((record.payload as Order).user.id)
  return users
}

test('values by their path: equal, also as text, and in a range', async () => {
  const at = new Date('2026-11-15T13:30:00Z')
  await mill.enqueueMany(charge, [
    order(1, { total: 50 }),
    order(2, { total: 150, at }),
    { ...order(3), user: { id: 3, 'odd key': 'yes' } },
  ])
  expect(await found({ payload: { 'user.id': 2 } })).toEqual([2])
  expect(await found({ payload: { 'user.id': '2' } })).toEqual([2])
  expect(await found({ payload: { 'items[0].sku': 'A3' } })).toEqual([3])
  expect(await found({ payload: { 'user."odd key"': 'yes' } })).toEqual([3])
  expect(await found({ payload: { total: { gt: 50 } } })).toEqual([2])
  expect(await found({ payload: { total: { gte: 50, lt: 150 } } })).toEqual([1])
  expect(await found({ payload: { at: '2026-11-15T13:30:00.000Z' } })).toEqual([2])
  expect(await found({ payload: { at: { lte: at } } })).toEqual([2])
  expect(await found({ payload: { 'user.name': null } })).toEqual([])
  expect(await found({ payload: { 'user.constructor': 'x' } })).toEqual([])
  expect(await found({ payload: { 'user.id': { gt: 0 } }, limit: 2 })).toEqual([1, 2])
})

test('labels, text, error, result, worker and the last change', async () => {
  await mill.enqueue(charge, order(1), { labels: ['vip', 'eu'], key: 'order-1' })
  await mill.enqueue(charge, order(2), { labels: ['vip'], meta: { source: 'import' } })
  await mill.enqueue(charge, order(9))
  expect(await found({ labels: ['vip', 'eu'] })).toEqual([1])
  expect(await found({ text: 'ORDER-1' })).toEqual([1])
  expect(await found({ text: 'order of 2' })).toEqual([2])
  expect(await found({ meta: { source: 'import' } })).toEqual([2])
  const before = new Date(Date.now() - 1)
  await mill.start()
  await expect.poll(async () => (await mill.count({ state: ['done', 'failed'] })).count).toBe(3)
  expect(await found({ error: 'DECLINED' })).toEqual([9])
  expect(await found({ error: 'abort' })).toEqual([9])
  expect(await found({ text: 'card declined' })).toEqual([9])
  expect(await found({ result: { receipt: 2 } })).toEqual([2])
  expect(await found({ changedAfter: before })).toEqual([1, 2, 9])
  expect(await found({ changedAfter: new Date(Date.now() + 60_000) })).toEqual([])
  const [worker] = (await mill.workers()).rows
  expect(await found({ worker: worker?.id.slice(0, 8) as string })).toEqual([1, 2, 9])
  expect(await found({ worker: 'none' })).toEqual([])
})

test('a page ends when it is full or has scanned enough, says how far it came, and continues from its cursor', async () => {
  await mill.enqueueMany(
    charge,
    Array.from({ length: 700 }, (_, n) => order(n)),
  )
  const filter = { payload: { 'user.id': { lt: 10 } } }
  const first = await mill.findPage(filter, { scan: 300, deadline: '1m' })
  expect(first).toMatchObject({ rows: [], scanned: 300, cursor: expect.any(String), reachedAt: expect.any(Date) })
  const second = await mill.findPage(filter, { cursor: first.cursor, limit: 4, deadline: '1m' })
  expect(second.rows.map((row) => (row.payload as Order).user.id)).toEqual([9, 8, 7, 6])
  expect(second).toMatchObject({ scanned: 394, cursor: expect.any(String) })
  const third = await mill.findPage(filter, { cursor: second.cursor, deadline: '1m' })
  expect(third.rows.map((row) => (row.payload as Order).user.id)).toEqual([5, 4, 3, 2, 1, 0])
  expect(third).toMatchObject({ scanned: 6, cursor: undefined })
  const hurried = await mill.findPage(filter, { deadline: 0 })
  expect(hurried.scanned).toBeLessThanOrEqual(200)
  expect(hurried.cursor).toBeDefined()
})

test.each([
  [{ payload: { 'a..b': 1 } }, /is no path: it has a step without a name/],
  [{ payload: { 'a[x]': 1 } }, /is no path: it has an index that is no number/],
  [{ payload: { '"a': 1 } }, /is no path: it has a quote that is not closed/],
  [{ payload: { a: { more: 1 } } }, /more is not an option/],
  [{ payload: { a: { gt: 'x' } } }, /gt must be a number or a Date, got "x"/],
  [{ payload: 'x' }, /payload must be an object of paths/],
  [{ labels: 'vip' }, /labels must be an array of labels, got "vip"/],
  [{ wroker: 'x' }, /wroker is not an option; did you mean "worker"/],
])('%j is refused', async (filter, message) => {
  await expect(mill.find(filter as never).next()).rejects.toThrow(message)
  await expect(mill.findPage(filter as never)).rejects.toThrow(message)
})

test('a count and a bulk, which would have to read every job, refuse what is tested job by job', async () => {
  await expect(mill.count({ text: 'x' } as never)).rejects.toThrow(/text is not yet part of this version/)
  await expect(mill.cancelAll({ error: 'x' } as never)).rejects.toThrow(/error is not yet part of this version/)
})
