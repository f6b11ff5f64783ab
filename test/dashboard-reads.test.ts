import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { Abort, InvalidOptionsError, job, millrace } from '../src/index.js'
import type { JobFilter, Mill } from '../src/index.js'
import { freshStore } from './support/fresh-store.js'

/** What pages of people read by index: error groups with their jobs, relatives, what a worker runs, what comes. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-reads-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

class CardError extends Abort {}
let isDown = true
const refused = (card: string): never => {
  throw new CardError(`card ${card} declined`)
}
const charge = job('charge', { run: async (p: { card: string }) => (isDown ? refused(p.card) : p.card) })
const flaky = job('flaky', {
  run: async () => {
    throw new RangeError('again')
  },
  retry: { backoff: () => 3_600_000 },
})
const secret = job('secret', { run: async (p: { card: string }) => refused(p.card), encrypt: true })
const step = job('step', async (p: { n: number }) => p.n)
let release: () => void = () => undefined
const held = job('held', {
  run: () => new Promise<void>((resolve) => (release = resolve)),
  queue: 'long',
})

let mill: Mill
beforeEach(async () => {
  isDown = true
  mill = await millrace({
    store: freshStore(folder),
    jobs: [charge, flaky, secret, step, held],
    encryption: { keys: { k1: randomBytes(32) }, current: 'k1' },
    logger: false,
  })
})
afterEach(() => mill.close({ deadline: 0 }))

const idsOf = async (filter: JobFilter): Promise<string[]> => {
  const ids: string[] = []
  for await (const { id } of mill.find({ order: 'oldest', ...filter })) ids.push(id)
  return ids
}
const ended = (count: number): Promise<void> =>
  expect.poll(async () => (await mill.count({ state: ['done', 'failed', 'retrying'] })).count).toBe(count)

test('an error group has its jobs, and all of them are retried by its fingerprint', async () => {
  const charged = await mill.enqueueMany(
    charge,
    ['1', '2', '3'].map((card) => ({ card })),
  )
  const again = await mill.enqueue(flaky)
  const hidden = await mill.enqueue(secret, { card: '4' })
  await mill.start()
  await ended(5)
  const { rows } = await mill.stats.errorGroups()
  const groupOf = (name: string): string => rows.find((group) => group.job === name)?.fingerprint as string
  expect(new Set(rows.map(({ fingerprint }) => fingerprint)).size).toBe(3)
  expect((await mill.stats.errorGroups({ fingerprint: groupOf('charge') })).rows).toEqual(
    rows.filter((group) => group.job === 'charge'),
  )
  expect((await mill.stats.errorGroups({ fingerprint: groupOf('charge'), queue: 'other' })).rows).toEqual([])
  expect(await idsOf({ fingerprint: groupOf('charge') })).toEqual(charged.map(({ id }) => id))
  expect(await idsOf({ fingerprint: groupOf('flaky'), state: 'retrying' })).toEqual([again.id])
  expect(await idsOf({ fingerprint: groupOf('flaky'), state: 'failed' })).toEqual([])
  expect(await idsOf({ fingerprint: groupOf('secret') })).toEqual([hidden.id])
  expect(await idsOf({ fingerprint: '0123456789abcdef' })).toEqual([])
  expect((await again.get())?.error).toMatchObject({
    fingerprint: groupOf('flaky'),
    name: 'RangeError',
    message: 'again',
  })
  expect((await hidden.get())?.error).toMatchObject({ fingerprint: groupOf('secret'), message: 'card 4 declined' })
  expect(await mill.count({ fingerprint: groupOf('charge') })).toEqual({ count: 3, exact: true })
  isDown = false
  expect(await mill.retryAll({ fingerprint: groupOf('charge') }, { preview: true })).toMatchObject({ count: 3 })
  expect(await mill.retryAll({ fingerprint: groupOf('charge') })).toMatchObject({ changed: 3 })
  await expect.poll(() => idsOf({ state: 'done' })).toEqual(charged.map(({ id }) => id))
  // The jobs of a group are those that have its error now.
  expect(await idsOf({ fingerprint: groupOf('charge') })).toEqual([])
  expect((await mill.stats.errorGroups({ fingerprint: groupOf('charge') })).rows).toMatchObject([{ count: 3 }])
})

test('a wrong fingerprint or parent is refused', async () => {
  await expect(mill.findPage({ fingerprint: 'CardError' })).rejects.toThrow(
    /fingerprint must be the fingerprint of an error group, got "CardError"/,
  )
  await expect(mill.stats.errorGroups({ fingerprint: '' })).rejects.toThrow(InvalidOptionsError)
  await expect(mill.findPage({ after: 'charge' })).rejects.toThrow(/after must be a job's id \(a UUID\), got "charge"/)
  await expect(mill.children('none')).resolves.toEqual({ rows: [], cursor: undefined })
  await expect(mill.parents('none')).resolves.toEqual({ rows: [], cursor: undefined })
  await expect(mill.parents('none', { limit: 0 })).rejects.toThrow(InvalidOptionsError)
})

test('parents and children are read by page, also when they have ended', async () => {
  const root = await mill.enqueue(step, { n: 0 }, { labels: ['root'] })
  const children = []
  for (let n = 1; n <= 5; n += 1)
    children.push(await mill.enqueue(step, { n }, { after: [root], ...(n === 5 ? { labels: ['last'] } : {}) }))
  const [first, , , , last] = children
  const late = await mill.enqueue(step, { n: 6 }, { in: '1h', labels: ['x'] })
  await mill.edit(late.id, { after: [root, first as (typeof children)[0]] })
  await mill.edit(late.id, { labels: ['y'] })
  const pages: (readonly string[])[] = []
  let cursor: string | undefined
  do {
    const page = await mill.children(root.id, { limit: 4, cursor })
    pages.push(page.rows.map(({ id }) => id))
    cursor = page.cursor
  } while (cursor !== undefined)
  expect(pages.flat()).toEqual([...children, late].map(({ id }) => id))
  expect(pages[0]?.length).toBe(4)
  await mill.start()
  await ended(6)
  expect((await mill.children(root.id)).rows.map(({ id }) => id)).toEqual([...children, late].map(({ id }) => id))
  expect((await mill.children((first as (typeof children)[0]).id)).rows.map(({ id }) => id)).toEqual([late.id])
  expect((await mill.children(late.id)).rows).toEqual([])
  expect(await idsOf({ after: root.id, state: 'done' })).toEqual(children.map(({ id }) => id))
  expect(await mill.count({ after: root.id })).toEqual({ count: 6, exact: true })
  expect(await idsOf({ label: 'last', after: root.id })).toEqual([last?.id])
  expect(await idsOf({ label: 'x' })).toEqual([])
  expect(await idsOf({ label: 'y' })).toEqual([late.id])
  const parents = await mill.parents(late.id, { limit: 1 })
  expect(parents.rows.map(({ id }) => id)).toEqual([root.id])
  expect((await mill.parents(late.id, { cursor: parents.cursor })).rows.map(({ id }) => id)).toEqual([first?.id])
  // The children of a deleted job still name it; of its own row nothing is left.
  await mill.delete(root.id)
  expect((await mill.parents(late.id)).rows.map(({ id }) => id)).toEqual([first?.id])
  await mill.deleteAll({}, { all: true })
  expect((await mill.children(root.id)).rows).toEqual([])
})

test('the jobs that a worker runs are found by its id', async () => {
  await mill.start()
  const handle = await mill.enqueue(held, undefined)
  await expect.poll(async () => (await handle.get())?.state).toBe('running')
  const [worker] = (await mill.workers()).rows
  expect((await handle.get())?.worker).toBe(worker?.id)
  expect(await idsOf({ worker: worker?.id as string, state: 'running' })).toEqual([handle.id])
  expect(await idsOf({ worker: 'none', state: 'running' })).toEqual([])
  release()
  await handle.result()
  expect((await handle.get())?.worker).toBeUndefined()
  expect(await idsOf({ worker: worker?.id as string })).toEqual([handle.id])
})

test('what is due is counted by queue and part of the span', async () => {
  await mill.enqueueMany(
    step,
    [1, 2, 3].map((n) => ({ n })),
    { in: '30m' },
  )
  await mill.enqueue(held, undefined, { in: '90m' })
  await mill.enqueue(held, undefined, { in: '5h' })
  await mill.recurring(
    'often',
    step,
    { n: 0 },
    { every: '1m' },
    { queue: 'ticks', from: new Date(Date.now() + 60_000) },
  )
  const { from, binMs, queues, exact } = await mill.upcomingBins('2h', { bins: 2 })
  expect([binMs, exact, Math.abs(from.getTime() - Date.now()) < 60_000]).toEqual([3_600_000, true, true])
  expect(queues.map(({ queue, jobs }) => [queue, ...jobs])).toEqual([
    ['default', 3, 0],
    ['long', 0, 1],
    ['ticks', 0, 0],
  ])
  const ticks = queues[2]?.ticks as number[]
  expect(ticks[0] as number).toBeGreaterThanOrEqual(58)
  expect((ticks[0] as number) + (ticks[1] as number)).toBeGreaterThanOrEqual(118)
  expect((await mill.upcomingBins('1h')).queues.find(({ queue }) => queue === 'default')?.jobs.length).toBe(48)
  await mill.recurring('always', step, { n: 0 }, { every: '1s' })
  expect((await mill.upcomingBins('7d')).exact).toBe(false)
  await expect(mill.upcomingBins('2h', { bins: 0 })).rejects.toThrow(/bins must be a whole number from 1 to 500, got 0/)
  await expect(mill.upcomingBins('soon' as never)).rejects.toThrow(InvalidOptionsError)
})

test('a job lists the JSON Schema of its payload where its schema has one', async () => {
  const standard = { version: 1, vendor: 'mine', validate: (value: unknown) => ({ value }) } as const
  const schema = { type: 'object', properties: { n: { type: 'number' } } }
  const input = (made: (options: { target: string }) => unknown) => ({
    '~standard': { ...standard, jsonSchema: { input: made, output: made } },
  })
  mill.register(job('typed', { input: input(({ target }) => ({ ...schema, target })), run: async () => undefined }))
  mill.register(
    job('unwritable', {
      input: input(() => {
        throw new Error('a Map cannot be written')
      }),
      run: async () => undefined,
    }),
  )
  mill.register(job('plain', { input: { '~standard': standard }, run: async () => undefined }))
  const schemas = Object.fromEntries(mill.jobs().map((listed) => [listed.name, listed.inputSchema]))
  expect(schemas).toMatchObject({ typed: { ...schema, target: 'draft-2020-12' } })
  expect([schemas['unwritable'], schemas['plain'], schemas['charge']]).toEqual([undefined, undefined, undefined])
})

test('a typo, a state that is none and a range that is empty are refused, with what was meant', async () => {
  const refused: readonly [call: () => unknown, said: RegExp][] = [
    [() => mill.findPage({ stat: 'failed' } as never), /stat is not an option; did you mean "state"\?/],
    [() => mill.findPage({ state: 'fail' as never }), /state must be one of .* got "fail"; did you mean "failed"\?/],
    [() => mill.findPage({}, { deadlin: 5 } as never), /deadlin is not an option; did you mean "deadline"\?/],
    [() => mill.count({ quee: 'mail' } as never), /quee is not an option; did you mean "queue"\?/],
    [() => mill.retryAll({ fingerprin: 'x' } as never), /fingerprin is not an option; did you mean "fingerprint"\?/],
    [() => mill.stats.retries({ que: 'mail' } as never), /que is not an option; did you mean "queue"\?/],
    [() => mill.stats.processingTimes({ unit: 'sec' as never }), /unit must be one of ms, s, m, h, d, got "sec"/],
    [() => mill.stats.waitTimes({ days: -1 }), /days must be a number of days above 0/],
    [() => mill.stats.series({ from: '2026-11-16T00:00:00Z', to: '2026-11-15T00:00:00Z' }), /from must be before to/],
    [() => mill.stats.series({ bucket: '90s' }), /bucket must be whole minutes/],
    [() => mill.stats.errorGroups({ limt: 5 } as never), /limt is not an option; did you mean "limit"\?/],
    [() => mill.upcomingBins('1h', { bin: 5 } as never), /bin is not an option; did you mean "bins"\?/],
    [() => mill.audit({ acter: 'ada' } as never), /acter is not an option; did you mean "actor"\?/],
    [
      () => mill.findPage({ createdAfter: '2026-11-16T00:00:00Z', createdBefore: '2026-11-15T00:00:00Z' }),
      /createdBefore must be later than createdAfter/,
    ],
    [
      () => mill.count({ createdAfter: '2026-11-16T00:00:00Z', createdBefore: '2026-11-16T00:00:00Z' }),
      /must be later/,
    ],
    [() => mill.findPage({ payload: { n: { gt: 5, lt: 5 } } }), /payload\.n holds no value/],
    [() => mill.findPage({ payload: { n: { gte: 6, lte: 5 } } }), /payload\.n holds no value/],
  ]
  for (const [call, said] of refused) await expect(Promise.resolve().then(call), String(said)).rejects.toThrow(said)
  expect((await mill.findPage({ payload: { n: { gte: 5, lte: 5 } } })).rows).toEqual([])
})

test('a queue, a job, a group and a parent that are not known have zeros and empty lists', async () => {
  const id = '01890a5d-ac96-774b-bcce-b302099a8057'
  expect(await mill.count({ queue: 'none' })).toEqual({ count: 0, exact: true })
  expect(await mill.count({ job: 'none' })).toEqual({ count: 0, exact: true })
  expect(await mill.stats.retries({ queue: 'none' })).toEqual({ none: { ok: 0, retries: 0, percentage: 0 } })
  expect(await mill.stats.processingTimes({ queue: 'none' })).toMatchObject({ none: { count: 0, p99: 0, max: 0 } })
  expect(await mill.stats.errors('none')).toEqual({ retrying: 0, parked: 0, failed: 0, exact: true })
  expect(
    (await mill.stats.series({ queue: 'none', job: 'none' })).every(
      ({ done, wait }) => done === 0 && wait === undefined,
    ),
  ).toBe(true)
  expect(await mill.stats.errorGroups({ job: 'none' })).toEqual({ rows: [], cursor: undefined })
  expect(await mill.group('none').progress()).toMatchObject({ total: 0, unfinished: 0 })
  expect(await mill.queue('none').get()).toMatchObject({ paused: false, outages: [] })
  expect([await mill.parents(id), await mill.children(id)]).toEqual(Array(2).fill({ rows: [], cursor: undefined }))
  expect([await mill.why(id), await mill.get(id), await mill.retryOne('none')]).toEqual([undefined, undefined, null])
  expect((await mill.upcomingBins('1h')).queues).toEqual([])
})
