import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { bundle, urlInBundle } from '../scripts/bundle.mjs'
import { runNode } from '../scripts/run.mjs'
import { job } from '../src/index.js'
import type { Mill, MillOptions } from '../src/index.js'
import { clockedMill } from './support/clocked-mill.js'
import { freshStore, onPostgres } from './support/fresh-store.js'

/** What holds when the database's clock is set, on both stores. The clock moves only when a test moves it. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-clocks-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const NOON = Date.UTC(2030, 0, 1, 12)
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

const soon = <Value>(look: () => Promise<Value> | Value): Promise<Value> =>
  vi.waitFor(look, { timeout: 15_000, interval: 5 })

const beat = job('beat', async () => undefined)

async function started(where: string, clock: { now: number }, options: MillOptions = {}): Promise<Mill> {
  const keep = { done: Infinity, failed: Infinity, cancelled: Infinity }
  const mill = await clockedMill(where, clock, { jobs: [beat], keep, ...options })
  mills.push(mill)
  await mill.start()
  return mill
}

/** A logger that keeps the lines about clocks. */
function listening(): { readonly logger: MillOptions['logger']; readonly told: () => string[] } {
  const lines: string[] = []
  const say = (_: unknown, text?: string): void => void lines.push(text ?? '')
  const logger = { debug: () => undefined, info: say, warn: say, error: say }
  return { logger, told: () => lines.filter((line) => line.includes('clock')) }
}

const ticks = async (mill: Mill): Promise<number[]> =>
  (await mill.schedules.ticks('r', { limit: 1_000 })).map((tick) => tick.at.getTime())

/** Moves the clock by an interval and waits for one more tick. */
async function tick(mill: Mill, clock: { now: number }, byMs: number): Promise<void> {
  const before = (await ticks(mill)).length
  clock.now += byMs
  await soon(async () => expect((await ticks(mill)).length).toBe(before + 1))
}

/** The next tick, once the mill has detected that the clock was set back. */
const nextAt = (mill: Mill, clock: { now: number }): Promise<number> =>
  soon(async () => {
    const at = (await mill.schedules.get('r'))?.nextAt?.getTime() ?? Infinity
    expect(at).toBeLessThanOrEqual(clock.now + MINUTE)
    return at
  })

describe('a clock that is set back by a day', () => {
  test('does not stop "every": the next tick is at most one interval away, and none is doubled', async () => {
    const clock = { now: NOON }
    const mill = await started(freshStore(folder), clock)
    await mill.recurring('r', beat, undefined, { every: '1m' })
    for (let n = 0; n < 3; n += 1) await tick(mill, clock, MINUTE)
    const old = await ticks(mill)
    clock.now -= DAY
    // By the old count a tick of that day would have fired already, or the first tick would be a day away.
    expect(await nextAt(mill, clock)).toBeGreaterThan(clock.now)
    for (let n = 0; n < 3; n += 1) await tick(mill, clock, MINUTE)
    const all = await ticks(mill)
    expect(new Set(all).size).toBe(6)
    const jobs = []
    for await (const each of mill.find({ job: 'beat' })) jobs.push(each.tick?.at.getTime())
    expect(jobs).toHaveLength(6)
    expect(new Set(jobs)).toEqual(new Set(all))
    expect(all).toEqual(expect.arrayContaining(old))
  })

  test('does not stop "every" when it passes a time that has fired already', async () => {
    const clock = { now: NOON }
    const mill = await started(freshStore(folder), clock)
    await mill.recurring('r', beat, undefined, { every: '1m' })
    for (let n = 0; n < 10; n += 1) await tick(mill, clock, MINUTE)
    clock.now -= 8 * MINUTE
    await nextAt(mill, clock)
    for (let n = 0; n < 10; n += 1) await tick(mill, clock, MINUTE)
    expect(new Set(await ticks(mill)).size).toBe(20)
  })

  test('does not stop "every" over a restart, nor when the same schedule is declared again', async () => {
    const clock = { now: NOON }
    const where = freshStore(folder)
    const first = await started(where, clock)
    await first.recurring('r', beat, undefined, { every: '1m' })
    await tick(first, clock, MINUTE)
    await first.close()
    clock.now -= DAY
    const second = await started(where, clock)
    await nextAt(second, clock)
    await second.recurring('r', beat, undefined, { every: '1m' })
    await tick(second, clock, MINUTE)
    await second.recurring('r', beat, undefined, { every: '1m' }, { priority: 1 })
    await tick(second, clock, MINUTE)
  })

  test('leaves a schedule that has not reached its "from" waiting for it', async () => {
    const clock = { now: NOON }
    const mill = await started(freshStore(folder), clock)
    const from = new Date(NOON + HOUR)
    await mill.recurring('a', beat, undefined, { every: '1m' }, { from })
    await mill.recurring('r', beat, undefined, { every: '1m' })
    await tick(mill, clock, MINUTE)
    clock.now -= DAY
    // They are reviewed in the order of their ids.
    await nextAt(mill, clock)
    expect((await mill.schedules.get('a'))?.nextAt).toEqual(from)
  })

  test('does not stop "every" of a schedule that is resumed or gets another interval, with no worker to review it', async () => {
    const clock = { now: NOON }
    const where = freshStore(folder)
    const worker = await started(where, clock)
    await worker.recurring('r', beat, undefined, { every: '1m' })
    for (let n = 0; n < 2; n += 1) await tick(worker, clock, MINUTE)
    await worker.schedules.pause('r')
    await worker.close()
    clock.now -= DAY
    const mill = await clockedMill(where, clock, { jobs: [beat] })
    mills.push(mill)
    await mill.schedules.resume('r')
    const inMs = async (): Promise<number> => Number((await mill.schedules.get('r'))?.nextAt) - clock.now
    expect(await inMs()).toBeLessThanOrEqual(MINUTE)
    clock.now -= DAY
    await mill.recurring('r', beat, undefined, { every: '2m' })
    expect(await inMs()).toBeLessThanOrEqual(2 * MINUTE)
    await mill.start()
    await tick(mill, clock, 2 * MINUTE)
  })

  test('is logged once, with what it means, and so is the step forward again', async () => {
    const clock = { now: NOON }
    const { logger, told } = listening()
    const mill = await started(freshStore(folder), clock, { logger })
    await mill.recurring('r', beat, undefined, { every: '1m' })
    await tick(mill, clock, MINUTE)
    // The minute forward may be logged as a step too, before or after the tick that it caused.
    const linesOf = (what: string): string[] => told().filter((line) => line.includes(what))
    clock.now -= DAY
    await nextAt(mill, clock)
    expect(linesOf('set back')).toEqual([
      expect.stringMatching(/^the database's clock was set back by 1 d: scheduled jobs/),
    ])
    clock.now += DAY
    await soon(() => expect(linesOf('forward by 1 d')).toHaveLength(1))
    expect(linesOf('forward by 1 d')[0]).toMatch(
      /^the database's clock went forward by 1 d, or its machine was suspended: jobs/,
    )
    expect(linesOf('set back')).toHaveLength(1)
  })

  test('leaves no record that ends before it begins, nor an attempt', async () => {
    const clock = { now: NOON }
    const slow = job('slow', {
      retry: { limit: 1, backoff: { start: 0 } },
      run: async (_: unknown, ctx) => {
        clock.now -= DAY
        if (ctx.attempt === 1) throw new Error('once more')
      },
    })
    const mill = await started(freshStore(folder), clock, { jobs: [slow] })
    const { id } = await mill.enqueue(slow)
    const record = await soon(async () => {
      const one = await mill.get(id)
      // The retry is due by a clock that was set back: the clock catches up.
      clock.now += MINUTE
      expect(one?.state).toBe('done')
      return one
    })
    const { createdAt, startedAt, settledAt, attempts } = record ?? {}
    expect(Number(startedAt)).toBeGreaterThanOrEqual(Number(createdAt))
    expect(Number(settledAt)).toBeGreaterThanOrEqual(Number(startedAt))
    expect(attempts).toHaveLength(2)
    for (const attempt of attempts ?? [])
      expect(Number(attempt.endedAt)).toBeGreaterThanOrEqual(Number(attempt.startedAt))
  })
})

test('"every" continues after a process whose clock was a day ahead has ended, and that is logged once', async () => {
  const where = freshStore(folder)
  const [right, ahead] = [{ now: NOON }, { now: NOON + DAY }]
  const { logger, told } = listening()
  const mill = await started(where, right, { logger })
  await mill.recurring('r', beat, undefined, { every: '1s' })
  await tick(mill, right, 1_000)
  const other = await started(where, ahead)
  await soon(async () => expect((await ticks(mill)).some((at) => at > NOON + HOUR)).toBe(true))
  await other.close()
  expect(Number((await mill.schedules.get('r'))?.nextAt)).toBeGreaterThan(NOON + HOUR)
  await soon(async () => expect(Number((await mill.schedules.get('r'))?.nextAt)).toBeLessThanOrEqual(right.now + 1_000))
  for (let n = 0; n < 3; n += 1) await tick(mill, right, 1_000)
  const lines = told().filter((line) => line.includes('was stalled'))
  expect(lines).toEqual([expect.stringMatching(/^schedule "r" was stalled: a process whose clock was 1 d ahead/)])
})

test('a cron continues after a process whose clock was a day ahead has ended; ticks that it fired do not fire again', async () => {
  const where = freshStore(folder)
  const [right, ahead] = [{ now: NOON }, { now: NOON + DAY }]
  const { logger, told } = listening()
  const mill = await started(where, right, { logger })
  await mill.recurring('r', beat, undefined, '* * * * * *')
  await tick(mill, right, 1_000)
  const other = await started(where, ahead)
  await soon(async () => expect((await ticks(mill)).some((at) => at > NOON + HOUR)).toBe(true))
  await other.close()
  expect(Number((await mill.schedules.get('r'))?.nextAt)).toBeGreaterThan(NOON + HOUR)
  await soon(async () => expect(Number((await mill.schedules.get('r'))?.nextAt)).toBeLessThanOrEqual(right.now + 1_000))
  for (let n = 0; n < 3; n += 1) await tick(mill, right, 1_000)
  const lines = told().filter((line) => line.includes('was stalled'))
  expect(lines).toEqual([expect.stringMatching(/^schedule "r" was stalled: a process whose clock was 1 d ahead/)])
  const all = await ticks(mill)
  expect(new Set(all).size).toBe(all.length)
})

/** It fakes the wall clock of a real process; the clock of a PostgreSQL server is not its own, so this is for files only. */
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'

test.skipIf(onPostgres || !existsSync(FAKETIME))(
  'a real process continues when its clock is set back (faketime)',
  async () => {
    await bundle()
    const [clock, program] = [join(folder, 'clock'), join(folder, 'beats.mjs')]
    writeFileSync(clock, '+0\n')
    writeFileSync(
      program,
      `import { writeFileSync } from 'node:fs'
    import { job, millrace } from ${JSON.stringify(urlInBundle('index.js'))}
    let beats = 0
    const warned = []
    const waiting = []
    const until = (n) => new Promise((go) => waiting.push({ n, go }))
    const beat = job('beat', async () => { beats += 1; for (const { n, go } of waiting) if (beats >= n) go() })
    const logger = { debug() {}, info() {}, error() {}, warn: (_, text) => void warned.push(text) }
    const mill = await millrace({ store: ${JSON.stringify(join(folder, 'faked.db'))}, jobs: { beat }, poll: '200ms', logger })
    await mill.recurring('r', beat, undefined, { every: '1s' })
    await mill.start()
    await until(2)
    const before = Date.now()
    writeFileSync(${JSON.stringify(clock)}, '-1d\\n')
    await until(4)
    console.log(JSON.stringify({ hours: Math.round((Date.now() - before) / 3_600_000), warned }))
    await mill.close()`,
    )
    const env = {
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
    const { code, output } = await runNode([program], { env, timeoutMs: 40_000 })
    expect(output).toContain(`{"hours":-24,"warned":["the database's clock was set back by 1 d`)
    expect(code).toBe(0)
  },
)
