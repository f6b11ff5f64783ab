import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { job, millrace, RetryHeldError, workflow } from '../src/index.js'
import type { Mill, MillOptions } from '../src/index.js'
import { freshStore } from './support/fresh-store.js'

/** `mill.retryOne`: the oldest error of a queue, run in the process that calls. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-retry-one-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const cause = new TypeError('no route')
let isDown = true
let release: () => void = () => undefined
const send = job('send', {
  run: async (to: number) => {
    if (isDown) throw Object.assign(new Error(`mail server refused ${to}`, { cause }), { code: 'E_REFUSED' })
    return to
  },
  retry: { limit: 0 },
})
const slow = job('slow', {
  run: (n: number) => {
    if (n === 0) throw new Error('first')
    return new Promise<void>((resolve) => (release = resolve))
  },
  retry: { limit: 0 },
  limit: { max: 1 },
})
const long = workflow('long', async (_: undefined, w) => {
  await w.step('fail', { retry: { limit: 0 } }, () => {
    throw new Error('step')
  })
})
const jobs = [send, slow, long]

let store: string
let mill: Mill
const open = (more: MillOptions = {}): Promise<Mill> => millrace({ store, jobs, logger: false, poll: '100ms', ...more })
beforeEach(async () => {
  isDown = true
  store = freshStore(folder)
  mill = await open()
})
afterEach(() => mill.close({ deadline: 0 }))

const count = async (state: 'failed' | 'done' | 'running'): Promise<number> => (await mill.count({ state })).count
/** Ends all jobs in errors, by a worker that is gone then. */
async function failAll(failed: number): Promise<void> {
  await mill.start()
  await expect.poll(() => count('failed')).toBe(failed)
  await mill.stop()
}

test('runs the oldest error here, whatever its attempts, and gives its record and its whole error', async () => {
  const [first, second] = [await mill.enqueue(send, 1), await mill.enqueue(send, 2)]
  await mill.enqueue(send, 3, { queue: 'other' })
  await failAll(3)
  const failed = await mill.retryOne('default')
  expect(failed?.record).toMatchObject({ id: first.id, state: 'failed', attempt: 2 })
  expect(failed?.record.attempts.map(({ exit }) => exit)).toEqual([undefined, 'retried', undefined])
  expect(failed?.error).toMatchObject({ message: 'mail server refused 1', code: 'E_REFUSED' })
  expect(failed?.error?.stack).toContain('retry-one.test')
  expect(failed?.error?.cause).toMatchObject({ name: 'TypeError', message: 'no route' })
  isDown = false
  const done = await mill.retryOne('default', { actor: 'ada', reason: 'the server is back' })
  expect(done).toMatchObject({ record: { id: first.id, state: 'done', result: 1, error: undefined }, error: undefined })
  expect((await mill.audit()).rows).toMatchObject([
    { actor: 'ada', verb: 'retryOne', target: `job ${first.id}`, before: 'failed', after: 'ready', count: 1 },
  ])
  expect((await mill.retryOne('default'))?.record).toMatchObject({ id: second.id, state: 'done' })
  expect(await mill.retryOne('default')).toBeNull()
  expect(await mill.retryOne('unknown')).toBeNull()
  expect(await count('failed')).toBe(1)
  expect((await mill.workers()).rows.filter(({ state }) => state !== 'dead')).toEqual([])
})

test('runs it in this process though others are idle, and takes no other job', async () => {
  await mill.enqueue(send, 1)
  await failAll(1)
  isDown = false
  const other = await open()
  await other.start()
  const others = new Set((await other.workers()).rows.map(({ id }) => id))
  for (let n = 0; n < 5; n += 1) {
    isDown = n < 4
    const retried = await mill.retryOne('default')
    expect(retried?.record.state).toBe(isDown ? 'failed' : 'done')
    expect(others.has(retried?.record.attempts.at(-1)?.worker as string)).toBe(false)
  }
  await other.close()
  const waiting = await mill.enqueue(send, 2)
  isDown = true
  expect(await mill.retryOne('default')).toBeNull()
  expect((await waiting.get())?.state).toBe('ready')
})

test('leaves the job as it is while its queue is paused or its limit has no room', async () => {
  const failed = await mill.enqueue(slow, 0)
  await failAll(1)
  await mill.queue('default').pause()
  const refused = await mill.retryOne('default').catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(RetryHeldError)
  expect(refused).toMatchObject({ code: 'E_RETRY_HELD', id: failed.id })
  await mill.queue('default').resume()
  await mill.enqueue(slow, 1)
  await mill.start()
  await expect.poll(() => count('running')).toBe(1)
  await expect(mill.retryOne('default')).rejects.toThrow(RetryHeldError)
  expect(await failed.get()).toMatchObject({ state: 'failed', attempt: 1 })
  release()
  await expect.poll(() => count('done')).toBe(1)
  expect((await mill.retryOne('default'))?.error?.message).toBe('first')
})

test('refuses a job whose key another one holds, passes workflows over, and takes parked and retrying jobs', async () => {
  const keyed = await mill.enqueue(send, 1, { key: 'a' })
  await mill.enqueue(long, undefined, { queue: 'long' })
  await failAll(2)
  await mill.enqueue(send, 2, { key: 'a', in: '1h' })
  await expect(mill.retryOne('default')).rejects.toMatchObject({ code: 'E_DUPLICATE_KEY' })
  expect((await keyed.get())?.state).toBe('failed')
  expect(await mill.retryOne('long')).toBeNull()
  const patient = job('patient', {
    run: async () => isDown && Promise.reject(new Error('later')),
    retry: { backoff: () => 3_600_000 },
  })
  mill.register(patient)
  const handle = await mill.enqueue(patient, undefined, { queue: 'patient' })
  await mill.start()
  await expect.poll(async () => (await handle.get())?.state).toBe('retrying')
  isDown = false
  expect((await mill.retryOne('patient'))?.record).toMatchObject({ id: handle.id, state: 'done' })
})

test('a stop of the mill aborts it and gives the job back', async () => {
  let began = 0
  const holding = job('holding', {
    run: (_: undefined, ctx) => {
      began += 1
      if (began === 1) throw new Error('first')
      return new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
    },
    retry: { limit: 0 },
    timeout: '1h',
  })
  mill.register(holding)
  const handle = await mill.enqueue(holding)
  await failAll(1)
  const retried = mill.retryOne('default')
  await expect.poll(() => began).toBe(2)
  expect((await handle.get())?.state).toBe('running')
  await mill.stop({ deadline: 0 })
  expect((await retried)?.record.state).toBe('done')
  expect((await mill.workers()).rows.filter(({ state }) => state !== 'dead')).toEqual([])
})

test('refuses a queue that is none, a reason without an actor, and a closed mill', async () => {
  await expect(mill.retryOne('')).rejects.toThrow(/name must/)
  await expect(mill.retryOne('default', { reason: 'x' })).rejects.toThrow(/needs an actor/)
  await mill.close()
  await expect(mill.retryOne('default')).rejects.toMatchObject({ code: 'E_CLOSED' })
})
