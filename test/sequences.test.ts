import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test, vi } from 'vitest'
import { Abort, Snooze, job, LeaseLostError } from '../src/index.js'
import type { Context, Sequence } from '../src/index.js'
import { describeAboveStore } from './support/above-store.js'
import { freshStore } from './support/fresh-store.js'
import { testing } from './support/testing.js'
import { openedMills } from './support/opened-mills.js'

/** G2 to G6 through the public API, on either store. The numbers are those of the acceptance tests of long work. */

const { folder, open } = openedMills('sequences', { poll: '100ms' })

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const wait = (ms: number): Promise<void> => new Promise((next) => void setTimeout(next, ms))
const indexes = async (sequence: Sequence): Promise<number[]> =>
  (await sequence.output({ limit: 1_000 })).map(({ index }) => index)
const reaches = (sequence: Sequence, wanted: object): Promise<void> =>
  vi.waitFor(async () => expect(await sequence.progress()).toMatchObject(wanted), { timeout: 20_000, interval: 10 })

/** A handler that waits at each item until the test lets it go on. */
class Gate {
  readonly begun: number[] = []
  #go: () => void = () => undefined
  #opened = false

  readonly pass = async (n: number): Promise<number> => {
    this.begun.push(n)
    if (!this.#opened) await new Promise<void>((go) => (this.#go = go))
    return n
  }
  async reached(count: number): Promise<void> {
    await vi.waitFor(() => expect(this.begun.length).toBe(count), { timeout: 20_000, interval: 5 })
  }
  letOne(): void {
    this.#go()
  }
  open(): void {
    this.#opened = true
    this.#go()
  }
}

describe('A sequence', () => {
  test('runs its items in order, one at a time, and keeps their results, lines and times', async () => {
    let running = 0
    const seen: unknown[] = []
    const square = job('square', async (n: number, ctx: Context) => {
      running += 1
      expect(running).toBe(1)
      const { sequence } = ctx
      seen.push([n, sequence?.id === ctx.id, sequence?.index, sequence?.total, sequence?.previous, ctx.attempt])
      ctx.log(`n is ${n}`)
      await wait(1)
      running -= 1
      return n * n
    })
    const mill = await open({ jobs: [square] })
    const sequence = await mill.sequence(square, numbers(5))
    expect(sequence.isNew).toBe(true)
    expect(await sequence.progress()).toEqual({ state: 'running', done: 0, total: 5 })
    await mill.start()
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 5, total: 5 })
    expect(seen).toEqual(numbers(5).map((n) => [n, true, n, 5, n === 0 ? undefined : (n - 1) ** 2, 1]))
    const output = await sequence.output()
    expect(output.map(({ index, result, log, attempt }) => [index, result, log, attempt])).toEqual(
      numbers(5).map((n) => [n, n * n, [`n is ${n}`], 1]),
    )
    for (const { startedAt, endedAt } of output) expect(endedAt.getTime()).toBeGreaterThanOrEqual(startedAt.getTime())
    expect(await sequence.progress()).toEqual({ state: 'done', done: 5, total: 5 })
    expect((await mill.sequence(sequence.id).output({ from: 3, limit: 1 })).map(({ index }) => index)).toEqual([3])
    expect(await mill.get(sequence.id)).toMatchObject({
      state: 'done',
      result: { done: 5, total: 5 },
      payload: undefined,
    })
  })

  test('of nothing is done at once, and one that is not to be started waits for start()', async () => {
    const mill = await open({ jobs: [echo] })
    await mill.start()
    const none = await mill.sequence(echo, [], { start: false })
    expect([await none.progress(), await none.result()]).toEqual([
      { state: 'done', done: 0, total: 0 },
      { done: 0, total: 0 },
    ])
    const later = await mill.sequence(echo, numbers(3), { start: false })
    expect(await later.progress()).toEqual({ state: 'waiting', done: 0, total: 3 })
    expect([await later.pause(), await later.resume(), await mill.resume(later.id)]).toEqual([false, false, false])
    await wait(150)
    expect(await later.progress()).toMatchObject({ state: 'waiting', done: 0 })
    expect([await later.start(), await later.start()]).toEqual([true, false])
    expect(await later.result({ timeout: '20s' })).toEqual({ done: 3, total: 3 })
  })

  test('is found by its key while it is unfinished, and by the newest after that', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.sequence(echo, numbers(2), { key: 'a', start: false })
    const again = await mill.sequence(echo, numbers(9), { key: 'a' })
    expect([again.id, again.isNew, await again.progress()]).toEqual([
      first.id,
      false,
      { state: 'waiting', done: 0, total: 2 },
    ])
    const found = mill.sequence([echo, 'a'])
    expect(found.id).toBe('')
    expect([await found.start(), found.id]).toEqual([true, first.id])
    await mill.start()
    await first.result({ timeout: '20s' })
    const next = await mill.sequence(echo, numbers(1), { key: 'a' })
    expect([next.isNew, next.id === first.id]).toEqual([true, false])
    await expect(mill.sequence(echo, [1], { key: 'a', onDuplicate: 'reject' })).rejects.toMatchObject({
      code: 'E_DUPLICATE_KEY',
    })
    await expect(mill.sequence([echo, 'none']).progress()).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    expect(await mill.sequence([echo, 'none']).pause()).toBe(false)
  })
})

const echo = job('echo', async (n: number) => n)

describe('56: every verb, from another process', () => {
  test('of one that runs is done between its items', async () => {
    const gate = new Gate()
    const [store, work] = [freshStore(folder), job('work', gate.pass)]
    const [worker, app] = [await open({ jobs: [work] }, store), await open({ jobs: [work] }, store)]
    await worker.start()
    const { id } = await worker.sequence(work, numbers(9))
    const sequence = app.sequence(id)
    await gate.reached(1)
    expect(await sequence.progress()).toEqual({ state: 'running', done: 0, total: 9 })
    expect([await sequence.start(), await sequence.resume()]).toEqual([false, false])
    expect([await sequence.pause(), await sequence.pause()]).toEqual([true, false])
    expect(await sequence.progress()).toEqual({ state: 'running', requested: 'pause', done: 0, total: 9 })
    expect([await sequence.resume(), (await sequence.progress()).requested]).toEqual([true, undefined])
    expect(await sequence.pause()).toBe(true)
    gate.letOne()
    await reaches(sequence, { state: 'paused', done: 1 })
    expect([await sequence.start(), await sequence.pause(), gate.begun]).toEqual([false, false, [0]])
    expect(await sequence.resume()).toBe(true)
    await gate.reached(2)
    expect([await sequence.cancel(), await sequence.cancel()]).toEqual([true, true])
    expect(await sequence.progress()).toMatchObject({ state: 'running', requested: 'cancel', done: 1 })
    expect([await sequence.pause(), await sequence.resume()]).toEqual([false, false])
    gate.letOne()
    await reaches(sequence, { state: 'cancelled', done: 2 })
    for (const verb of ['start', 'pause', 'resume', 'cancel'] as const) expect(await sequence[verb](), verb).toBe(false)
    expect(await sequence.reset()).toBe(true)
    expect(await sequence.progress()).toEqual({ state: 'waiting', done: 0, total: 9 })
    gate.open()
    await sequence.start()
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 9, total: 9 })
    expect([await indexes(sequence), await sequence.reset()]).toEqual([numbers(9), true])
    expect([await indexes(sequence), await sequence.progress()]).toEqual([[], { state: 'waiting', done: 0, total: 9 }])
  })

  test('is the same through the commands of a job', async () => {
    const gate = new Gate()
    const mill = await open({ jobs: [job('work', gate.pass)] })
    await mill.start()
    const sequence = await mill.sequence('work', numbers(3), { key: 'k' })
    await gate.reached(1)
    expect([await mill.pause(sequence.id), await mill.pause(sequence.id)]).toEqual([true, false])
    expect(await mill.delete(sequence.id)).toBe(false)
    gate.letOne()
    await reaches(sequence, { state: 'paused', done: 1 })
    expect([await mill.retry(sequence.id), await mill.resume(sequence.id)]).toEqual([false, true])
    await gate.reached(2)
    expect(await mill.handle(sequence.id).cancel()).toBe(true)
    gate.open()
    await reaches(sequence, { state: 'cancelled' })
    expect([await mill.retry(sequence.id), await mill.resume(sequence.id)]).toEqual([false, false])
    expect(await mill.delete(sequence.id)).toBe(true)
    await expect(sequence.progress()).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    await expect(sequence.output()).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    expect(await sequence.reset()).toBe(false)
  })

  test('edit changes its place and labels alone', async () => {
    const mill = await open({ jobs: [echo] })
    const { id } = await mill.sequence(echo, numbers(2), { start: false })
    await expect(mill.edit(id, { payload: 1, in: '1h' })).rejects.toThrow(/payload[^]*only priority, queue and labels/)
    expect(await mill.edit(id, { priority: 3, queue: 'slow', labels: ['a'] })).toBe(true)
    expect(await mill.get(id)).toMatchObject({ priority: 3, queue: 'slow', labels: ['a'], state: 'paused' })
    await mill.sequence(id).start()
    await mill.start()
    expect(await mill.sequence(id).result({ timeout: '20s' })).toEqual({ done: 2, total: 2 })
  })
})

test('57: progress is never ahead of the output and never goes back', { timeout: 60_000 }, async () => {
  const mill = await open({ jobs: [echo] })
  const sequence = await mill.sequence(echo, numbers(400))
  await mill.start()
  let before = 0
  let samples = 0
  for (let state = 'running'; state === 'running'; samples += 1) {
    // Reads of SQLite take no turn of the event loop: the worker needs one.
    await wait(0)
    const progress = await sequence.progress()
    const recorded = (await sequence.output({ from: Math.max(0, progress.done - 1), limit: 1 })).length
    if (progress.done > 0) expect(recorded).toBe(1)
    expect(progress.done).toBeGreaterThanOrEqual(before)
    ;({ done: before, state } = progress)
  }
  expect([before, await indexes(sequence)]).toEqual([400, numbers(400)])
  expect(samples).toBeGreaterThan(3)
})

test('LW74: when pause() has resolved, no item begins until resume()', { timeout: 60_000 }, async () => {
  const store = freshStore(folder)
  const begun: number[] = []
  const quick = job('quick', (n: number) => void begun.push(n))
  const [worker, app] = [await open({ jobs: [quick] }, store), await open({ jobs: [quick] }, store)]
  const sequence = app.sequence((await worker.sequence(quick, numbers(5_000))).id)
  await worker.start()
  await vi.waitFor(() => expect(begun.length).toBeGreaterThan(0), { timeout: 20_000 })
  for (let round = 0; round < 5; round += 1) {
    expect(await sequence.pause()).toBe(true)
    const at = begun.length
    await wait(60)
    expect(begun.length).toBe(at)
    await reaches(sequence, { state: 'paused', done: at })
    expect(await sequence.resume()).toBe(true)
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(at), { timeout: 20_000 })
  }
  await sequence.cancel()
  await reaches(sequence, { state: 'cancelled' })
  expect(begun).toEqual(numbers(begun.length))
})

describe('59: an item that fails', () => {
  test('for good stops the sequence there, with its error; resume runs it again with all its retries', async () => {
    let broken = true
    const attempts: number[] = []
    const fragile = job('fragile', {
      run: async (n: number, ctx: Context) => {
        if (n === 7) attempts.push(ctx.attempt)
        if (n === 7 && broken) throw Object.assign(new Error('no such contact'), { code: 'E_CONTACT' })
        return n
      },
      retry: { limit: 2, backoff: { start: '1ms', factor: 1, max: '1ms' }, jitter: 0 },
    })
    const mill = await open({ jobs: [fragile] })
    await mill.start()
    const sequence = await mill.sequence(fragile, numbers(10), { key: 'k' })
    await reaches(sequence, { state: 'failed', done: 7, error: { message: 'no such contact', index: 7 } })
    expect([attempts, await indexes(sequence)]).toEqual([[1, 2, 3], numbers(7)])
    await expect(sequence.result()).rejects.toMatchObject({ code: 'E_JOB_FAILED' })
    const other = await mill.sequence(fragile, [1], { key: 'k', start: false })
    await expect(sequence.resume()).rejects.toMatchObject({ code: 'E_DUPLICATE_KEY' })
    await expect(mill.retry(sequence.id)).rejects.toMatchObject({ code: 'E_DUPLICATE_KEY' })
    await other.cancel()
    broken = false
    expect(await mill.retry(sequence.id)).toBe(true)
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 10, total: 10 })
    expect([attempts, await indexes(sequence)]).toEqual([[1, 2, 3, 1], numbers(10)])
    expect((await sequence.output({ from: 7, limit: 1 }))[0]?.attempt).toBe(1)
  })
})

describeAboveStore('Each item runs as a job would', () => {
  test('Abort fails it at once, Snooze runs it later uncounted, retries wait in virtual time', async () => {
    const calls: [number, number][] = []
    const moody = job('moody', {
      run: async (n: number, ctx: Context) => {
        calls.push([n, ctx.attempt])
        const times = calls.filter(([m]) => m === n).length
        if (n === 1 && times === 1) throw new Snooze('1h')
        if (n === 2 && times < 3) throw new Error('not yet')
        if (n === 3) throw new Abort('never')
        return n
      },
      retry: { limit: 5, backoff: { start: '10m', factor: 1, max: '10m' }, jitter: 0 },
    })
    const t = await testing({ jobs: [moody] })
    const sequence = await t.mill.sequence(moody, numbers(5))
    await t.drain()
    for (let i = 0; i < 4; i += 1) {
      await t.advance('1h')
      await t.drain()
    }
    expect(calls).toEqual([
      [0, 1],
      [1, 1],
      [1, 1],
      [2, 1],
      [2, 2],
      [2, 3],
      [3, 1],
    ])
    expect(await sequence.progress()).toMatchObject({ state: 'failed', done: 3, error: { index: 3, message: 'never' } })
    expect((await sequence.output()).map(({ index, attempt }) => [index, attempt])).toEqual([
      [0, 1],
      [1, 1],
      [2, 3],
    ])
    await t.close()
  })

  test('treatAsDone counts it, and a result that cannot be kept says why', async () => {
    const odd = job('odd', {
      run: async (n: number) => {
        if (n === 0) throw new Error('already archived')
        return n === 1 ? (): void => undefined : n
      },
      treatAsDone: (error) => (error as Error).message.startsWith('already'),
    })
    const t = await testing({ jobs: [odd] })
    const sequence = await t.mill.sequence(odd, numbers(3))
    await t.drain()
    expect(await sequence.progress()).toEqual({ state: 'done', done: 3, total: 3 })
    expect((await sequence.output()).map(({ result, reason }) => [result, reason])).toEqual([
      [undefined, expect.stringContaining('treated as done: already archived')],
      [undefined, expect.stringContaining('the result is not kept')],
      [2, undefined],
    ])
    await t.close()
  })

  test('it can pause its own sequence and its queue, in virtual time too', async () => {
    const pausing = job('pausing', async (n: number, ctx: Context) => {
      if (n === 1) expect(await t.mill.sequence(ctx.id).pause()).toBe(true)
      if (n === 3) await ctx.queue.pauseUntil('1h')
      return n
    })
    const t = await testing({ jobs: [pausing] })
    const sequence = await t.mill.sequence(pausing, numbers(6))
    await t.drain()
    expect(await sequence.progress()).toEqual({ state: 'paused', done: 2, total: 6 })
    await sequence.resume()
    await t.drain()
    expect(await sequence.progress()).toEqual({ state: 'running', done: 4, total: 6 })
    await t.advance('2h')
    await t.drain()
    expect(await sequence.progress()).toEqual({ state: 'done', done: 6, total: 6 })
    await t.close()
  })

  test('a timeout aborts it, and its attempt is counted', async () => {
    const t = await testing({ jobs: [slow] })
    slowBegan = false
    const sequence = await t.mill.sequence(slow, [0, 1], {
      timeout: '1s',
      retry: { limit: 1, backoff: { start: '1ms' } },
    })
    const running = t.drain()
    await vi.waitFor(() => expect(slowBegan).toBe(true), 20_000)
    await t.advance('2s')
    await running
    await t.advance('1h')
    await t.drain()
    expect(await sequence.progress()).toMatchObject({ state: 'done', done: 2 })
    expect((await sequence.output()).map(({ attempt }) => attempt)).toEqual([2, 1])
    await t.close()
  })

  test('a payload that no longer fits parks it, and resume continues there', async () => {
    let accepts = true
    const strict = job('strict', { run: async (n: number) => n, accepts: (n: number) => accepts || n !== 1 } as never)
    const mill = await open({ jobs: [strict] })
    const sequence = await mill.sequence(strict, numbers(3) as never[])
    accepts = false
    await mill.start()
    await reaches(sequence, { state: 'failed', done: 1, error: { index: 1, message: expect.stringContaining('fits') } })
    expect((await mill.get(sequence.id))?.state).toBe('parked')
    expect([await sequence.cancel(), await sequence.pause()]).toEqual([false, false])
    accepts = true
    expect(await sequence.resume()).toBe(true)
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 3, total: 3 })
  })

  test('its report is shown while it runs, and that of the item before is not', async () => {
    const gate = new Gate()
    const report = job('report', async (n: number, ctx: Context) => {
      if (n === 0) ctx.progress(3, 4)
      return gate.pass(n)
    })
    const mill = await open({ jobs: [report] })
    const sequence = await mill.sequence(report, [0, 1])
    await mill.start()
    await reaches(sequence, { item: { done: 3, total: 4 } })
    gate.letOne()
    await gate.reached(2)
    expect(await sequence.progress()).toEqual({ state: 'running', done: 1, total: 2 })
    gate.open()
    await sequence.result({ timeout: '20s' })
  })

  test('LW78: the lines of the item in hand are shown with its report, and the lines of the item before are not', async () => {
    const gate = new Gate()
    const tell = job('tell', async (n: number, ctx: Context) => {
      if (n === 0) for (let line = 0; line < 25; line += 1) ctx.log(`line ${line}`)
      return gate.pass(n)
    })
    const mill = await open({ jobs: [tell] })
    const sequence = await mill.sequence(tell, [0, 1])
    await mill.start()
    await reaches(sequence, { item: { done: 0, log: numbers(20).map((line) => `line ${line + 5}`) } })
    gate.letOne()
    await gate.reached(2)
    expect(await sequence.progress()).toEqual({ state: 'running', done: 1, total: 2 })
    expect((await sequence.output())[0]?.log).toHaveLength(25)
    gate.open()
    await sequence.result({ timeout: '20s' })
  })

  test('hooks and the captured context hold for it', async () => {
    const tenant = new AsyncLocalStorage<string>()
    const events: string[] = []
    const noted = job('noted', async (n: number) => `${n} ${tenant.getStore()}`)
    const mill = await open({
      jobs: [noted],
      capture: { tenant },
      hooks: {
        enqueue: (call, next) => {
          events.push(`${call.verb} ${JSON.stringify(call.items.map(({ payload }) => payload))}`)
          return next({ labels: ['hooked'] })
        },
        start: async (ctx, next) => {
          events.push(`start ${ctx.sequence?.index}`)
          return next()
        },
        settle: (attempt, end) => void events.push(`settle ${attempt.id === sequence.id} ${end.state}`),
      },
    })
    const sequence: Sequence = await tenant.run('acme', () => mill.sequence(noted, numbers(3)))
    await mill.start()
    await sequence.result({ timeout: '20s' })
    expect((await sequence.output()).map(({ result }) => result)).toEqual(['0 acme', '1 acme', '2 acme'])
    await vi.waitFor(() => expect(events.at(-1)).toBe('settle true done'))
    expect(events).toEqual(['sequence [[0,1,2]]', 'start 0', 'start 1', 'start 2', 'settle true done'])
    expect((await mill.get(sequence.id))?.labels).toEqual(['hooked'])
  })

  test('ctx.transaction settles the item: its record and the handler’s writes are one commit', async () => {
    const seen: unknown[] = []
    const bank = job('bank', async (n: number, ctx: Context) => {
      seen.push([n, ctx.sequence?.previous])
      if (n === 1 && seen.length < 3)
        await ctx.transaction(() => {
          throw new Error('rolled back')
        })
      const result = await ctx.transaction(() => `paid ${n}`)
      if (n === 2) throw new Error('after its commit')
      return result
    })
    const mill = await open({ jobs: [bank], retry: { limit: 3, backoff: { start: '1ms', factor: 1, max: '1ms' } } })
    const sequence = await mill.sequence(bank, numbers(4))
    await mill.start()
    expect(await sequence.result({ timeout: '60s' })).toEqual({ done: 4, total: 4 })
    expect((await sequence.output()).map(({ result }) => result)).toEqual(['paid 0', 'paid 1', 'paid 2', 'paid 3'])
    expect(seen).toEqual([
      [0, undefined],
      [1, 'paid 0'],
      [1, 'paid 0'],
      [2, 'paid 1'],
      [3, 'paid 2'],
    ])
  })
})

let slowBegan = false
const slow = job('slow', async (n: number, ctx: Context) => {
  slowBegan = true
  if (n === 0 && ctx.attempt === 1)
    await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error)))
  return n
})

describe('60: reset while an item runs', () => {
  test('aborts it, and what it returns is nowhere; the next run waits for it in its own process', async () => {
    const gate = new Gate()
    const signals: AbortSignal[] = []
    let overlapping = 0
    const stubborn = job('stubborn', async (n: number, ctx: Context) => {
      signals.push(ctx.signal)
      overlapping = Math.max(overlapping, signals.length - gate.begun.length)
      return `${await gate.pass(n)} of run ${signals.length}`
    })
    const mill = await open({ jobs: [stubborn] })
    await mill.start()
    const sequence = await mill.sequence(stubborn, numbers(2))
    await gate.reached(1)
    expect([await sequence.reset(), await sequence.progress()]).toEqual([true, { state: 'waiting', done: 0, total: 2 }])
    await vi.waitFor(() => expect(signals[0]?.aborted).toBe(true), 20_000)
    expect(signals[0]?.reason).toBeInstanceOf(LeaseLostError)
    expect(await sequence.start()).toBe(true)
    await wait(300)
    expect(gate.begun).toEqual([0])
    gate.open()
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 2, total: 2 })
    expect([gate.begun, (await sequence.output()).map(({ attempt }) => attempt)]).toEqual([
      [0, 0, 1],
      [1, 1],
    ])
  })
})

describe('61: items', () => {
  const strict = job('strict-item', {
    run: async (p: { to: string }) => p.to,
    accepts: (p: { to: string }) => p.to.includes('@'),
  } as never)

  test('of which one is bad are not written at all', { timeout: 60_000 }, async () => {
    const mill = await open({ jobs: [strict, echo] })
    const items = Array.from({ length: 100_000 }, (_, i) => (i === 99_999 ? { n: 1n, f: (): number => 1 } : { n: 1n }))
    const error = await mill.sequence(echo, items as never[]).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ code: 'E_INVALID_PAYLOAD' })
    expect((error as Error).message).toContain('items[99999].f')
    const refused = await mill
      .sequence(strict, [{ to: 'a@b' }, { to: 'b' }] as never[])
      .catch((thrown: Error) => thrown)
    expect((refused as Error).message).toContain('items[1]')
    expect((await mill.count()).count).toBe(0)
  })

  test('of more than one write are a sequence with the last, and each is there', { timeout: 60_000 }, async () => {
    const mill = await open({ jobs: [echo] })
    const sequence = await mill.sequence(echo, numbers(12_001))
    expect(await sequence.progress()).toEqual({ state: 'running', done: 0, total: 12_001 })
    const held = await mill.sequence(echo, numbers(3), { key: 'k', start: false })
    expect((await mill.sequence(echo, numbers(12_000), { key: 'k' })).id).toBe(held.id)
  })
})

describe('A sequence leaves room for others', () => {
  test('15: it gives its slot back after a second, so that a job that was ready before runs', async () => {
    let isOver = false
    const endless = job('endless', async () => {
      if (!isOver) await wait(20)
    })
    const mill = await open({ jobs: [endless, echo], concurrency: 2 })
    const sequences = [
      await mill.sequence(endless, numbers(2_000) as never[]),
      await mill.sequence(endless, numbers(2_000) as never[]),
    ]
    await mill.start()
    for (const sequence of sequences) await reaches(sequence, { state: 'running' })
    await vi.waitFor(async () => {
      for (const sequence of sequences) expect((await sequence.progress()).done).toBeGreaterThan(0)
    }, 20_000)
    const handle = await mill.enqueue(echo, 5)
    expect(await handle.result({ timeout: '15s' })).toBe(5)
    for (const sequence of sequences) expect((await sequence.progress()).done).toBeLessThan(2_000)
    isOver = true
  })

  test('a paused queue begins no item, between items too', async () => {
    const gate = new Gate()
    const mill = await open({ jobs: [job('work', gate.pass)] })
    await mill.start()
    const sequence = await mill.sequence('work', numbers(3))
    await gate.reached(1)
    await mill.queue('default').pause()
    gate.open()
    await reaches(sequence, { done: 1 })
    await wait(150)
    expect(gate.begun).toEqual([0])
    await mill.queue('default').resume()
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 3, total: 3 })
  })

  test('a stop lets its item end, and another process continues with the next', async () => {
    const gate = new Gate()
    const [store, work] = [freshStore(folder), job('work', gate.pass)]
    const [one, two] = [await open({ jobs: [work] }, store), await open({ jobs: [work] }, store)]
    await one.start()
    const sequence = await two.sequence(work, numbers(4))
    await gate.reached(1)
    const stopping = one.stop()
    gate.open()
    await stopping
    expect([gate.begun, await sequence.progress()]).toEqual([[0], { state: 'running', done: 1, total: 4 }])
    await two.start()
    expect(await sequence.result({ timeout: '20s' })).toEqual({ done: 4, total: 4 })
    expect(gate.begun).toEqual(numbers(4))
  })
})

describe('Groups, links and keep', () => {
  test('count a sequence as one job, and a job after it waits for its end', async () => {
    const gate = new Gate()
    const mill = await open({ jobs: [job('work', gate.pass), echo] })
    await mill.start()
    const sequence = await mill.sequence('work', numbers(2), { group: 'g' })
    const after = await mill.enqueue(echo, 1, { after: [sequence.id] })
    await gate.reached(1)
    expect(await mill.group('g').progress()).toMatchObject({ total: 1, running: 1 })
    await sequence.reset()
    await vi.waitFor(async () => expect(await mill.group('g').progress()).toMatchObject({ paused: 1, running: 0 }))
    expect(await mill.group('g').resume()).toBe(0)
    gate.open()
    await sequence.start()
    await after.result({ timeout: '20s' })
    expect(await mill.group('g').progress()).toMatchObject({ total: 1, done: 1, unfinished: 0 })
    expect(await sequence.progress()).toMatchObject({ state: 'done', done: 2 })
  })

  test('nothing is kept of a sequence whose job keeps nothing', async () => {
    const mill = await open({ jobs: [job('brief', { run: async (n: number) => n, keep: 'none' } as never)] })
    await mill.start()
    const sequence = await mill.sequence('brief', numbers(2))
    await vi.waitFor(() => expect(sequence.progress()).rejects.toMatchObject({ code: 'E_JOB_GONE' }), 20_000)
  })
})

describeAboveStore('What is refused', () => {
  test('a job with a rate, or with a limit by key: neither would hold for single items', async () => {
    const paced = job('paced', { run: async (n: number) => n, rate: { max: 2, per: '1s' } })
    const shared = job('shared', { run: async (n: number) => n, limit: { max: 2, key: (n: number) => n } })
    const bounded = job('bounded', { run: async (n: number) => n, limit: { max: 1 } })
    const mill = await open({ jobs: [paced, shared, bounded] })
    for (const each of [paced, shared])
      await expect(mill.sequence(each, [1])).rejects.toMatchObject({
        code: 'E_INVALID_OPTIONS',
        message: expect.stringContaining('a group') as string,
        problems: [expect.objectContaining({ path: 'job' })],
      })
    expect((await mill.sequence(bounded, [1])).isNew).toBe(true)
  })

  test('names the option, what was expected and what came', async () => {
    const mill = await open({ jobs: [echo] })
    const refused = async (call: () => unknown): Promise<string> => {
      try {
        await call()
      } catch (error) {
        return `${(error as { code: string }).code} ${(error as Error).message}`
      }
      return 'it was accepted'
    }
    const sequence = await mill.sequence(echo, [1], { start: false })
    const plain = await mill.enqueue(echo, 1)
    const calls: [() => unknown, RegExp][] = [
      [() => mill.sequence(echo, 'abc' as never), /E_INVALID_OPTIONS.*items must be an array, got "abc"/],
      [() => mill.sequence(echo, undefined as never), /E_INVALID_OPTIONS.*items must be an array, got undefined/],
      [() => mill.sequence(echo as never), /E_INVALID_OPTIONS.*must be an id, or \[job, key\].*sequence\(job, items\)/],
      [() => mill.sequence('none', [1]), /E_UNKNOWN_JOB/],
      [() => mill.sequence(echo, [1], { start: 'no' } as never), /options\.start must be true or false, got "no"/],
      [() => mill.sequence(echo, [1], { after: [plain.id] } as never), /options\.after is no option of a sequence/],
      [
        () => mill.sequence(echo, [1], { in: '1h', at: new Date() } as never),
        /2 problems[^]*options\.in[^]*options\.at/,
      ],
      [() => mill.sequence(echo, [1], { prioritiy: 1 } as never), /prioritiy is not an option.*priority/],
      [() => mill.sequence(echo, [1], 5 as never), /options must be an object, got 5/],
      [() => mill.sequence('not-an-id'), /must be a job's id \(a UUID\), got "not-an-id"/],
      [() => mill.sequence([echo, 5] as never), /E_INVALID_OPTIONS.*key/],
      [() => mill.sequence(plain.id).progress(), /E_INVALID_OPTIONS.*must be that of a sequence.*job "echo"/],
      [() => mill.sequence(plain.id).output(), /E_INVALID_OPTIONS.*must be that of a sequence/],
      [() => mill.sequence(plain.id).pause(), /E_INVALID_OPTIONS.*must be that of a sequence/],
      [() => sequence.output({ from: -1, limit: 0 }), /2 problems[^]*from[^]*limit/],
      [() => sequence.output({ limit: 1_001 }), /limit must be at most 1000, got 1001/],
      [
        () => (sequence.pause as (options: object) => unknown)({ tx: 1 }),
        /sequence\.pause\(\).*options\.tx is not an option/,
      ],
    ]
    for (const [call, expected] of calls) expect(await refused(call)).toMatch(expected)
    expect((await mill.count()).count).toBe(2)
  })
})
