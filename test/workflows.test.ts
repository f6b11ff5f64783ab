import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { Abort, job, millrace, workflow } from '../src/index.js'
import type { Mill, MillOptions } from '../src/index.js'
import type { TestKit } from '../src/testing/index.js'
import { freshStore } from './support/fresh-store.js'
import { testing } from './support/testing.js'

/** Workflows through the public API, on either store. The numbers are those of the acceptance tests of long work. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-workflows-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
const kits: TestKit[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
  for (const kit of kits.splice(0)) await kit.close()
})

async function open(options: MillOptions, store = freshStore(folder)): Promise<Mill> {
  const mill = await millrace({ store, logger: false, poll: '100ms', ...options })
  mills.push(mill)
  return mill
}

async function kit(options: Parameters<typeof testing>[0]): Promise<TestKit> {
  const made = await testing(options)
  kits.push(made)
  return made
}

describe('A workflow', () => {
  test('takes steps, sleeps, and ends with its result', async () => {
    const acts: string[] = []
    const onboard = workflow('onboard', async (user: { name: string }, w) => {
      const account = await w.step('create', (s) => {
        acts.push(`create ${s.attempt}`)
        return { id: `a-${user.name}`, at: new Date(5) }
      })
      await w.sleep('3d')
      const charged = await w.step('charge', () => {
        acts.push('charge')
        return 42
      })
      return [account.id, account.at.getTime(), charged] as const
    })
    const t = await kit({ jobs: [onboard] })
    const handle = await t.mill.enqueue(onboard, { name: 'ada' })
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'scheduled', attempt: 0, attempts: [] })
    await t.advance('2d')
    await t.drain()
    expect(acts).toEqual(['create 1'])
    await t.advance('1d')
    expect(await t.drain()).toMatchObject({ ran: 1, done: 1 })
    expect(acts).toEqual(['create 1', 'charge'])
    expect(await handle.get()).toMatchObject({ state: 'done', result: ['a-ada', 5, 42] })
  })

  test('1: LW1: is enqueued by key, in a group, after another and scheduled like any job', async () => {
    const first = job('first', () => 'parent')
    const flow = workflow('flow', async (n: number, w) => {
      const [parent] = n === 2 ? await w.results(first) : []
      return w.step('s', () => [n, parent])
    })
    const t = await kit({ jobs: [first, flow] })
    const one = await t.mill.enqueue(flow, 1, { key: 'k', group: 'g' })
    const again = await t.mill.enqueue(flow, 9, { key: 'k' })
    expect([again.id, again.isNew]).toEqual([one.id, false])
    const parent = await t.mill.enqueue(first)
    const two = await t.mill.enqueue(flow, 2, { after: [parent], group: 'g' })
    const three = await t.mill.schedule(flow, 3, '1h')
    await t.drain()
    expect((await one.get())?.result).toEqual([1, undefined])
    expect((await two.get())?.result).toEqual([2, 'parent'])
    expect((await three.get())?.state).toBe('scheduled')
    await t.advance('1h')
    await t.drain()
    expect((await three.get())?.result).toEqual([3, undefined])
    expect(await t.mill.group('g').progress()).toMatchObject({ done: 2, total: 2 })
  })

  test('23: LW24: a step is retried by its own policy, and its attempts survive', async () => {
    const attempts: number[] = []
    const flaky = workflow('flaky', (_: undefined, w) =>
      w.step('s', { retry: { limit: 2, backoff: { start: '1m', factor: 1 }, jitter: 0 } }, (s) => {
        attempts.push(s.attempt)
        if (s.attempt < 3) throw new Error('not yet')
        return s.attempt
      }),
    )
    const t = await kit({ jobs: [flaky] })
    const handle = await t.mill.enqueue(flaky)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'retrying', attempt: 0 })
    await t.advance('1m')
    await t.drain()
    await t.advance('1m')
    await t.drain()
    expect(attempts).toEqual([1, 2, 3])
    expect(await handle.get()).toMatchObject({ state: 'done', result: 3 })
  })

  test('24: LW25: Abort in a step is final, and in the body fails the workflow', async () => {
    const aborted = workflow('aborted', async (inStep: boolean, w) => {
      if (inStep) await w.step('s', () => { throw new Abort('no use') }) // prettier-ignore
      throw new Abort('body')
    })
    const t = await kit({ jobs: [aborted] })
    const [a, b] = [await t.mill.enqueue(aborted, true), await t.mill.enqueue(aborted, false)]
    await t.drain()
    expect(await a.get()).toMatchObject({ state: 'failed', error: { code: 'E_STEP_FAILED' } })
    expect(await b.get()).toMatchObject({ state: 'failed', error: { name: 'Abort' } })
  })

  test('steps one after the other, side by side, and calls of jobs on a running mill', async () => {
    const add = job('add', (p: { a: number; b: number }) => p.a + p.b)
    const sums = workflow('sums', async (n: number, w) => {
      const doubled = await w.step('double', () => n * 2)
      await w.sleep(20)
      const each = await w.each('n', [1, 2, 3], (one, x) => x.step('square', () => one * one), { concurrency: 2 })
      const sum = await w.call(add, { a: doubled, b: each[2] as number })
      const { id } = await w.enqueue(add, { a: 1, b: 1 })
      return [sum, typeof id]
    })
    const mill = await open({ jobs: [add, sums] })
    await mill.start()
    const handle = await mill.enqueue(sums, 4)
    expect(await handle.result({ timeout: '20s' })).toEqual([17, 'string'])
  })
})
