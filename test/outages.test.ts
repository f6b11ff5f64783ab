import { afterEach, expect, test } from 'vitest'
import { Abort, job } from '../src/index.js'
import type { TestKit } from '../src/testing/index.js'
import { isShort } from './support/fresh-store.js'
import { testing } from './support/testing.js'

/** X4 through the public API: retries are held while a service is down, tried one per poll, and drained when it is back. */

/** Retries that an outage holds. */
const HELD = isShort ? 20 : 50

const kits: TestKit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.close()
})

interface Service {
  isDown: boolean
  calls: number
}

async function withService(options: object = {}): Promise<{ t: TestKit; service: Service; call: typeof other }> {
  const service: Service = { isDown: true, calls: 0 }
  const call = job('call', {
    run: async () => {
      service.calls += 1
      if (service.isDown) throw new Error('the service is down')
    },
    queue: 'orders',
    retry: { backoff: { start: '1s', factor: 1 }, jitter: 0 },
  })
  const t = await testing({ jobs: [call, other, aborting], ...options })
  kits.push(t)
  return { t, service, call }
}
const other = job('other', async (): Promise<void> => {})
const aborting = job('aborting', {
  run: async () => {
    throw new Abort('not this one')
  },
  queue: 'orders',
})

/** Runs everything that is ready now. */
async function runReady(t: TestKit): Promise<void> {
  for (;;)
    try {
      await t.consume('orders')
    } catch (error) {
      if ((error as { code?: string }).code === 'E_QUEUE_EMPTY' || /empty|no job/i.test((error as Error).message))
        return
    }
}

test('after five failures in a row retries are held, one is tried per poll, and jobs that never ran still start', async () => {
  const { t, service, call } = await withService()
  await t.mill.enqueueMany(
    call,
    Array.from({ length: 20 }, () => undefined),
  )
  await runReady(t)
  expect(service.calls).toBe(20)
  await t.advance('2s')
  service.calls = 0
  await runReady(t)
  expect(service.calls, 'one probe').toBe(1)
  const { outages } = await t.mill.queue('orders').get()
  expect(outages).toMatchObject([{ job: 'call', state: 'probing', waiting: 19 }])
  expect(outages[0]?.text).toBe('call: probing, 19 waiting')
  await t.mill.enqueue(call, undefined)
  await t.mill.enqueue(other, undefined)
  await runReady(t)
  expect(service.calls, 'the job that never ran').toBe(2)
  service.calls = 0
  for (let polls = 0; polls < 4; polls += 1) {
    await t.advance('5s')
    await runReady(t)
  }
  expect(service.calls, 'one probe for each poll').toBe(4)
})

test('the first success releases held retries eagerly, and all of them end', async () => {
  const { t, service, call } = await withService()
  await t.mill.enqueueMany(
    call,
    Array.from({ length: HELD }, () => undefined),
  )
  await runReady(t)
  await t.advance('2s')
  await runReady(t)
  service.isDown = false
  service.calls = 0
  await t.advance('5s')
  for (let rounds = 0; rounds < 12; rounds += 1) {
    await runReady(t)
    await t.advance(0)
  }
  expect(service.calls).toBe(HELD)
  expect((await t.mill.count({ state: 'done' })).count).toBe(HELD)
  expect((await t.mill.queue('orders').get()).outages).toEqual([])
})

test('while retries are held one failure holds the rest again', async () => {
  const { t, service, call } = await withService()
  await t.mill.enqueueMany(
    call,
    Array.from({ length: 30 }, () => undefined),
  )
  await runReady(t)
  await t.advance('2s')
  await runReady(t)
  service.isDown = false
  await t.advance('5s')
  await t.consume('orders')
  expect((await t.mill.queue('orders').get()).outages).toMatchObject([{ state: 'opening' }])
  service.isDown = true
  await t.advance(0)
  service.calls = 0
  await runReady(t)
  await t.advance('1s')
  await runReady(t)
  expect(service.calls, 'those that the success released').toBeLessThanOrEqual(2)
  expect((await t.mill.queue('orders').get()).outages).toMatchObject([{ state: 'probing' }])
})

test('outage.after sets the number, false switches it off, and an Abort does not count', async () => {
  const early = await withService({ outage: { after: 2 } })
  await early.t.mill.enqueueMany(early.call, [undefined, undefined, undefined])
  await early.t.mill.enqueueMany(
    aborting,
    Array.from({ length: 9 }, () => undefined),
  )
  await runReady(early.t)
  expect((await early.t.mill.queue('orders').get()).outages.map(({ job: name }) => name)).toEqual(['call'])
  const never = await withService({ outage: false })
  await never.t.mill.enqueueMany(
    never.call,
    Array.from({ length: 20 }, () => undefined),
  )
  await runReady(never.t)
  expect((await never.t.mill.queue('orders').get()).outages).toEqual([])
  await never.t.advance('2s')
  never.service.calls = 0
  await runReady(never.t)
  expect(never.service.calls).toBe(20)
})
