import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { job, lazy, millrace } from '../src/index.js'
import type { JobFilter } from '../src/index.js'
import { chooseLibrary } from '../src/store/sqlite/connection/library.js'
import { simulate } from '../src/testing/index.js'
import { freshStore, onPostgres, passingStore } from './support/fresh-store.js'
import { testing } from './support/testing.js'

/** Faults that were found by adversarial testing, each with its regression test. */
const folder = mkdtempSync(join(tmpdir(), 'millrace-findings-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const plain = job('plain', async () => 1)

test('a result of a closed mill is refused and does not wait for ever', async () => {
  const mill = await millrace({ store: passingStore(), jobs: [plain], logger: false })
  const handle = await mill.enqueue(plain, undefined, { in: '1h' })
  await mill.close()
  await expect(handle.result()).rejects.toMatchObject({ code: 'E_CLOSED' })
  await expect(mill.start()).rejects.toMatchObject({ code: 'E_CLOSED' })
})

test('a start while the mill closes is refused', async () => {
  const mill = await millrace({ store: passingStore(), jobs: [plain], logger: false })
  await mill.start()
  const [closed, started] = await Promise.allSettled([mill.close(), mill.start()])
  expect([closed.status, started.status]).toEqual(['fulfilled', 'rejected'])
})

test.skipIf(onPostgres)('a copy of a closed file has every job', async () => {
  const file = join(folder, 'original.db')
  const mill = await millrace({ store: file, jobs: [plain], logger: false })
  const handle = await mill.enqueue(plain, undefined, { in: '1h' })
  await mill.close()
  copyFileSync(file, join(folder, 'copy.db'))
  const copy = await millrace({ store: join(folder, 'copy.db'), logger: false })
  expect(await copy.get(handle.id)).toMatchObject({ state: 'scheduled' })
  await copy.close()
})

test('accepts may be asynchronous, and its false refuses the payload', async () => {
  const picky = job('picky', { run: async () => 1, accepts: (async () => false) as unknown as () => boolean })
  const mill = await millrace({ store: passingStore(), jobs: [picky], logger: false })
  await expect(mill.enqueue(picky)).rejects.toMatchObject({ code: 'E_INVALID_PAYLOAD' })
  await mill.close()
})

test.each([Promise.resolve({ key: 'k' }), new Date(), new Map()])(
  'values that are not options are refused: %#',
  async (options) => {
    const mill = await millrace({ store: passingStore(), jobs: [plain], logger: false })
    await expect(mill.enqueue(plain, undefined, options as object)).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    await mill.close()
  },
)

test('a scenario that is rejected without a reason, or never ends, does not pass', async () => {
  await expect(simulate({ jobs: [plain], faults: 'none', scenario: () => Promise.reject() })).rejects.toMatchObject({
    code: 'E_SIMULATION',
  })
  await expect(
    simulate({ jobs: [plain], faults: 'none', scenario: () => new Promise(() => undefined) }),
  ).rejects.toThrow('did not end')
})

test('jobs held in advance are given back when slow ones hold every slot, and another worker runs them', async () => {
  const file = freshStore(folder)
  const ends: (() => void)[] = []
  const ran: string[] = []
  const fast = job('fast', async (_: undefined, ctx) => void ran.push(ctx.id))
  const slow = job('slow', () => new Promise<void>((end) => ends.push(end)))
  const hoarder = await millrace({ store: file, jobs: [fast, slow], concurrency: 1, logger: false })
  await hoarder.start()
  const warmUp = await hoarder.enqueueMany(fast, Array(50).fill(undefined))
  for (const handle of warmUp) await handle.result()
  await hoarder.enqueue(slow, undefined, { priority: 9 })
  await expect.poll(() => ends.length).toBe(1)
  const handles = await hoarder.enqueueMany(fast, Array(100).fill(undefined))
  const other = await millrace({ store: file, jobs: [fast], logger: false })
  await other.start()
  for (const handle of handles) await handle.result({ timeout: '10s' })
  expect(ends.length).toBe(1)
  for (const end of ends) end()
  await Promise.all([other.close(), hoarder.close()])
})

test('after handlers that compute for long, jobs cancelled meanwhile do not begin, and other jobs do not time out', async () => {
  const begun: number[] = []
  const compute = job('compute', (p: { n: number }) => {
    begun.push(p.n)
    const until = performance.now() + 60
    while (performance.now() < until);
  })
  const mill = await millrace({ store: freshStore(folder), jobs: [compute], timeout: '300ms', logger: false })
  const handles = await mill.enqueueMany(
    compute,
    Array.from({ length: 40 }, (_, n) => ({ n })),
    { retry: { limit: 0 } },
  )
  const last = handles.pop()
  await mill.start()
  await expect.poll(() => begun.length).toBeGreaterThan(0)
  expect(await last?.cancel()).toBe(true)
  // None of them fails, though all together take far longer than a timeout.
  for (const handle of handles) await handle.result({ timeout: '20s' })
  expect(begun).not.toContain(39)
  await mill.close()
})

test.skipIf(onPostgres)(
  'a close keeps its deadline while another connection keeps the file locked, and closes',
  async () => {
    const file = join(folder, 'locked.db')
    const mill = await millrace({ store: file, jobs: [plain], logger: false })
    await mill.start()
    const other = new (chooseLibrary().open)(file)
    other.exec('begin immediate')
    const pending = mill.enqueue(plain)
    const began = performance.now()
    const [closed, enqueued] = await Promise.allSettled([mill.close({ deadline: '1s' }), pending])
    expect(performance.now() - began).toBeLessThan(20_000)
    expect([closed.status, enqueued.status]).toEqual(['fulfilled', 'rejected'])
    other.exec('rollback')
    other.close()
    await expect(mill.enqueue(plain)).rejects.toMatchObject({ code: 'E_CLOSED' })
  },
)

test.skipIf(onPostgres)('anything at the path of the ballast breaks nothing', async () => {
  const file = join(folder, 'ballast.db')
  mkdirSync(`${file}-ballast`)
  const mill = await millrace({ store: file, jobs: [plain], logger: false })
  await mill.start()
  expect(await (await mill.enqueue(plain)).result()).toBe(1)
  await mill.close()
})

test('what is stored is what was given at the call, however long a check waits', async () => {
  const slow = job('slow', {
    run: async () => 1,
    accepts: (async (p: { cents: number }) => {
      await Promise.resolve()
      return Number.isInteger(p.cents)
    }) as never as (p: { cents: number }) => boolean,
    title: 'pay {cents}',
    unique: { by: 'cents' },
  })
  const mill = await millrace({ store: passingStore(), jobs: [slow], logger: false })
  const one = { cents: 5 }
  const labels = ['a']
  const options = { labels, priority: 1 }
  const enqueued = mill.enqueue(slow, one, options)
  one.cents = -5
  labels.push('b')
  options.priority = 2
  const stored = await (await enqueued).get()
  expect(stored).toMatchObject({ payload: { cents: 5 }, title: 'pay 5', labels: ['a'], priority: 1 })
  const many = [{ cents: 1 }, { cents: 2 }, { cents: 3 }]
  const bulk = mill.enqueueMany(slow, many)
  for (const each of many) each.cents = -1
  many.length = 0
  const payloads = await Promise.all((await bulk).map(async (handle) => (await handle.get())?.payload))
  expect(payloads).toEqual([{ cents: 1 }, { cents: 2 }, { cents: 3 }])
  await mill.close()
})

test('what is stored is what was given at the call, whatever hooks do and however long they wait', async () => {
  const pay = job('pay', {
    run: async (p: { cents: number }) => p.cents,
    accepts: (p) => p.cents > 0,
    title: 'pay {cents}',
  })
  const mill = await millrace({
    store: passingStore(),
    jobs: [pay],
    logger: false,
    hooks: {
      enqueue: async (call, next) => {
        Object.assign(call.items[0]?.payload as object, { cents: 77 })
        await Promise.resolve()
        await next()
      },
    },
  })
  const one = { cents: 5 }
  const options = { labels: ['a'], meta: { by: 'ada' }, at: new Date('2040-01-01') }
  const enqueued = mill.enqueue(pay, one, options)
  one.cents = -5
  options.labels.push('b')
  options.meta.by = 'bob'
  options.at.setFullYear(2050)
  expect(await (await enqueued).get()).toMatchObject({
    payload: { cents: 5 },
    title: 'pay 5',
    labels: ['a'],
    meta: { by: 'ada' },
    dueAt: new Date('2040-01-01'),
  })
  const many = [{ cents: 1 }, { cents: 2 }]
  const bulk = mill.enqueueMany(pay, many, { labels: ['x'] })
  many.length = 0
  const payloads = await Promise.all((await bulk).map(async (handle) => (await handle.get())?.payload))
  expect(payloads).toEqual([{ cents: 1 }, { cents: 2 }])
  const bad = { cents: -1 }
  const refused = mill.enqueue(pay, bad)
  bad.cents = 1
  await expect(refused).rejects.toMatchObject({ code: 'E_INVALID_PAYLOAD' })
  await mill.close()
})

test('a check that changes its argument does not change what is stored', async () => {
  const spoiled = job('spoiled', {
    run: async (p: { n: number }) => p.n,
    accepts: (p) => {
      ;(p as { n: number }).n = 99
      return true
    },
  })
  const mill = await millrace({ store: passingStore(), jobs: [spoiled], logger: false })
  const handle = await mill.enqueue(spoiled, { n: 1 })
  expect((await handle.get())?.payload).toEqual({ n: 1 })
  await mill.close()
})

test('an options function that shortens the list loses no job, and a getter is read once', async () => {
  const mill = await millrace({ store: passingStore(), jobs: [plain], logger: false })
  const list = [1, 2, 3] as unknown as undefined[]
  const handles = await mill.enqueueMany(plain, list, () => {
    list.length = 0
    return {}
  })
  expect(handles).toHaveLength(3)
  let asked = 0
  const sly = {
    get priority() {
      asked += 1
      return asked === 1 ? 1 : 1e12
    },
  }
  const handle = await mill.enqueue(plain, undefined, sly)
  expect((await handle.get())?.priority).toBe(1)
  await mill.close()
})

test('what a hook does to the options it gets affects only that call', async () => {
  const leak = await millrace({
    store: passingStore(),
    jobs: [plain],
    logger: false,
    hooks: {
      enqueue: (call, next) => {
        expect(() => Object.assign(call.items[0]?.options as object, { key: 'oops' })).toThrow(TypeError)
        return next()
      },
    },
  })
  const handle = await leak.enqueue(plain)
  expect((await handle.get())?.key).toBeUndefined()
  await leak.close()
})

test('a generator is refused as a handler', async () => {
  const generators = [
    function* () {
      yield 1
    },
    async function* () {
      yield 1
    },
  ]
  for (const run of generators) expect(() => job('g', run as never)).toThrow('must not be a generator function')
  const late = job('late', { run: lazy(async () => generators[0] as never), retry: { limit: 0 } })
  const t = await testing({ jobs: [late] })
  await t.mill.enqueue(late)
  await expect(t.consume()).rejects.toThrow('must not be a generator function')
  await t.close()
  expect(() => (job as (name: string) => unknown)('x')).toThrow('job("x"): needs a handler')
})

test('promises from synchronous callbacks are ignored, and the job’s log says so', async () => {
  const broken = (): never => {
    throw new Error('no')
  }
  const later = (async () => false) as never
  const hasty = job('hasty', { run: broken, treatAsDone: later, retry: { limit: 1, when: later, backoff: later } })
  const titled = job('titled', { run: broken, title: (async () => 'x') as never })
  const t = await testing({ jobs: [hasty, titled] })
  const handle = await t.mill.enqueue(hasty)
  await expect(t.consume()).rejects.toThrow('no')
  const record = await handle.get()
  expect(record?.state).toBe('retrying')
  expect(record?.attempts.flatMap((attempt) => attempt.log ?? [])).toEqual([
    'treatAsDone returned a promise and must be synchronous: the error stays an error',
    'retry.when returned a promise and must be synchronous: the error is tried again, as without it',
    'retry.backoff returned a promise and must be synchronous: the default wait is taken',
  ])
  await expect(t.mill.enqueue(titled)).rejects.toThrow('title() must be synchronous')
  await t.close()
})

test('schedule under a key takes time, payload and options from the last call', async () => {
  const mill = await millrace({ store: passingStore(), jobs: [plain], logger: false })
  const one = await mill.schedule(plain, undefined, '1h', { key: 'k', queue: 'slow', priority: 3, labels: ['a'] })
  const two = await mill.schedule(plain, undefined, '2h', { key: 'k', labels: ['b'] })
  expect(two.id).toBe(one.id)
  expect(await two.get()).toMatchObject({ queue: 'default', priority: 0, labels: ['b'], state: 'scheduled' })
  await mill.close()
})

test('values that would be changed or could not be displayed are refused with a reason', async () => {
  const t = await testing({ jobs: [plain] })
  const refused = (options: object): Promise<string> =>
    t.mill.enqueue(plain, undefined, options).then(
      () => 'taken',
      (error: unknown) => (error as Error).message,
    )
  expect(await refused({ meta: 'x'.repeat(65_535) })).toMatch('meta has 65537 bytes and the limit is 65536')
  expect(await refused({ meta: 'x'.repeat(65_534) })).toBe('taken')
  expect(await refused({ labels: Array(1) })).toMatch('labels[0] must be text, got undefined')
  expect(await refused({ queue: 'a\u0085b' })).toMatch('must not have control characters')
  expect(() => t.mill.queue('a\u009fb')).toThrow('must not have control characters')
  expect(await refused({ expires: 'soon' })).toMatch(/must be a duration such as .* or an instant such as/)
  await t.close()
})

test.each([
  [[Number.NaN], 'done must be a number'],
  [['x'], 'done must be a number'],
  [[-1], 'done must be a number of 0 or more, got -1'],
  [[1, Infinity], 'total must be a number'],
  [[3, 2], 'done must be at most the total of 2, got 3'],
])('invalid progress is refused: %j', async (told, message) => {
  const telling = job('telling', {
    run: async (_: undefined, ctx) => ctx.progress(...(told as [number])),
    retry: { limit: 0 },
  })
  const t = await testing({ jobs: [telling] })
  await t.mill.enqueue(telling)
  await expect(t.consume()).rejects.toThrow(message)
  await expect(telling.run(undefined)).rejects.toThrow(message)
  await t.close()
})

test('an edit without a payload keeps it, and a misspelt name is refused', async () => {
  const echo = job('echo', async (p: number) => p)
  const t = await testing({ jobs: [echo] })
  const { id } = await t.mill.enqueue(echo, 7, { in: '1h' })
  expect(await t.mill.edit(id, { payload: undefined, priority: 2 })).toBe(true)
  expect(await t.mill.get(id)).toMatchObject({ payload: 7, priority: 2 })
  await expect(t.mill.edit(id, { paylod: 8 } as object)).rejects.toThrow('did you mean "payload"?')
  await t.close()
})

test('find accepts instants as other calls do', async () => {
  const t = await testing({ jobs: [plain] })
  await t.mill.enqueue(plain)
  const count = async (filter: JobFilter): Promise<number> => {
    let found = 0
    for await (const _ of t.mill.find(filter)) found += 1
    return found
  }
  expect(await count({ createdAfter: '2029-12-31T00:00:00Z' })).toBe(1)
  expect(await count({ createdBefore: { epochMilliseconds: Date.UTC(2029, 0) } })).toBe(0)
  await expect(count({ createdAfter: '2029-12-31' as never })).rejects.toThrow('did you mean')
  await t.close()
})

test('a bulk with many wrong items says how many it did not check', async () => {
  const picky = job('picky', { run: async () => 1, accepts: () => false })
  const t = await testing({ jobs: [picky] })
  await expect(t.mill.enqueueMany(picky, Array(100).fill(undefined))).rejects.toThrow(
    'job "picky" (80 more items were not checked): 20 problems',
  )
  await expect(t.mill.enqueueMany(picky, Array(20).fill(undefined))).rejects.toThrow('job "picky": 20 problems')
  await t.close()
})

test('a key that occurs twice in a bulk with replace names the last item', async () => {
  const echo = job('echo', async (p: number) => p)
  const t = await testing({ jobs: [echo] })
  const [one, two] = await t.mill.enqueueMany(echo, [1, 2], { key: 'k', onDuplicate: 'replace' })
  expect([(await one?.get())?.state, (await two?.get())?.state]).toEqual(['cancelled', 'ready'])
  await t.close()
})
