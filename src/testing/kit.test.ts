import { afterEach, describe, expect, test } from 'vitest'
import { job } from '../job/definition/define.js'
import { Snooze } from '../job/attempt/control-errors.js'
import { testing } from './kit.js'
import type { TestKit } from './kit.js'

const greet = job('greet', async (p: { name: string }, ctx) => {
  ctx.log('greeting', p.name)
  return `hello ${p.name}`
})
const flaky = job('flaky', {
  run: async (p: { fails: number }, ctx) => {
    if (ctx.attempt <= p.fails) throw new Error(`attempt ${ctx.attempt}`)
    return ctx.attempt
  },
  retry: { limit: 2, backoff: { start: '10s' }, jitter: 0 },
  queue: 'api',
})
const parent = job('parent', async (p: { name: string }, ctx) => {
  await ctx.enqueue(greet, p)
})
const loop = job('loop', async (_: undefined, ctx) => {
  await ctx.enqueue('loop')
})
const nap = job('nap', async () => {
  throw new Snooze('1h')
})

let t: TestKit
const begin = async (): Promise<TestKit> => (t = await testing({ jobs: { greet, flaky, parent, loop, nap } }))
afterEach(() => t.close())

describe('consume', () => {
  test('runs one job of the queue and gives its result', async () => {
    await begin()
    await t.mill.enqueueMany(greet, [{ name: 'Ada' }, { name: 'Bob' }])
    expect(await t.consume()).toBe('hello Ada')
    expect(await t.consume('default')).toBe('hello Bob')
  })

  test('throws the very error the handler threw, and records the retry', async () => {
    await begin()
    const handle = await t.mill.enqueue(flaky, { fails: 1 })
    await expect(t.consume('api')).rejects.toThrow('attempt 1')
    expect(await handle.get()).toMatchObject({ state: 'retrying', attempt: 1 })
  })

  test('of an empty queue throws and says what there is instead', async () => {
    await begin()
    await expect(t.consume('nowhere')).rejects.toMatchObject({ code: 'E_QUEUE_EMPTY' })
    await t.mill.schedule(greet, { name: 'later' }, '5m')
    await expect(t.consume()).rejects.toThrow('greet is scheduled, due in 5')
  })

  test('leaves other queues alone', async () => {
    await begin()
    await t.mill.enqueue(greet, { name: 'Ada' })
    await t.mill.enqueue(greet, { name: 'Bob' })
    await t.mill.schedule(greet, { name: 'later' }, '5m', { queue: 'mail' })
    await expect(t.consume('api')).rejects.toMatchObject({
      code: 'E_QUEUE_EMPTY',
      message: 'queue "api" has nothing to run; queue "mail" has 1 scheduled; queue "default" has 2 ready',
    })
  })
})

describe('forceRetry', () => {
  test('calls the handler of the last consumed job again and records nothing', async () => {
    await begin()
    const handle = await t.mill.enqueue(greet, { name: 'Ada' })
    await t.consume()
    const before = await handle.get()
    expect(await t.forceRetry()).toBe('hello Ada')
    expect(await handle.get()).toEqual(before)
  })

  test('before anything was consumed throws', async () => {
    await begin()
    await expect(t.forceRetry('api')).rejects.toMatchObject({ code: 'E_QUEUE_EMPTY' })
  })
})

describe('drain and advance', () => {
  test('run what is due, with what it enqueues, and nothing before its time', async () => {
    await begin()
    await t.mill.enqueue(parent, { name: 'Ada' })
    const later = await t.mill.schedule(greet, { name: 'later' }, '2h')
    expect(await t.drain()).toEqual({ ran: 2, done: 2, failed: 0, retrying: 0, snoozed: 0 })
    await t.advance('119m')
    expect((await t.drain()).ran).toBe(0)
    await t.advance('1m')
    expect((await t.drain()).done).toBe(1)
    expect((await later.get())?.startedAt?.getTime()).toBe(t.now.getTime())
  })

  test('walk a job through its retries to its end', async () => {
    await begin()
    const handle = await t.mill.enqueue(flaky, { fails: 9 })
    expect(await t.drain()).toMatchObject({ ran: 1, retrying: 1 })
    await t.advance('10s')
    expect(await t.drain()).toMatchObject({ ran: 1, retrying: 1 })
    await t.advance('20s')
    expect(await t.drain()).toMatchObject({ ran: 1, failed: 1 })
    await expect(handle.result()).rejects.toMatchObject({ code: 'E_JOB_FAILED' })
  })

  test('of a job that enqueues itself says so instead of running for ever', async () => {
    await begin()
    await t.mill.enqueue(loop)
    await expect(t.drain()).rejects.toThrow(/does loop enqueue itself/)
  })

  test('a snooze comes back after its time', async () => {
    await begin()
    const handle = await t.mill.enqueue(nap)
    expect(await t.drain()).toEqual({ ran: 1, done: 0, failed: 0, retrying: 0, snoozed: 1 })
    expect(await handle.get()).toMatchObject({ state: 'scheduled', attempt: 0 })
    await t.advance('1h')
    expect((await t.drain()).ran).toBe(1)
  })

  test('a wrong duration is refused', async () => {
    await begin()
    await expect(t.advance('soon' as never)).rejects.toThrow(/duration/)
  })
})

describe('the clock', () => {
  test('begins when the test says, by any instant', async () => {
    for (const now of [
      new Date('2026-02-03T04:05:06Z'),
      '2026-02-03T04:05:06Z',
      { epochMilliseconds: 1_770_091_506_000 },
    ] as const) {
      t = await testing({ jobs: [greet], now })
      expect(t.now).toEqual(new Date('2026-02-03T04:05:06Z'))
      await t.mill.enqueue(greet, { name: 'Ada' })
      expect((await t.expectEnqueued(greet)).createdAt).toEqual(t.now)
      await t.close()
    }
  })

  test('moves to an instant, and what came due on the way has run or is ready', async () => {
    await begin()
    const handle = await t.mill.schedule(greet, { name: 'Ada' }, '1h')
    await t.advanceTo('2030-01-01T12:59:59Z')
    expect((await handle.get())?.state).toBe('scheduled')
    await t.advanceTo(new Date('2030-01-01T13:00:00Z'))
    expect(t.now).toEqual(new Date('2030-01-01T13:00:00Z'))
    expect(await t.consume()).toBe('hello Ada')
  })

  test.each<[unknown, RegExp]>([
    ['2030-01-01T11:59:59Z', /the instant must not be before now, got 2030-01-01T11:59:59.000Z.*testing\(\{ now/],
    ['1h', /the instant must be an instant such as a Date/],
    [5, /a number could be seconds or milliseconds/],
  ])('is not moved to %j', async (instant, message) => {
    await begin()
    await expect(t.advanceTo(instant as never)).rejects.toThrow(message)
    expect(t.now).toEqual(new Date('2030-01-01T12:00:00Z'))
  })

  test('does not begin at what is no instant', async () => {
    await begin()
    await expect(testing({ now: '1h' as never, concurrency: 0 })).rejects.toThrow(
      /now must be an instant such as a Date.*concurrency/s,
    )
  })
})

describe('expectEnqueued', () => {
  test('finds a job by the fields named', async () => {
    await begin()
    await t.mill.enqueue(greet, { name: 'Ada' }, { labels: ['x'] })
    expect(await t.expectEnqueued(greet)).toMatchObject({ labels: ['x'], state: 'ready' })
    expect(await t.expectEnqueued('greet', { name: 'Ada' })).toMatchObject({ job: 'greet' })
  })

  test('reports the jobs that exist when the expected one does not', async () => {
    await begin()
    await expect(t.expectEnqueued(greet)).rejects.toThrow('nothing was enqueued')
    await t.mill.enqueue(greet, { name: 'Ada' })
    await expect(t.expectEnqueued(greet, { name: 'Bob' })).rejects.toThrow('greet {"name":"Ada"} (ready)')
  })
})

test('a handler that waits for the result of another job is refused, as on a mill', async () => {
  const waits = job('waits', async (_: undefined, ctx) => (await ctx.enqueue(greet, { name: 'Ada' })).result())
  t = await testing({ jobs: { greet, waits } })
  await t.mill.enqueue(waits)
  await expect(t.consume()).rejects.toMatchObject({ code: 'E_RESULT_IN_HANDLER' })
})

test('a running member adds to its own group after the seal, as on a mill', async () => {
  const member = job('member', async (p: { adds: boolean }, ctx) => {
    if (p.adds) await ctx.enqueue('member', { adds: false }, { group: 'tree' })
  })
  t = await testing({ jobs: { member } })
  const group = t.mill.group('tree')
  await t.mill.enqueue(member, { adds: true }, { group: 'tree' })
  await group.seal()
  await expect(t.mill.enqueue(member, { adds: false }, { group: 'tree' })).rejects.toMatchObject({
    code: 'E_GROUP_SEALED',
  })
  expect(await t.drain()).toMatchObject({ ran: 2, done: 2 })
  expect(await group.progress()).toMatchObject({ total: 2, done: 2, unfinished: 0 })
})

test('two jobs consumed at once run beside each other, each with its own result', async () => {
  const opened: (() => void)[] = []
  const gated = job('gated', async (p: { n: number }) => {
    await new Promise<void>((open) => opened.push(open))
    return p.n
  })
  t = await testing({ jobs: { gated } })
  await t.mill.enqueueMany(gated, [{ n: 1 }, { n: 2 }])
  const consumed = [t.consume(), t.consume()]
  while (opened.length < 2) await t.advance(0)
  for (const open of opened.toReversed()) open()
  expect(await Promise.all(consumed)).toEqual([1, 2])
})

test('a job whose handler never came back does not keep the next one from running', async () => {
  const deaf = job('deaf', { run: () => new Promise<void>(() => undefined), timeout: '1m', retry: { limit: 0 } })
  t = await testing({ jobs: { deaf, greet }, concurrency: 1, queues: { default: 1 } })
  await t.mill.enqueue(deaf)
  await t.mill.enqueue(greet, { name: 'Ada' })
  const consumed = t.consume()
  consumed.catch(() => undefined)
  await t.advance('2m')
  await expect(consumed).rejects.toMatchObject({ code: 'E_TIMEOUT' })
  expect(await t.consume()).toBe('hello Ada')
})

// A poll, a heartbeat or a look for requests each second would make 31 million steps of it.
test('a year of virtual time passes while a job runs', async () => {
  const slow = job('slow', { run: () => new Promise<void>(() => undefined), timeout: Infinity })
  t = await testing({ jobs: { slow } })
  const handle = await t.mill.enqueue(slow)
  t.consume().catch(() => undefined)
  await t.advance('365d')
  expect((await handle.get())?.state).toBe('running')
})

test('forceRetry calls a handler that enqueues, though its claim is over', async () => {
  await begin()
  await t.mill.enqueue(parent, { name: 'Ada' })
  await t.consume()
  await t.forceRetry()
  expect(await t.drain()).toMatchObject({ ran: 2, done: 2 })
})

test('start and stop change nothing', async () => {
  await begin()
  await t.mill.start()
  await t.mill.enqueue(greet, { name: 'Ada' })
  await t.mill.stop()
  expect(await t.consume()).toBe('hello Ada')
})

describe('cancel and pause under test', () => {
  const listening = job('listening', async (_: undefined, ctx) => {
    await new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('stopped'))))
  })
  const deaf = job('deaf', async () => new Promise(() => undefined))
  const resting = job('resting', async (_: undefined, ctx) => ctx.queue.pauseUntil('1h'))
  const mine = async (): Promise<TestKit> => (t = await testing({ jobs: { greet, flaky, listening, deaf, resting } }))

  test('a cancel aborts the signal of a running job', async () => {
    await mine()
    const handle = await t.mill.enqueue(listening)
    const consuming = t.consume()
    await t.advance(0)
    expect(await handle.cancel()).toBe(true)
    await expect(consuming).rejects.toThrow('stopped')
    expect(await handle.get()).toMatchObject({ state: 'cancelled', error: { message: 'stopped' } })
  })

  test('one that does not listen is cancelled without it after its grace, in virtual time', async () => {
    await mine()
    const handle = await t.mill.enqueue(deaf)
    const consuming = t.consume()
    consuming.catch(() => undefined)
    await t.advance(0)
    await handle.cancel()
    await t.advance('29s')
    expect((await handle.get())?.state).toBe('running')
    await t.advance('2s')
    await expect(consuming).rejects.toMatchObject({ code: 'E_JOB_CANCELLED' })
    expect((await handle.get())?.state).toBe('cancelled')
  })

  test('a paused job is left alone until it is resumed', async () => {
    await mine()
    const { id } = await t.mill.enqueue(greet, { name: 'Ada' })
    await t.mill.pause(id)
    await expect(t.consume()).rejects.toThrow('greet is paused')
    await t.mill.resume(id)
    expect(await t.consume()).toBe('hello Ada')
  })

  test('a running job that would be tried again pauses instead', async () => {
    const paused: boolean[] = []
    const failing = job('failing', async (_: undefined, ctx) => {
      paused.push(await t.mill.pause(ctx.id))
      throw new Error('again, please')
    })
    t = await testing({ jobs: { failing } })
    const { id } = await t.mill.enqueue(failing)
    expect(await t.drain()).toEqual({ ran: 1, done: 0, failed: 0, retrying: 0, snoozed: 0 })
    expect([paused, (await t.mill.get(id))?.state]).toEqual([[true], 'paused'])
  })

  test('a queue paused by its handler runs nothing before its time', async () => {
    await mine()
    await t.mill.enqueueMany(resting, [undefined, undefined])
    await t.consume()
    await expect(t.consume()).rejects.toThrow('it is paused until 2030-01-01T13:00:00.000Z')
    await t.advance('59m')
    expect((await t.drain()).ran).toBe(0)
    await t.advance('1m')
    expect((await t.drain()).ran).toBe(1)
  })
})

describe('time-outs in virtual time', () => {
  const listen = (_: undefined, ctx: { readonly signal: AbortSignal }): Promise<void> =>
    new Promise((_resolve, reject) => {
      ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error))
    })
  const retry = { limit: 0 }
  const short = job('short', { run: listen, timeout: '1m', retry })
  const plain = job('plain', { run: listen, retry })
  const deaf = job('deaf', { run: () => new Promise<void>(() => undefined), timeout: '1m', retry })
  const mine = async (): Promise<TestKit> => (t = await testing({ jobs: { short, plain, deaf } }))
  const consuming = (): Promise<unknown> => {
    const consumed = t.consume()
    consumed.catch(() => undefined)
    return consumed
  }

  test.each([
    ['its own', short, {}, 60_000],
    ['that of its enqueue', plain, { timeout: '10s' }, 10_000],
    ['the default', plain, {}, 30 * 60_000],
  ] as const)(
    'the signal of a handler is aborted when %s time is up, and not before',
    async (_, which, options, ms) => {
      await mine()
      const handle = await t.mill.enqueue(which, undefined, options)
      const consumed = consuming()
      await t.advance(ms - 1)
      expect((await handle.get())?.state).toBe('running')
      await t.advance(1)
      await expect(consumed).rejects.toMatchObject({ code: 'E_TIMEOUT' })
      expect((await handle.get())?.state).toBe('failed')
    },
  )

  test('one that does not listen is settled without it after its grace', async () => {
    await mine()
    const handle = await t.mill.enqueue(deaf)
    const consumed = consuming()
    await t.advance('89s')
    expect((await handle.get())?.state).toBe('running')
    await t.advance('1s')
    await expect(consumed).rejects.toMatchObject({ code: 'E_TIMEOUT' })
    expect(await handle.get()).toMatchObject({ state: 'failed', error: { name: 'TimeoutError' } })
  })

  test('a drain goes on to the next job, whose time begins when it does', async () => {
    await mine()
    await t.mill.enqueueMany(short, [undefined, undefined, undefined])
    const drained = t.drain()
    await t.advance('3m')
    expect(await drained).toEqual({ ran: 3, done: 0, failed: 3, retrying: 0, snoozed: 0 })
    expect(t.now).toEqual(new Date('2030-01-01T12:03:00.000Z'))
  })

  test('a step back in time is an option that is refused', async () => {
    await mine()
    await expect(t.advance(-1)).rejects.toMatchObject({ name: 'InvalidOptionsError', code: 'E_INVALID_OPTIONS' })
  })
})

describe('recurring jobs', () => {
  const report = job('report', async (_: undefined, ctx) => ctx.tick?.at.toISOString())

  test('come as time is moved, each at its tick', async () => {
    t = await testing({ jobs: [report] })
    await t.mill.recurring('nightly', report, undefined, '0 3 * * *', { timezone: 'Europe/Oslo' })
    await t.advance('3d')
    expect(await t.consume()).toBe('2030-01-02T02:00:00.000Z')
    expect(await t.drain()).toMatchObject({ done: 2 })
    const ticks = await t.mill.schedules.ticks('nightly')
    expect(ticks.map((tick) => [tick.outcome, tick.firedAt.getTime() - tick.at.getTime()])).toEqual([
      ['ran', 0],
      ['ran', 0],
      ['ran', 0],
    ])
  })

  test('stand in upcoming, run by hand, and stop when they are deleted', async () => {
    t = await testing({ jobs: [report] })
    await t.mill.recurring('hourly', report, undefined, { every: '1h' })
    expect((await t.mill.upcoming('2h')).map((each) => each.schedule)).toEqual(['hourly', 'hourly'])
    await t.mill.schedules.runNow('hourly')
    expect(await t.consume()).toBe(t.now.toISOString())
    await t.mill.deleteRecurring('hourly')
    await t.advance('1d')
    expect(await t.drain()).toMatchObject({ ran: 0 })
  })
})
