import { expect, test } from 'vitest'
import { dashboard } from '../src/dashboard/index.js'
import type { DashboardOptions } from '../src/dashboard/index.js'
import type { ErrorBody, JobFields, QueuesFields, Snapshot } from '../src/dashboard/protocol.js'
import { job, StoreError } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { internalsOf } from '../src/mill/internals.js'
import type { MillInternals } from '../src/mill/internals.js'
import { browser, inApp, TOKEN } from './dashboard/browser.js'
import { Events } from './dashboard/events.js'
import { openedMills } from './support/opened-mills.js'

/** Topics over a stream: read once for all readers, encoded once, and bounded. */

const { open } = openedMills('dashboard-live')
const charge = job('charge', async (p: { order: number }) => p.order)

async function signedIn(mill: Mill, options: Partial<DashboardOptions> = {}) {
  const pages = dashboard(mill, { token: TOKEN, ...options })
  const page = browser(inApp(pages))
  await page.login(TOKEN)
  await page.session()
  const stream = async (topics: readonly string[], have?: Record<string, string>): Promise<Events> =>
    new Events(await page.post('api/stream', { topics, have }))
  return { pages, page, stream }
}

/** Counts the calls of one read of the store. */
function counted(mill: Mill, name: 'listQueues'): () => number {
  const { observing } = (internalsOf(mill) as MillInternals).store
  const original = observing[name].bind(observing)
  let calls = 0
  Object.defineProperty(observing, name, {
    configurable: true,
    value: () => {
      calls += 1
      return original()
    },
  })
  return () => calls
}

const fieldsOf = <F>(state: Snapshot): F => state.fields as F

test('a job is followed from its first state to its end, over one stream', async () => {
  const mill = await open({ jobs: [charge] })
  const { stream } = await signedIn(mill)
  const { id } = await mill.enqueue(charge, { order: 1 }, { in: '1h' })
  const events = await stream([`job:${id}`, 'queues'])
  const first = await events.until(`job:${id}`, () => true)
  expect(fieldsOf<JobFields>(first)).toMatchObject({ id, state: 'scheduled', why: { reason: 'time' }, attempts: [] })
  await mill.start()
  await mill.edit(id, { in: 0 })
  const last = await events.until(`job:${id}`, ({ fields }) => (fields as JobFields).state === 'done')
  expect(fieldsOf<JobFields>(last)).toMatchObject({ why: null, attempts: [{ number: 1, error: null }] })
  await events.cancel()
})

test('the store is read once for all readers of a topic, and not at all without readers', async () => {
  const mill = await open({ jobs: [charge] })
  const { stream, page } = await signedIn(mill)
  const reads = counted(mill, 'listQueues')
  const readers = await Promise.all([1, 2, 3].map(async () => stream(['queues'])))
  const states = await Promise.all(readers.map((each) => each.until('queues', () => true)))
  expect(new Set(states.map(({ id }) => id)).size).toBe(1)
  expect(reads()).toBe(1)
  expect((await page.post('api/view', { topic: 'queues', have: states[0]?.id })).status).toBe(204)
  expect(reads()).toBe(1)
  for (const each of readers) await each.cancel()
  const before = reads()
  await mill.enqueue(charge, { order: 1 })
  // Nothing signals a read that does not happen: with readers there would be three in this time.
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(reads()).toBe(before)
})

test('a reader that comes back gets the patches that it missed, or a snapshot when they are not known', async () => {
  const mill = await open({ jobs: [charge] })
  const { stream } = await signedIn(mill)
  const kept = await stream(['queues'])
  const first = await kept.until('queues', () => true)
  await mill.enqueue(charge, { order: 1 })
  const newest = await kept.until('queues', ({ order }) => order.length === 1)
  const late = await stream(['queues'], { queues: first.id as string })
  expect(await late.next()).toMatchObject({
    event: 'patch',
    data: { rows: { default: { name: 'default' } }, order: ['default'] },
  })
  const stranger = await stream(['queues'], { queues: 'another-epoch.7' })
  expect(await stranger.next()).toMatchObject({ event: 'snapshot', id: newest.id })
  for (const each of [kept, late, stranger]) await each.cancel()
})

test('a topic that does not exist is gone, and does not end the others', async () => {
  const mill = await open({ jobs: [charge] })
  const { stream } = await signedIn(mill)
  const events = await stream(['nothing', 'job:01890a5d-ac96-774b-bcce-b302099a8057', 'queues'])
  const seen = [await events.next(), await events.next(), await events.next()]
  expect(seen.flatMap((frame) => (frame?.event === 'gone' ? [frame.data.topic] : [])).toSorted()).toEqual([
    'job:01890a5d-ac96-774b-bcce-b302099a8057',
    'nothing',
  ])
  expect(seen.find((frame) => frame?.event === 'snapshot')).toMatchObject({ data: { topic: 'queues' } })
  await events.cancel()
})

test('a job that runs is shown with its worker, and the host of it', async () => {
  let release: () => void = () => undefined
  const held = job('held', () => new Promise<void>((resolve) => (release = resolve)))
  const mill = await open({ jobs: [held] })
  const { page } = await signedIn(mill)
  await mill.start()
  const handle = await mill.enqueue(held, undefined)
  await expect.poll(async () => (await handle.get())?.state).toBe('running')
  const [worker] = (await mill.workers()).rows
  const view = (await (await page.post('api/view', { topic: `job:${handle.id}` })).json()) as Snapshot
  expect(fieldsOf<JobFields>(view).attempts).toMatchObject([
    { number: 1, endedAt: null, worker: worker?.id, host: worker?.host },
  ])
  release()
  await handle.result()
})

test.each([
  ['E_STORE_GONE', 'The store is gone: its file or its tables were deleted, moved or replaced.'],
  ['E_STORE_UNREACHABLE', 'The database does not answer, or ended the connection.'],
  ['E_STORE', 'The store cannot be read now.'],
])('a store that fails with %s says so to the user, without its address', async (code, text) => {
  const mill = await open({ jobs: [charge] })
  const { page } = await signedIn(mill)
  const { observing } = (internalsOf(mill) as MillInternals).store
  Object.defineProperty(observing, 'listQueues', {
    configurable: true,
    value: () => Promise.reject(new StoreError(code, '/data/jobs.db: hunter2')),
  })
  const response = await page.post('api/view', { topic: 'queues' })
  const { error } = (await response.json()) as ErrorBody
  expect([response.status, error.code, error.text]).toEqual([503, 'store', text])
  expect(JSON.stringify(error)).not.toContain('hunter2')
})

test('a store that fails is reported as stale, and read again', async () => {
  const mill = await open({ jobs: [charge] })
  const { stream } = await signedIn(mill)
  const { observing } = (internalsOf(mill) as MillInternals).store
  const original = observing.listQueues.bind(observing)
  let fails = true
  Object.defineProperty(observing, 'listQueues', {
    configurable: true,
    value: () => (fails ? Promise.reject(new Error('password=hunter2 at postgres://u:hunter2@db')) : original()),
  })
  const events = await stream(['queues'])
  const stale = await events.next()
  expect(stale).toMatchObject({ event: 'stale', data: { topic: 'queues', text: 'The server failed.' } })
  expect(JSON.stringify(stale)).not.toContain('hunter2')
  fails = false
  expect(fieldsOf<QueuesFields>(await events.until('queues', () => true)).totals.running).toBe(0)
  await events.cancel()
})

test('streams are bounded: 8 of a session, and they are free again when they end', async () => {
  const mill = await open()
  const { page, stream } = await signedIn(mill)
  const opened = await Promise.all(Array.from({ length: 8 }, () => stream(['queues'])))
  const ninth = await page.post('api/stream', { topics: ['queues'] })
  expect([ninth.status, ninth.headers.get('retry-after')]).toEqual([503, '5'])
  await opened[0]?.cancel()
  expect((await page.post('api/stream', { topics: ['queues'] })).status).toBe(200)
})

test('streams are bounded: 32 of an address, and 200 in all', async () => {
  const mill = await open()
  const pages = dashboard(mill, {
    authorize: (request) => ({ role: 'viewer', actor: request.headers.get('x-user') ?? 'ada' }),
  })
  const statusOf = async (user: string, address: string): Promise<number> => {
    const page = browser(inApp(pages, { address }), { headers: { 'x-user': user } })
    await page.session()
    return (await page.post('api/stream', { topics: ['queues'] })).status
  }
  for (let i = 0; i < 32; i += 1) expect(await statusOf(`user-${i}`, '10.0.0.1')).toBe(200)
  expect(await statusOf('user-33', '10.0.0.1')).toBe(503)
  for (let i = 0; i < 168; i += 1) expect(await statusOf(`other-${i}`, `10.1.0.${i}`)).toBe(200)
  expect(await statusOf('one-more', '10.2.0.1')).toBe(503)
  pages.close()
})

test('the close of the dashboard and of the mill say goodbye to every stream', async () => {
  const mill = await open()
  const { stream } = await signedIn(mill)
  const events = await stream(['queues'])
  await events.until('queues', () => true)
  await mill.close()
  expect(await events.next()).toEqual({ event: 'bye', id: undefined, data: { inMs: 500, reason: 'stopping' } })
  expect(await events.next()).toBeUndefined()
})
