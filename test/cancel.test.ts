import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Abort, job, JobCancelledError, millrace, Snooze } from '../src/index.js'
import type { Context, Handle, JobRecord, Mill, MillOptions, State } from '../src/index.js'
import { freshStore, isShort, onPostgres } from './support/fresh-store.js'

/** X7 and X14 through the public API, in one process, on real files: cancel, pause and resume of jobs and of queues. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-cancel-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})
const fresh = (): string => freshStore(folder)

/** Polls are far apart, so that anything that happens soon is caused by a hint or a timer and not by a poll. */
async function open(options: MillOptions = {}): Promise<Mill> {
  const mill = await millrace({ store: fresh(), logger: false, poll: '60s', ...options })
  mills.push(mill)
  return mill
}
async function started(options: MillOptions = {}): Promise<Mill> {
  const mill = await open(options)
  await mill.start()
  return mill
}

function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open: (value: T) => void = () => undefined
  const opened = new Promise<T>((resolve) => (open = resolve))
  return { opened, open: (value) => open(value) }
}
const record = async (handle: Handle<unknown>): Promise<JobRecord> => (await handle.get()) as JobRecord
const becomes = (handle: Handle<unknown>, state: State): Promise<void> =>
  vi.waitFor(async () => expect((await record(handle)).state).toBe(state), { timeout: 15_000, interval: 5 })
const caught = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => Promise.reject(new Error('it resolved')),
    (error: Error) => error,
  )

/** Rejects with the signal's reason when it is aborted. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))

/** A job that reports when it has begun and then calls `then`. */
function working(then: (ctx: Context) => unknown, options: object = {}) {
  const begun = gate<Context>()
  let runs = 0
  const work = job('work', {
    run: async (_: undefined, ctx): Promise<unknown> => {
      runs += 1
      begun.open(ctx)
      return then(ctx)
    },
    retry: { limit: 5, backoff: { start: '50ms' } },
    ...options,
  })
  return { work, begun: begun.opened, runs: () => runs }
}

describe('cancel of a running job', () => {
  test('aborts its signal, and what it throws ends it as cancelled', async () => {
    const { work, begun, runs } = working((ctx) => aborted(ctx.signal))
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    const ctx = await begun
    const waiting = caught(handle.result())
    expect(await handle.cancel()).toBe(true)
    expect(await waiting).toMatchObject({ code: 'E_JOB_CANCELLED', jobId: handle.id })
    expect(ctx.signal.reason).toBeInstanceOf(JobCancelledError)
    expect(ctx.signal.reason).toMatchObject({ code: 'E_JOB_CANCELLED', reason: 'cancel() was called' })
    const ended = await record(handle)
    expect(ended).toMatchObject({ state: 'cancelled', reason: 'cancel() was called', attempt: 1, error: undefined })
    expect(ended.attempts.map((each) => each.exit)).toEqual(['cancelled'])
    expect([runs(), await handle.cancel()]).toEqual([1, false])
  })

  test('keeps an error other than the cancel itself', async () => {
    const { work, begun } = working((ctx) =>
      aborted(ctx.signal).catch(() => Promise.reject(new Error('half of it was sent'))),
    )
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    await begun
    await handle.cancel()
    await becomes(handle, 'cancelled')
    expect((await record(handle)).error).toMatchObject({ name: 'Error', message: 'half of it was sent' })
  })

  test.each([
    ['an Abort', () => new Abort('no')],
    ['a Snooze', () => new Snooze('1h')],
    ['nothing at all', () => undefined],
  ])('ends it whatever it throws then: %s', async (_, make) => {
    const { work, begun, runs } = working((ctx) => aborted(ctx.signal).catch(() => Promise.reject(make() as Error)))
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    await begun
    await handle.cancel()
    await becomes(handle, 'cancelled')
    expect(runs()).toBe(1)
  })

  test('leaves it done when it returns anyway, or throws what is treated as done', async () => {
    for (const options of [{}, { treatAsDone: (error: unknown) => error instanceof RangeError }]) {
      const { work, begun } = working(async (ctx) => {
        await aborted(ctx.signal).catch(() => undefined)
        if ('treatAsDone' in options) throw new RangeError('it was done before')
        return 'finished'
      }, options)
      const mill = await started({ jobs: [work] })
      const handle = await mill.enqueue(work)
      await begun
      expect(await handle.cancel()).toBe(true)
      expect(await handle.result()).toBe('treatAsDone' in options ? undefined : 'finished')
      expect((await record(handle)).state).toBe('done')
    }
  })

  test('a second time changes nothing', async () => {
    const told: unknown[] = []
    const release = gate()
    const { work, begun } = working(async (ctx) => {
      ctx.signal.addEventListener('abort', () => told.push(ctx.signal.reason))
      await release.opened
    })
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    await begun
    expect([await handle.cancel(), await mill.cancel(handle.id)]).toEqual([true, true])
    await vi.waitFor(() => expect(told).toHaveLength(1), 15_000)
    release.open()
    await handle.result()
    expect(told).toHaveLength(1)
  })

  test('is applied by a stop that gives it back', async () => {
    const { work, begun, runs } = working(() => new Promise(() => undefined))
    const store = fresh()
    const mill = await started({ store, jobs: [work] })
    const handle = await mill.enqueue(work)
    await begun
    await handle.cancel()
    await mill.stop({ deadline: 0 })
    expect(await record(handle)).toMatchObject({ state: 'cancelled', reason: 'cancel() was called' })
    await mill.start()
    expect([runs(), (await record(handle)).state]).toEqual([1, 'cancelled'])
  })

  test('is kept for as long as cancelled jobs are', async () => {
    const { work, begun } = working((ctx) => aborted(ctx.signal), { keep: { cancelled: 0 } })
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    await begun
    await handle.cancel()
    await vi.waitFor(async () => expect(await handle.get()).toBeUndefined(), 15_000)
  })

  test('frees its key, and a retry by hand runs it again', async () => {
    let runs = 0
    const begun = gate()
    const work = job('work', async (_: undefined, ctx) => {
      runs += 1
      begun.open()
      if (runs === 1) await aborted(ctx.signal)
      return runs
    })
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work, undefined, { key: 'k' })
    await begun.opened
    await handle.cancel()
    await becomes(handle, 'cancelled')
    expect(await mill.retry(handle.id)).toBe(true)
    expect(await handle.result()).toBe(2)
  })

  test('is logged once when it is requested and once when it is applied', async () => {
    const lines: string[] = []
    const write = (_: object, message: string): void => void lines.push(message)
    const { work, begun } = working((ctx) => aborted(ctx.signal))
    const mill = await started({
      jobs: [work],
      logger: { debug: () => undefined, info: write, warn: write, error: write },
    })
    const handle = await mill.enqueue(work)
    await begun
    await handle.cancel()
    await becomes(handle, 'cancelled')
    await mill.stop()
    // A busy machine adds lines about the loop of the worker.
    expect(lines.filter((line) => line.startsWith('cancel'))).toEqual([
      'cancelling work (it runs)',
      'cancelled work (cancel() was called)',
    ])
  })
})

describe('pause of a job', () => {
  test('keeps a waiting job from beginning, until it is resumed', async () => {
    const ran: number[] = []
    const work = job('work', async (n: number) => void ran.push(n))
    const mill = await open({ jobs: [work] })
    const [first, second] = await mill.enqueueMany(work, [1, 2])
    expect([await mill.pause(first!.id), await mill.pause(first!.id)]).toEqual([true, true])
    expect(await record(first!)).toMatchObject({ state: 'paused', reason: 'pause() was called' })
    await mill.start()
    await second!.result()
    expect(ran).toEqual([2])
    expect(await mill.resume(first!.id)).toBe(true)
    await first!.result()
    expect(ran).toEqual([2, 1])
    expect((await record(first!)).attempts.map((each) => each.exit)).toEqual(['paused', 'resumed', undefined])
    expect([await mill.pause(first!.id), await mill.resume(first!.id)]).toEqual([false, false])
  })

  test('keeps its time: a job that came due meanwhile is ready, one that did not keeps waiting', async () => {
    const mill = await open({ jobs: [job('work', () => 1)] })
    const [soon, later] = [await mill.schedule('work', 0, 1), await mill.schedule('work', 0, '1h')]
    for (const { id } of [soon, later]) await mill.pause(id)
    const dueAt = (await record(later)).dueAt
    await vi.waitFor(async () => expect((await record(soon)).dueAt.getTime()).toBeLessThan(Date.now()), 15_000)
    for (const { id } of [soon, later]) await mill.resume(id)
    expect([(await record(soon)).state, (await record(later)).state]).toEqual(['ready', 'scheduled'])
    expect((await record(later)).dueAt).toEqual(dueAt)
  })

  test('of a running job takes effect when it would be retried', async () => {
    const release = gate()
    const { work, begun, runs } = working(async () => {
      await release.opened
      throw new Error('the first attempt fails')
    })
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    const ctx = await begun
    expect([await mill.pause(handle.id), await mill.pause(handle.id)]).toEqual([true, true])
    expect(ctx.signal.aborted).toBe(false)
    release.open()
    await becomes(handle, 'paused')
    expect(await record(handle)).toMatchObject({ attempt: 1, error: { message: 'the first attempt fails' } })
    expect(runs()).toBe(1)
    expect(await mill.resume(handle.id)).toBe(true)
    await vi.waitFor(() => expect(runs()).toBe(2), { timeout: 15_000 })
  })

  test('of a running job is dropped when it succeeds, and can be withdrawn before', async () => {
    for (const withdraw of [false, true]) {
      const release = gate()
      const { work, begun, runs } = working(async (ctx) => {
        await release.opened
        if (withdraw && ctx.attempt === 1) throw new Error('again')
        return ctx.attempt
      })
      const mill = await started({ jobs: [work] })
      const handle = await mill.enqueue(work)
      await begun
      expect(await mill.pause(handle.id)).toBe(true)
      if (withdraw) expect([await mill.resume(handle.id), await mill.resume(handle.id)]).toEqual([true, false])
      release.open()
      expect(await handle.result()).toBe(withdraw ? 2 : 1)
      expect(runs()).toBe(withdraw ? 2 : 1)
    }
  })

  test('of a cancelled job is false, and so is a resume', async () => {
    const release = gate()
    const { work, begun } = working(() => release.opened)
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work)
    await begun
    await handle.cancel()
    expect([await mill.pause(handle.id), await mill.resume(handle.id)]).toEqual([false, false])
    release.open()
    await handle.result()
  })
})

describe('a paused queue', () => {
  test('begins nothing, lets running jobs finish, accepts new jobs, and begins at once when it is resumed', async () => {
    const release = gate()
    const ran: string[] = []
    const begun = gate()
    const work = job('work', async (name: string) => {
      begun.open()
      ran.push(name)
      if (name === 'running') await release.opened
    })
    const mill = await started({ jobs: [work] })
    const running = await mill.enqueue(work, 'running', { queue: 'mail' })
    await begun.opened
    const mail = mill.queue('mail')
    await mail.pause()
    expect(await mail.get()).toMatchObject({
      name: 'mail',
      paused: true,
      pausedAt: expect.any(Date) as Date,
      pausedUntil: undefined,
    })
    const waiting = await mill.enqueue(work, 'waiting', { queue: 'mail' })
    await (await mill.enqueue(work, 'elsewhere')).result()
    release.open()
    await running.result()
    expect([ran, (await record(waiting)).state]).toEqual([['running', 'elsewhere'], 'ready'])
    await mail.resume()
    await waiting.result({ timeout: '20s' })
    expect(await mail.get()).toMatchObject({ name: 'mail', paused: false, pausedAt: undefined })
  })

  test('resumes by itself at its time, without a poll and not before', async () => {
    const work = job('work', async () => Date.now())
    const mill = await started({ jobs: [work] })
    const until = new Date(Date.now() + 1_500)
    await mill.queue('default').pauseUntil(until)
    expect((await mill.queue('default').get()).pausedUntil).toEqual(until)
    const handle = await mill.enqueue(work)
    const began = (await handle.result({ timeout: '10s' })) as number
    expect(began).toBeGreaterThanOrEqual(until.getTime())
    expect(began - until.getTime()).toBeLessThan(10_000)
  })

  test('can be paused by a handler, which only lengthens a pause', async () => {
    const work = job('work', async (when: string, ctx) => {
      await ctx.queue.pauseUntil(when as '1h')
      return ctx.queue.name
    })
    const mill = await started({ jobs: [work], concurrency: 1 })
    const [first, second] = await mill.enqueueMany(work, ['1h', '2h'], { queue: 'api' })
    expect(await first!.result()).toBe('api')
    const { paused, pausedUntil } = await mill.queue('api').get()
    expect([paused, (await record(second!)).state]).toEqual([true, 'ready'])
    const third = await mill.enqueue(work, '1s', { queue: 'other' })
    await third.result()
    await mill.queue('other').pause()
    await mill.queue('other').resume()
    expect((await mill.queue('api').get()).pausedUntil).toEqual(pausedUntil)
    await mill.queue('api').pauseUntil(0)
    await second!.result()
  })

  test('refuses an invalid time from a handler, as an error of that handler', async () => {
    const work = job('work', async (_: undefined, ctx) => ctx.queue.pauseUntil('soon' as never))
    const mill = await started({ jobs: [work] })
    const failed = await caught((await mill.enqueue(work, undefined, { retry: { limit: 0 } })).result())
    expect(failed.message).toMatch(/ctx\.queue\.pauseUntil\(\): when must be a duration/)
    expect((await mill.queue('default').get()).paused).toBe(false)
  })

  test('stops a fast stream of jobs: none begins after the call has resolved, and none is lost or run twice', async () => {
    let paused = false
    let late = 0
    const ran = new Map<number, number>()
    const fifth = gate()
    const work = job('work', async (n: number) => {
      if (paused) late += 1
      ran.set(n, (ran.get(n) ?? 0) + 1)
      if (ran.size % 500 === 0) fifth.open()
      await turn()
    })
    const mill = await open({ jobs: [work], concurrency: 5 })
    // Over a network a pause takes longer to resolve, and the stream must not end meanwhile.
    const [count, rounds] = isShort ? [6_000, 3] : [onPostgres ? 12_000 : 4_000, 6]
    await mill.enqueueMany(
      work,
      Array.from({ length: count }, (_, n) => n),
    )
    await mill.start()
    await fifth.opened
    for (let round = 0; round < rounds; round += 1) {
      await mill.queue('default').pause()
      paused = true
      const begun = ran.size
      expect(begun).toBeLessThan(count)
      await mill.enqueue(work, count + round)
      // Held jobs were given back once nothing is claimed any more, and none was charged.
      await vi.waitFor(async () => expect(await claimed(mill)).toBe(0), { timeout: 15_000 })
      expect(ran.size).toBe(begun)
      paused = false
      await mill.queue('default').resume()
      await vi.waitFor(() => expect(ran.size).toBeGreaterThan(begun + 200), { timeout: 15_000 })
    }
    await vi.waitFor(() => expect(ran.size).toBe(count + rounds), { timeout: 20_000 })
    expect(late).toBe(0)
    expect([...ran.values()].every((times) => times === 1)).toBe(true)
  })

  test('a job that is paused in the look-ahead does not begin after the call has resolved', async () => {
    const paused = new Set<number>()
    const late: number[] = []
    let done = 0
    const work = job('work', async (n: number) => {
      if (paused.has(n)) late.push(n)
      done += 1
      await turn()
    })
    const mill = await open({ jobs: [work], concurrency: 2 })
    const numbers = Array.from({ length: 2_000 }, (_, n) => n)
    await mill.start()
    let handles: Awaited<ReturnType<typeof mill.enqueueMany>> = []
    // They may all have run before the first call resolves: then the test proves nothing, and it tries again.
    for (let tries = 0; tries < 10 && paused.size === 0; tries += 1) {
      const before = done
      handles = await mill.enqueueMany(work, numbers)
      await vi.waitFor(() => expect(done).toBeGreaterThan(before + 200), { interval: 1, timeout: 15_000 })
      for (let n = 1_999; n > 300; n -= 97) if (await mill.pause(handles[n]!.id)) paused.add(n)
      const ended = before + numbers.length - paused.size
      await vi.waitFor(() => expect(done).toBeGreaterThanOrEqual(ended), { timeout: 30_000 })
    }
    expect(paused.size).toBeGreaterThan(0)
    expect(late).toEqual([])
    for (const n of paused) expect((await record(handles[n]!)).state).toBe('paused')
  })
})

/** A turn of the loop: without one, all held jobs begin and end before any other code runs. */
const turn = (): Promise<void> => new Promise((next) => setImmediate(next))

/** How many jobs of a mill are running now. */
async function claimed(mill: Mill): Promise<number> {
  let count = 0
  for await (const _ of mill.find({ state: 'running' })) count += 1
  return count
}

test('a job with a requested pause that settles in a transaction is done', async () => {
  const release = gate()
  const { work, begun } = working(async (ctx) => {
    await release.opened
    return ctx.transaction(() => 'settled')
  })
  const store = fresh()
  const mill = await started({ store, jobs: [work] })
  const handle = await mill.enqueue(work)
  await begun
  expect(await mill.pause(handle.id)).toBe(true)
  release.open()
  expect(await handle.result()).toBe('settled')
  expect((await record(handle)).state).toBe('done')
  expect([await mill.pause(handle.id), await mill.cancel(handle.id)]).toEqual([false, false])
})
