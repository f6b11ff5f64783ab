import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { category, InvalidOptionsError, InvalidPayloadError, job, millrace } from '../src/index.js'
import type { Job, Mill, MillOptions } from '../src/index.js'
import { describeAboveStore } from './support/above-store.js'
import { mostAtOnce } from '../scripts/limits/notes.mjs'
import { freshStore } from './support/fresh-store.js'
import { testing } from './support/testing.js'

/** X5 through the public API: limits and rates of jobs, keys and queues, for all processes of a store together. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-limits-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

async function open(store: string, options: MillOptions): Promise<Mill> {
  const mill = await millrace({ store, logger: false, poll: '100ms', ...options })
  mills.push(mill)
  return mill
}

/** Counts what is in flight by a key, over all mills of a test. */
class InFlight {
  readonly #now = new Map<string, number>()
  readonly most = new Map<string, number>()
  readonly order: string[] = []

  async hold(key: string, ms = 3): Promise<void> {
    const now = (this.#now.get(key) ?? 0) + 1
    this.#now.set(key, now)
    this.order.push(key)
    this.most.set(key, Math.max(now, this.most.get(key) ?? 0))
    await new Promise((next) => setTimeout(next, ms))
    this.#now.set(key, (this.#now.get(key) ?? 0) - 1)
  }
}

async function doneCount(mill: Mill): Promise<number> {
  return (await mill.count({ state: 'done' })).count
}

describe('a limit', () => {
  test('bounds the jobs in flight of all mills on one store together, and every job runs', async () => {
    const inFlight = new InFlight()
    const limited = job('limited', { run: () => inFlight.hold('all'), limit: { max: 3 } })
    const store = freshStore(folder)
    const fleet = [await open(store, { jobs: [limited] }), await open(store, { jobs: [limited] })]
    await fleet[0]?.enqueueMany(
      limited,
      Array.from({ length: 40 }, () => undefined),
    )
    for (const mill of fleet) await mill.start()
    await expect.poll(() => doneCount(fleet[0] as Mill)).toBe(40)
    expect(inFlight.most.get('all')).toBe(3)
  })

  test('of a key bounds each key by itself, and jobs without limits run beside them', async () => {
    const inFlight = new InFlight()
    const report = job('report', {
      run: (p: { tenant: string }) => inFlight.hold(p.tenant),
      limit: { max: 1, key: (p) => p.tenant },
    })
    const plain = job('plain', () => inFlight.hold('plain', 0))
    const mill = await open(freshStore(folder), { jobs: [report, plain] })
    await mill.enqueueMany(
      report,
      ['a', 'a', 'a', 'b', 'b', 'c', 'a'].map((tenant) => ({ tenant })),
    )
    await mill.enqueueMany(
      plain,
      Array.from({ length: 20 }, () => undefined),
    )
    await mill.start()
    await expect.poll(() => doneCount(mill)).toBe(27)
    expect(['a', 'b', 'c'].map((tenant) => inFlight.most.get(tenant))).toEqual([1, 1, 1])
  })

  test('of a category holds for each of its jobs by itself, and a job overrides it', async () => {
    const one = category('one', { limit: { max: 1 } })
    const inFlight = new InFlight()
    const [a, b] = ['a', 'b'].map((name) => job(name, { run: () => inFlight.hold(name), is: [one] })) as Job<
      undefined,
      void
    >[]
    const wide = job('wide', { run: () => inFlight.hold('wide', 20), is: [one], limit: { max: 2 } })
    const mill = await open(freshStore(folder), { jobs: [a, b, wide] })
    for (const each of [a, b, wide])
      await mill.enqueueMany(each as Job<undefined, void>, [undefined, undefined, undefined, undefined])
    await mill.start()
    await expect.poll(() => doneCount(mill)).toBe(12)
    expect([...inFlight.most]).toEqual(
      expect.arrayContaining([
        ['a', 1],
        ['b', 1],
        ['wide', 2],
      ]),
    )
  })

  test('of a queue is stored at start, followed by mills that do not name it, and removed with false', async () => {
    const inFlight = new InFlight()
    const work = job('work', { run: () => inFlight.hold('q'), queue: 'mail' })
    const store = freshStore(folder)
    const first = await open(store, {
      jobs: [work],
      queues: { mail: { limit: { max: 2 }, rate: { max: 1_000, per: '1s' } } },
    })
    const second = await open(store, { jobs: [work] })
    expect(await second.queue('mail').get()).toMatchObject({ limit: undefined, rate: undefined })
    for (const mill of [first, second]) await mill.start()
    expect(await second.queue('mail').get()).toMatchObject({ limit: { max: 2 }, rate: { max: 1_000, perMs: 1_000 } })
    await first.enqueueMany(
      work,
      Array.from({ length: 30 }, () => undefined),
    )
    await expect.poll(() => doneCount(first)).toBe(30)
    expect(inFlight.most.get('q')).toBe(2)
    const third = await open(store, { queues: { mail: { limit: false } } })
    await third.start()
    expect(await second.queue('mail').get()).toMatchObject({ limit: undefined, rate: undefined })
  })

  test('is freed when its job fails, is snoozed or times out', async () => {
    const t = await testing({ jobs: [] })
    let runs = 0
    const failing = job('failing', {
      run: () => {
        runs += 1
        throw new Error('no')
      },
      limit: { max: 1 },
      retry: { limit: 1, backoff: { start: '1s' } },
    })
    t.mill.register(failing)
    await t.mill.enqueueMany(failing, [undefined, undefined])
    for (let left = 4; left > 0; left -= 1) {
      await t.consume().catch(() => undefined)
      await t.advance('1m')
    }
    expect(runs).toBe(4)
    await t.close()
  })
})

describe('a rate', () => {
  test('bounds the starts in every window, and a held job starts when the window opens', async () => {
    const t = await testing({ jobs: [] })
    const starts: number[] = []
    const called = job('called', { run: () => void starts.push(t.now.getTime()), rate: { max: 3, per: '1m' } })
    t.mill.register(called)
    await t.mill.enqueueMany(
      called,
      Array.from({ length: 7 }, () => undefined),
    )
    await t.drain()
    expect(starts).toHaveLength(3)
    await t.advance('59s')
    await t.drain()
    expect(starts).toHaveLength(3)
    await t.advance('1s')
    await t.drain()
    expect(starts).toHaveLength(6)
    await t.advance('1m')
    await t.drain()
    expect(starts).toHaveLength(7)
    await t.close()
  })

  test('with a weight uses what the payload needs', async () => {
    const t = await testing({ jobs: [] })
    const pages: number[] = []
    const print = job('print', {
      run: (p: { pages: number }) => void pages.push(p.pages),
      rate: { max: 10, per: '1m', weight: (p) => p.pages },
    })
    t.mill.register(print)
    await t.mill.enqueueMany(print, [{ pages: 6 }, { pages: 4 }, { pages: 10 }, { pages: 0 }])
    await t.drain()
    expect(pages).toEqual([6, 4])
    await t.advance('1m')
    await t.drain()
    expect(pages).toEqual([6, 4, 10, 0])
    await t.close()
  })
})

test('keys take turns: the only job of a key starts before the second of most others', async () => {
  const t = await testing({ jobs: [] })
  const order: string[] = []
  const work = job('work', {
    run: (p: { tenant: string }) => void order.push(p.tenant),
    limit: { max: 100, key: (p) => p.tenant },
  })
  t.mill.register(work)
  const big = Array.from({ length: 200 }, () => ({ tenant: 'big' }))
  await t.mill.enqueueMany(work, big)
  await t.mill.enqueueMany(
    work,
    ['a', 'b', 'c', 'd'].map((tenant) => ({ tenant })),
  )
  for (let left = 10; left > 0; left -= 1) await t.consume()
  expect(order.slice(0, 10).toSorted()).toEqual(['a', 'b', 'big', 'big', 'big', 'big', 'big', 'big', 'c', 'd'])
  await t.close()
})

describeAboveStore('a payload is refused, and nothing is written,', () => {
  const refused: readonly (readonly [string, Job<never, unknown>, unknown, RegExp])[] = [
    ['when the key function throws', keyed(() => boom('no tenant')), {}, /limit\.key threw .*no tenant/],
    ['when the key function is asynchronous', keyed(async () => 'a'), {}, /limit\.key must be synchronous/],
    ['when the key is an object', keyed(() => ({})), {}, /limit\.key must return text, a number or a boolean/],
    [
      'when the weight is no number',
      weighted(() => 'x'),
      {},
      /rate\.weight must return a whole number of 0 or more, got "x"/,
    ],
    [
      'when the weight is negative',
      weighted(() => -1),
      {},
      /rate\.weight must return a whole number of 0 or more, got -1/,
    ],
    [
      'when it could never start',
      weighted(() => 11),
      {},
      /weight 11 and its rate allows 10 in a window: it could never start/,
    ],
    ['when the weight function throws', weighted(() => boom('bad')), {}, /rate\.weight threw .*bad/],
  ]
  test.each(refused)('%s', async (_, defined, payload, message) => {
    const mill = await open(freshStore(folder), { jobs: [defined] })
    const error = await mill.enqueue(defined as Job<unknown, unknown>, payload).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(InvalidPayloadError)
    expect((error as Error).message).toMatch(message)
    const bulk = await mill.enqueueMany(defined as Job<unknown, unknown>, [payload]).catch((thrown: unknown) => thrown)
    expect((bulk as Error).message).toContain('payloads[0]')
    expect((await mill.count({})).count).toBe(0)
  })
})

describeAboveStore('a definition is refused', () => {
  test.each([
    [{ limit: { max: 0 } }, /limit\.max must be a whole number from 1 to 1000000, got 0/],
    [{ limit: {} }, /limit\.max is missing/],
    [{ limit: 5 }, /limit must be an object, got 5; did you mean \{ max: 5 \}/],
    [{ limit: { max: 1, key: 'tenant' } }, /limit\.key must be a function, got "tenant"/],
    [{ limit: { max: 1, per: '1m' } }, /limit\.per is not an option; a limit bounds jobs in flight/],
    [{ rate: { max: 5 } }, /rate\.per is missing/],
    [{ rate: { max: 5, per: -1 } }, /rate\.per/],
    [{ rate: { max: 5, per: 0 } }, /rate\.per must be 10 ms or more, got 0/],
    [{ rate: { max: 5, per: '400d' } }, /rate\.per must be at most 366 days/],
    [{ rate: { max: 1.5, per: '1s' } }, /rate\.max must be a whole number/],
    [{ rate: { max: 1, duration: 5 } }, /rate\.duration is not an option; use per/],
  ])('with %j', (options, message) => {
    expect(() => job('wrong', { run: () => undefined, ...(options as object) })).toThrow(message)
  })

  test('in a queue, which has no payload for a function', async () => {
    const queues = { mail: { limit: { max: 1, key: () => 'x' } } } as MillOptions['queues']
    const error = await millrace({ store: ':memory:', queues }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(InvalidOptionsError)
    expect((error as Error).message).toMatch(/queues\.mail\.limit\.key is a function of a payload/)
  })
})

function keyed(key: () => unknown): Job<never, unknown> {
  return job('keyed', { run: () => undefined, limit: { max: 1, key: key as never } }) as Job<never, unknown>
}

function weighted(weight: () => unknown): Job<never, unknown> {
  return job('weighted', { run: () => undefined, rate: { max: 10, per: '1s', weight: weight as never } }) as Job<
    never,
    unknown
  >
}

function boom(message: string): never {
  throw new Error(message)
}

test('a job whose payload is edited has the key of its new payload', async () => {
  const t = await testing({ jobs: [] })
  const order: string[] = []
  const work = job('work', {
    run: (p: { tenant: string }) => void order.push(p.tenant),
    rate: { max: 1, per: '1h', key: (p) => p.tenant },
  })
  t.mill.register(work)
  const [first, second] = await t.mill.enqueueMany(work, [{ tenant: 'a' }, { tenant: 'a' }])
  await t.mill.edit(second?.id as string, { payload: { tenant: 'b' } })
  await t.drain()
  expect(order.toSorted()).toEqual(['a', 'b'])
  expect((await first?.get())?.state).toBe('done')
  await t.close()
})

describeAboveStore('runaway enqueues', () => {
  test('a job that enqueues itself past a depth of 1,000 within a minute is reported once', async () => {
    const lines: string[] = []
    const warn = (_: object, text: string): void => void lines.push(text)
    const logger = { debug: () => undefined, info: () => undefined, warn, error: warn }
    let left = 1_010
    const again: Job<undefined, void> = job('again', async (_: undefined, ctx) => {
      left -= 1
      if (left > 0) await ctx.enqueue(again, undefined)
      if (left === 500) await mill.enqueueMany(once, [undefined])
    })
    const once = job('once', async () => undefined)
    const mill = await millrace({ store: ':memory:', jobs: [again, once], logger, poll: '100ms' })
    mills.push(mill)
    await mill.start()
    await mill.enqueue(again, undefined)
    await expect.poll(() => left, { timeout: 30_000 }).toBe(0)
    expect(lines.filter((line) => line.includes('past a depth of 1000'))).toHaveLength(1)
    expect(lines.filter((line) => line.includes('"once"'))).toEqual([])
  })
})

test('what is measured with real processes: an attempt that never ended runs until its own process died', () => {
  const began = (no: number, id: string, at: number): object => ({ no, id, attempt: 1, began: at })
  const notes = [
    began(1, 'a', 0),
    began(1, 'b', 1),
    began(2, 'b', 5),
    { no: 2, id: 'b', attempt: 1, ended: 7 },
    began(3, 'a', 6),
  ]
  const died = new Map([
    [1, 4],
    [3, 9],
  ])
  expect(mostAtOnce(notes, died)).toBe(2)
  expect(mostAtOnce(notes, new Map([...died, [1, 8]]))).toBe(4)
})
