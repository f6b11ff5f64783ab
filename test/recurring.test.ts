import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { job } from '../src/index.js'
import type { JobRecord, Mill, MillOptions, TickRecord } from '../src/index.js'
import { describeAboveStore } from './support/above-store.js'
import { clockedMill } from './support/clocked-mill.js'
import type { TestClock } from './support/clocked-mill.js'
import { freshStore } from './support/fresh-store.js'

/** T5 and T6 through the public API, on both stores. The database's clock moves only when a test moves it. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-recurring-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const NOON = Date.UTC(2030, 0, 1, 12)
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000]

const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

/** One database and its clock, for several mills. */
function database(): {
  readonly clock: TestClock
  readonly open: (options?: MillOptions) => Promise<Mill>
  readonly start: () => Promise<Mill>
} {
  const where = freshStore(folder)
  const clock = { now: NOON }
  const open = async (options: MillOptions = {}): Promise<Mill> => {
    // Clocks jump by months here, and a job past its keep time may be pruned at any moment.
    const keep = { done: Infinity, failed: Infinity, cancelled: Infinity }
    const mill = await clockedMill(where, clock, { jobs: [report, fails, hangs], keep, ...options })
    mills.push(mill)
    return mill
  }
  const start = async (): Promise<Mill> => {
    const mill = await open()
    await mill.start()
    return mill
  }
  return { clock, open, start }
}

const report = job('report', async (p: { of: string }, ctx) => `${p.of} ${ctx.tick?.at.toISOString() ?? 'by hand'}`)
const fails = job('fails', { retry: { limit: 0 }, run: async (): Promise<void> => Promise.reject(new Error('no')) })
const hangs = job('hangs', async (_: unknown, ctx) => {
  await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
})

const ledger = (mill: Mill, id = 'r'): Promise<TickRecord[]> => mill.schedules.ticks(id, { limit: 10_000 })
const outcomes = async (mill: Mill): Promise<string[]> => (await ledger(mill)).map((tick) => tick.outcome).reverse()
async function jobs(mill: Mill): Promise<JobRecord[]> {
  const found: JobRecord[] = []
  for await (const each of mill.find({ order: 'oldest' })) found.push(each)
  return found
}
const soon = (look: () => Promise<void>): Promise<void> => vi.waitFor(look, { timeout: 15_000, interval: 5 })
const until = (mill: Mill, count: number, id = 'r'): Promise<void> =>
  soon(async () => expect((await ledger(mill, id)).length).toBe(count))
/** All due ticks have been fired: the next tick of every schedule is in the future. */
const isQuiet = (mill: Mill, clock: TestClock): Promise<void> =>
  soon(async () => {
    for (const { nextAt } of await mill.schedules.list())
      expect(nextAt?.getTime() ?? Infinity).toBeGreaterThan(clock.now)
  })
async function move(mill: Mill, clock: TestClock, ms: number): Promise<void> {
  clock.now += ms
  await isQuiet(mill, clock)
}

describe('a recurring job', () => {
  test('is enqueued exactly once per tick, however many mills there are', async () => {
    const { clock, start } = database()
    const all = [await start(), await start(), await start(), await start()]
    const [mill] = all as [Mill]
    await mill.recurring('r', report, { of: 'sales' }, { every: '1s' })
    for (let n = 1; n <= 12; n += 1) await move(mill, clock, SECOND)
    const ticks = await ledger(mill)
    expect(ticks.map((tick) => tick.at.getTime())).toEqual(
      Array.from({ length: 12 }, (_, i) => NOON + (12 - i) * SECOND),
    )
    expect(new Set(ticks.map((tick) => tick.outcome))).toEqual(new Set(['ran']))
    expect(new Set((await jobs(mill)).map((each) => each.id))).toEqual(new Set(ticks.map((tick) => tick.job)))
    expect(await jobs(mill)).toHaveLength(12)
  })

  test('knows which tick it runs for, and so does its record', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'sales' }, '0 13 * * *', { labels: ['daily'], title: 'Report of {of}' })
    await move(mill, clock, HOUR + 5 * SECOND)
    const [found] = await jobs(mill)
    const at = new Date(NOON + HOUR)
    expect(await mill.handle(String(found?.id)).result()).toBe(`sales ${at.toISOString()}`)
    expect(found).toMatchObject({ tick: { schedule: 'r', at }, dueAt: at, labels: ['daily'], title: 'Report of sales' })
  })

  test('uses the local time of its zone', async () => {
    const { open } = database()
    const mill = await open()
    const { nextAt } = await mill.recurring('r', report, { of: 'x' }, '0 9 * * *', { timezone: 'Asia/Tokyo' })
    expect(nextAt).toEqual(new Date(Date.UTC(2030, 0, 2, 0)))
  })

  test('is updated in place by the same id, and a call without a change writes nothing', async () => {
    const { clock, open } = database()
    const mill = await open()
    const first = await mill.recurring('r', report, { of: 'a' }, { every: '1h' })
    clock.now += 10 * MINUTE
    expect(await mill.recurring('r', report, { of: 'a' }, { every: '1h' })).toEqual(first)
    const second = await mill.recurring('r', report, { of: 'b' }, { every: '1h' }, { queue: 'slow' })
    expect(second).toEqual({ ...first, payload: { of: 'b' }, queue: 'slow' })
    expect(await mill.schedules.list()).toEqual([second])
  })

  test('with a new rule starts from now, and repeats no tick', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, '*/10 * * * *')
    await move(mill, clock, 10 * MINUTE)
    const { nextAt } = await mill.recurring('r', report, { of: 'a' }, '*/15 * * * *')
    expect(nextAt).toEqual(new Date(NOON + 15 * MINUTE))
    clock.now -= 5 * MINUTE
    await mill.recurring('r', report, { of: 'a' }, '*/10 * * * *')
    await move(mill, clock, 5 * MINUTE)
    expect(await jobs(mill)).toHaveLength(1)
    await move(mill, clock, 10 * MINUTE)
    expect(await jobs(mill)).toHaveLength(2)
  })

  test('keeps the tick that passed while it was down, when the app declares it again at its start', async () => {
    const { clock, open, start } = database()
    const before = await open()
    await before.recurring('r', report, { of: 'a' }, '0 13 * * *')
    await before.close()
    clock.now += 2 * HOUR
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, '0 13 * * *')
    await until(mill, 1)
    expect((await ledger(mill))[0]).toMatchObject({ at: new Date(NOON + HOUR), outcome: 'caught up' })
  })

  test('no longer exists once it is deleted, and its enqueued jobs stay', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, { every: '1m' })
    await move(mill, clock, MINUTE)
    expect([await mill.deleteRecurring('r'), await mill.deleteRecurring('r')]).toEqual([true, false])
    await mill.recurring('other', report, { of: 'a' }, { every: '1m' })
    await move(mill, clock, 2 * MINUTE)
    expect((await jobs(mill)).map((each) => each.tick?.schedule)).toEqual(['r', 'other'])
    expect(await mill.schedules.get('r')).toBeUndefined()
    expect(await ledger(mill)).toEqual([])
  })

  test('fires again whatever happened to the job before: failed, hanging, cancelled, deleted', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('f', fails, undefined, { every: '1m' })
    await mill.recurring('h', hangs, undefined, { every: '1m' })
    for (let n = 0; n < 3; n += 1) {
      await move(mill, clock, MINUTE)
      const newest = (await jobs(mill)).at(-1)
      if (n === 1) await mill.cancel(String(newest?.id))
    }
    await soon(async () => expect((await jobs(mill)).filter((each) => each.state === 'failed')).toHaveLength(3))
    for (const each of await jobs(mill)) if (each.state === 'failed') await mill.delete(each.id)
    await move(mill, clock, MINUTE)
    expect([(await ledger(mill, 'f')).length, (await ledger(mill, 'h')).length]).toEqual([4, 4])
  })

  test('continues after a restart', async () => {
    const { clock, start } = database()
    for (let n = 0; n < 5; n += 1) {
      const mill = await start()
      await mill.recurring('r', report, { of: 'a' }, { every: '1m' })
      await move(mill, clock, MINUTE)
      await mill.close()
    }
    const mill = await start()
    expect(await outcomes(mill)).toEqual(['ran', 'ran', 'ran', 'ran', 'ran'])
    expect(await jobs(mill)).toHaveLength(5)
  })
})

describe('missed ticks', () => {
  async function afterStop(missed: 'skip' | 'once' | 'all', ms: number, every = '1h'): Promise<Mill> {
    const { clock, open, start } = database()
    const before = await open()
    await before.recurring('r', report, { of: 'a' }, { every: every as '1h' }, { missed })
    await before.close()
    clock.now += ms
    const mill = await start()
    await isQuiet(mill, clock)
    return mill
  }

  test('skip: none of them runs, and the ledger says so', async () => {
    const mill = await afterStop('skip', 3 * HOUR + 30 * MINUTE)
    expect(await jobs(mill)).toEqual([])
    expect((await ledger(mill)).map((tick) => [tick.at, tick.reason])).toEqual([
      [new Date(NOON + 3 * HOUR), 'it was fired 1800 s late, and missed ticks are skipped'],
      [
        new Date(NOON + 2 * HOUR),
        '2 missed ticks from 2030-01-01T13:00:00.000Z up to 2030-01-01T14:00:00.000Z: missed ticks are skipped',
      ],
    ])
  })

  test('skip: a tick that is less than a minute old was not missed', async () => {
    const mill = await afterStop('skip', 3 * HOUR + 30 * SECOND)
    expect(await outcomes(mill)).toEqual(['skipped', 'ran'])
  })

  test('only the last of those that come due together is on time, however late they are', async () => {
    for (const [missed, expected] of [
      ['skip', ['skipped', 'ran']],
      ['once', ['skipped', 'ran']],
      ['all', ['ran', 'ran', 'ran', 'ran', 'ran']],
    ] as const) {
      const mill = await afterStop(missed, 5 * SECOND, '1s')
      expect(await outcomes(mill)).toEqual(expected)
      expect((await jobs(mill)).at(-1)?.tick?.at).toEqual(new Date(NOON + 5 * SECOND))
    }
  })

  test('once, which is the default: the last of them runs for all', async () => {
    const mill = await afterStop('once', 3 * HOUR + 30 * MINUTE)
    expect(await outcomes(mill)).toEqual(['skipped', 'caught up'])
    expect((await jobs(mill)).map((each) => each.tick?.at)).toEqual([new Date(NOON + 3 * HOUR)])
    expect((await mill.schedules.get('r'))?.missed).toBe('once')
  })

  test('all: each of them runs, in order', async () => {
    const mill = await afterStop('all', 3 * HOUR + 30 * MINUTE)
    expect(await outcomes(mill)).toEqual(['caught up', 'caught up', 'caught up'])
    expect((await jobs(mill)).map((each) => each.tick?.at.getTime())).toEqual([1, 2, 3].map((h) => NOON + h * HOUR))
  })

  test('all: at most 1,000, the newest, and the rest is one line in the ledger', async () => {
    const mill = await afterStop('all', 1_500 * HOUR + 30 * MINUTE)
    const ticks = await ledger(mill)
    expect(ticks).toHaveLength(1_001)
    expect(ticks.at(-1)).toMatchObject({ at: new Date(NOON + 500 * HOUR), outcome: 'skipped' })
    expect(ticks.at(-1)?.reason).toContain('500 missed ticks')
    expect(ticks[0]?.at).toEqual(new Date(NOON + 1_500 * HOUR))
  })
})

describe('overlap', () => {
  async function three(overlap: 'allow' | 'skip' | 'wait' | 'cancel'): Promise<Mill> {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', hangs, undefined, { every: '1m' }, { overlap })
    for (let n = 0; n < 3; n += 1) {
      await move(mill, clock, MINUTE)
      await soon(async () =>
        expect((await jobs(mill)).filter((each) => each.state === 'ready' || each.state === 'scheduled')).toEqual([]),
      )
    }
    return mill
  }
  const states = async (mill: Mill): Promise<string[]> => (await jobs(mill)).map((each) => each.state)

  test('allow, which is the default: they run concurrently', async () => {
    const mill = await three('allow')
    expect(await states(mill)).toEqual(['running', 'running', 'running'])
    expect((await mill.schedules.get('r'))?.overlap).toBe('allow')
  })

  test('skip: a tick is skipped while the job before it is unfinished', async () => {
    const mill = await three('skip')
    const [only] = await jobs(mill)
    expect([await states(mill), await outcomes(mill)]).toEqual([['running'], ['ran', 'skipped', 'skipped']])
    expect((await ledger(mill))[0]?.reason).toBe(`job ${only?.id} of an earlier tick is unfinished`)
  })

  test('wait: they run one after the other, and one that fails releases the next', async () => {
    const mill = await three('wait')
    expect(await states(mill)).toEqual(['running', 'blocked', 'blocked'])
    for (const [ended] of await jobs(mill)
      .then((all) => all.map((each) => [each.id] as const))
      .then((all) => all.slice(0, 2))) {
      await mill.cancel(ended)
      await soon(async () => expect((await mill.get(ended))?.settledAt).toBeDefined())
      await soon(async () => expect((await states(mill)).filter((state) => state === 'running')).toHaveLength(1))
    }
    expect((await states(mill)).at(-1)).toBe('running')
    const call = mill.recurring(
      'w',
      report,
      { of: 'a' },
      { every: '1m' },
      { overlap: 'wait', after: [['report', 'k']] },
    )
    await expect(call).rejects.toThrow(/overlap cannot be "wait" for a job that comes after others/)
  })

  test('a missing parent skips the tick, and stops nothing', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, { every: '1m' }, { after: [['report', 'first']] })
    await move(mill, clock, MINUTE)
    await mill.enqueue(report, { of: 'b' }, { key: 'first' })
    await move(mill, clock, MINUTE)
    expect(await outcomes(mill)).toEqual(['skipped', 'ran'])
    expect((await ledger(mill))[1]?.reason).toContain('first')
  })

  test('a parent that no longer exists causes one warning, with what to do', async () => {
    const { clock, open } = database()
    const warned: string[] = []
    const nothing = (): void => undefined
    const warn = (_: object, message: string): void => void warned.push(message)
    const mill = await open({ logger: { debug: nothing, info: nothing, warn, error: nothing } })
    await mill.start()
    await mill.recurring('r', report, { of: 'a' }, { every: '1m' }, { after: [['report', 'first']] })
    const parent = await mill.enqueue(report, { of: 'b' }, { key: 'first' })
    await parent.result()
    await move(mill, clock, MINUTE)
    expect(await mill.delete(parent.id)).toBe(true)
    for (let n = 0; n < 3; n += 1) await move(mill, clock, MINUTE)
    expect(await outcomes(mill)).toEqual(['ran', 'skipped', 'skipped', 'skipped'])
    const skipping = warned.filter((line) => line.includes('skip'))
    expect(skipping).toHaveLength(1)
    expect(skipping[0]).toMatch(/schedule "r" skipped its tick at .*"first".*keep: Infinity/s)
  })

  test('cancel: the cancel of the job before it is requested', async () => {
    const mill = await three('cancel')
    await soon(async () => expect((await states(mill)).filter((state) => state === 'running')).toHaveLength(1))
    expect((await jobs(mill)).at(-1)?.state).toBe('running')
  })

  test('a held key skips its ticks, and stops nothing', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', hangs, undefined, { every: '1m' }, { key: 'k', onDuplicate: 'reject' })
    await move(mill, clock, MINUTE)
    await move(mill, clock, MINUTE)
    expect(await outcomes(mill)).toEqual(['ran', 'skipped'])
    for await (const each of mill.find({ key: 'k' })) await mill.cancel(each.id)
    await soon(async () => expect((await jobs(mill)).every((each) => each.settledAt !== undefined)).toBe(true))
    await move(mill, clock, MINUTE)
    expect(await outcomes(mill)).toEqual(['ran', 'skipped', 'ran'])
  })
})

describe('a group', () => {
  test('has the job of each tick, and waits for it', async () => {
    const { clock, start } = database()
    const mill = await start()
    const schedule = await mill.recurring('r', hangs, undefined, { every: '1m' }, { group: 'g' })
    expect(schedule.group).toBe('g')
    expect((await mill.schedules.get('r'))?.group).toBe('g')
    await move(mill, clock, MINUTE)
    await mill.schedules.runNow('r')
    expect((await jobs(mill)).map((each) => each.group)).toEqual(['g', 'g'])
    const group = mill.group('g', { whenDone: [report, { of: 'all' }] })
    await group.seal()
    expect(await group.progress()).toMatchObject({ total: 2, unfinished: 2, sealed: true, completedAt: undefined })
  })

  test('that is sealed refuses them, which the ledger records, and stops nothing', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, { every: '1m' }, { group: 'g' })
    await mill.group('g').seal()
    await move(mill, clock, MINUTE)
    expect(await mill.schedules.runNow('r')).toBeUndefined()
    await mill.recurring('r', report, { of: 'a' }, { every: '1m' }, { group: 'h' })
    await move(mill, clock, MINUTE)
    expect(await outcomes(mill)).toEqual(['skipped', 'skipped', 'ran'])
    for (const { reason } of (await ledger(mill)).slice(1)) expect(reason).toContain('group "g" is sealed')
  })
})

describeAboveStore('times', () => {
  test('jitter delays each job by an amount that a crash cannot change', async () => {
    const { clock, start } = database()
    const mill = await start()
    const other = database()
    const elsewhere = await other.start()
    for (const each of [mill, elsewhere])
      await each.recurring('r', report, { of: 'a' }, { every: '1h' }, { jitter: '10m' })
    for (let n = 0; n < 5; n += 1) {
      await move(mill, clock, HOUR)
      await move(elsewhere, other.clock, HOUR)
    }
    const late = (all: JobRecord[]): number[] => all.map((each) => each.dueAt.getTime() - Number(each.tick?.at))
    const here = late(await jobs(mill))
    expect(late(await jobs(elsewhere))).toEqual(here)
    for (const ms of here) expect(ms).toBeGreaterThanOrEqual(0)
    for (const ms of here) expect(ms).toBeLessThanOrEqual(10 * MINUTE)
    expect(new Set(here).size).toBe(5)
  })

  test('from and until bound it, both included, and every counts from from', async () => {
    const { clock, start } = database()
    const mill = await start()
    const [from, to] = [new Date(NOON + 90 * MINUTE), new Date(NOON + 3.5 * HOUR)]
    await mill.recurring('r', report, { of: 'a' }, { every: '1h' }, { from, until: to })
    for (let n = 0; n < 6; n += 1) await move(mill, clock, HOUR)
    expect((await ledger(mill)).map((tick) => (tick.at.getTime() - NOON) / HOUR)).toEqual([3.5, 2.5, 1.5])
    expect((await mill.schedules.get('r'))?.nextAt).toBeUndefined()
  })

  test('a clock that is set back repeats no tick, and does not stop schedules', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, '0 * * * *')
    await move(mill, clock, HOUR)
    await move(mill, clock, DAY * 400)
    const fired = await ledger(mill)
    clock.now = NOON + HOUR - 10 * MINUTE
    await soon(async () => expect((await mill.schedules.get('r'))?.nextAt).toEqual(new Date(NOON + HOUR)))
    await move(mill, clock, 15 * MINUTE)
    expect(await ledger(mill)).toEqual(fired)
    await move(mill, clock, HOUR)
    const ran = (await jobs(mill)).map((each) => Number(each.tick?.at) - NOON)
    expect(ran.sort((a, b) => a - b)).toEqual([HOUR, 2 * HOUR, DAY * 400 + HOUR])
  })

  test('the next tick is computed again at the start: the rules of its zone may have changed', async () => {
    const { clock, open, start } = database()
    const before = await open()
    await before.recurring('r', report, { of: 'a' }, '0 * * * *')
    await before.close()
    clock.now -= 5 * HOUR
    const mill = await start()
    await soon(async () => expect((await mill.schedules.get('r'))?.nextAt).toEqual(new Date(NOON - 4 * HOUR)))
  })
})

describe('mill.schedules', () => {
  test('pause stops it, an update leaves it paused, and resume continues with the next tick', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, { every: '1h' })
    expect([await mill.schedules.pause('r'), await mill.schedules.pause('r')]).toEqual([true, true])
    const paused = await mill.recurring('r', report, { of: 'b' }, { every: '30m' })
    expect([paused.paused, paused.pausedAt, paused.nextAt]).toEqual([true, new Date(NOON), undefined])
    clock.now += 3 * HOUR
    expect([await mill.schedules.resume('r'), await mill.schedules.resume('r')]).toEqual([true, true])
    expect((await mill.schedules.get('r'))?.nextAt).toEqual(new Date(NOON + 3.5 * HOUR))
    expect((await ledger(mill)).map((tick) => [tick.at, tick.outcome, tick.reason])).toEqual([
      [new Date(NOON + 3 * HOUR), 'skipped', '6 ticks came while it was paused, from 2030-01-01T12:00:00.000Z on'],
    ])
    expect(await jobs(mill)).toEqual([])
    expect([await mill.schedules.pause('x'), await mill.schedules.resume('x')]).toEqual([false, false])
  })

  test('runNow enqueues at once, beside the rule, also while it is paused', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, { every: '1h' })
    await mill.schedules.pause('r')
    const handle = await mill.schedules.runNow('r')
    expect(await handle?.result()).toBe(`a ${new Date(NOON).toISOString()}`)
    await mill.schedules.resume('r')
    await move(mill, clock, HOUR)
    expect(await outcomes(mill)).toEqual(['run now', 'ran'])
    await expect(mill.schedules.runNow('nightly')).rejects.toMatchObject({ code: 'E_UNKNOWN_SCHEDULE' })
  })

  test('of an unknown schedule: nothing to read, and nothing to pause', async () => {
    const { open } = database()
    const mill = await open()
    expect(await mill.schedules.ticks('nope')).toEqual([])
    expect(await mill.schedules.get('nope')).toBeUndefined()
    expect([await mill.schedules.pause('nope'), await mill.schedules.resume('nope')]).toEqual([false, false])
  })

  test('the ledger is read in pages: newest first, before an instant, a hundred by default', async () => {
    const { clock, open } = database()
    const mill = await open()
    await mill.recurring('r', report, { of: 'a' }, '* * * * *')
    clock.now += 3 * HOUR
    const at = (minute: number): Date => new Date(NOON + minute * MINUTE)
    expect(await mill.schedules.backfill('r', at(1), at(121))).toBe(120)
    const times = async (options?: { readonly limit?: number; readonly before?: Date }): Promise<Date[]> =>
      (await mill.schedules.ticks('r', options)).map((tick) => tick.at)
    expect(await times()).toEqual(Array.from({ length: 100 }, (_, n) => at(120 - n)))
    expect(await times({ limit: 3 })).toEqual([at(120), at(119), at(118)])
    expect(await times({ limit: 2, before: at(118) })).toEqual([at(117), at(116)])
    expect(await times({ before: at(3) })).toEqual([at(2), at(1)])
    expect(await times({ before: at(1) })).toEqual([])
  })

  test('backfill enqueues past ticks that have no job, and never one twice', async () => {
    const { clock, start } = database()
    const mill = await start()
    await mill.recurring('r', report, { of: 'a' }, '0 * * * *')
    await move(mill, clock, 3 * HOUR + 30 * MINUTE)
    expect(await outcomes(mill)).toEqual(['skipped', 'caught up'])
    const [from, to] = [new Date(NOON - 2 * HOUR), new Date(clock.now)]
    expect(await mill.schedules.backfill('r', from, to)).toBe(5)
    expect(await mill.schedules.backfill('r', from, to)).toBe(0)
    expect((await ledger(mill)).map((tick) => [(tick.at.getTime() - NOON) / HOUR, tick.outcome])).toEqual([
      [3, 'caught up'],
      [2, 'backfilled'],
      [1, 'backfilled'],
      [0, 'backfilled'],
      [-1, 'backfilled'],
      [-2, 'backfilled'],
    ])
    expect(await jobs(mill)).toHaveLength(6)
  })

  test('backfill refuses the future, more than 1,000 ticks, and bounds in the wrong order', async () => {
    const { open } = database()
    const mill = await open()
    await mill.recurring('r', report, { of: 'a' }, '* * * * *')
    const [now, before] = [new Date(NOON), new Date(NOON - DAY)]
    const refused = async (...ends: [unknown, unknown]): Promise<string> =>
      mill.schedules.backfill('r', ends[0] as Date, ends[1] as Date).then(
        () => 'not refused',
        (error: Error) => error.message,
      )
    expect(await refused(now, new Date(NOON + 1))).toContain('must not be after now')
    expect(await refused(before, now)).toContain('at most 1000 ticks')
    expect(await refused(now, before)).toContain('to must not be before from')
    expect(await refused('yesterday', 5)).toMatch(/2 problems[^]*from must be an instant[^]*to must be an instant/)
    expect(await jobs(mill)).toEqual([])
  })

  test('list returns pages, and get returns one', async () => {
    const { open } = database()
    const mill = await open()
    for (const id of ['c', 'a', 'b']) await mill.recurring(id, report, { of: id }, '0 9 * * *')
    expect((await mill.schedules.list({ limit: 2 })).map(({ id }) => id)).toEqual(['a', 'b'])
    expect((await mill.schedules.list({ after: 'b' })).map(({ id }) => id)).toEqual(['c'])
    expect(await mill.schedules.get('a')).toMatchObject({ job: 'report', payload: { of: 'a' }, rule: '0 9 * * *' })
    await expect(mill.schedules.list({ limit: 0 })).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
  })
})

describeAboveStore('mill.upcoming', () => {
  test('lists waiting jobs and future ticks, in the order of their times', async () => {
    const { open } = database()
    const mill = await open()
    await mill.recurring('r', report, { of: 'a' }, '0 */8 * * *', { title: 'Report' })
    await mill.recurring('paused', report, { of: 'a' }, '0 * * * *')
    await mill.schedules.pause('paused')
    const ready = await mill.enqueue(report, { of: 'now' })
    const later = await mill.schedule(report, { of: 'later' }, '5h')
    await mill.schedule(report, { of: 'tomorrow' }, '25h')
    const list = await mill.upcoming('24h')
    expect(list.map((each) => [(each.at.getTime() - NOON) / HOUR, each.id ?? each.schedule])).toEqual([
      [0, ready.id],
      [4, 'r'],
      [5, later.id],
      [12, 'r'],
      [20, 'r'],
    ])
    expect(list[1]).toEqual({
      at: new Date(NOON + 4 * HOUR),
      job: 'report',
      queue: 'default',
      title: 'Report',
      id: undefined,
      state: undefined,
      schedule: 'r',
    })
  })

  test('returns the nearest ones, and refuses an invalid span', async () => {
    const { open } = database()
    const mill = await open()
    await mill.recurring('often', report, { of: 'a' }, '* * * * * *')
    await mill.recurring('rarely', report, { of: 'a' }, { every: '1500ms' })
    const list = await mill.upcoming('24h', { limit: 4 })
    expect(list.map((each) => each.at.getTime() - NOON)).toEqual([1_000, 1_500, 2_000, 3_000])
    const within = async (ms: number): Promise<number> => (await mill.upcoming(ms)).length
    expect([await within(999), await within(1_000), await within(1_499), await within(1_500)]).toEqual([0, 1, 1, 2])
    await expect(mill.upcoming('tomorrow' as never, { limit: -1 })).rejects.toThrow(/2 problems[^]*span[^]*limit/)
  })
})

describeAboveStore('bad input is refused before anything is written', () => {
  const cases: readonly [string, RegExp, unknown, unknown, unknown?][] = [
    ['a cron with a wrong field', /rule .*hour.*25/, 'r', '0 25 * * *'],
    ['a cron of no fields', /rule /, 'r', ''],
    ['a date that never occurs', /rule .*/, 'r', '0 0 30 2 *'],
    ['an unknown zone', /timezone .*Europe\/Oslo/, 'r', '0 9 * * *', { timezone: 'Europe/Olso' }],
    ['an every of zero', /every must be 1 second or more/, 'r', { every: 0 }],
    ['a rule of another kind', /rule must be a cron text/, 'r', 5],
    [
      'until before from',
      /until must not be before from/,
      'r',
      '0 9 * * *',
      { from: new Date(NOON), until: new Date(0) },
    ],
    [
      'bounds with no tick between them',
      /until must leave a tick of the rule, got .*: it would never fire; the first one from there on is 2030-01-02T09:00:00.000Z/,
      'r',
      '0 9 * * *',
      { from: new Date(NOON), until: new Date(NOON + HOUR) },
    ],
    ['a span as from', /from must be an instant/, 'r', '0 9 * * *', { from: '1h' }],
    ['an unknown policy', /missed must be "skip" or "once" or "all"/, 'r', '0 9 * * *', { missed: 'none' }],
    ['a misspelt option', /timezon is not an option; did you mean "timezone"/, 'r', '0 9 * * *', { timezon: 'UTC' }],
    ['a time beside the rule', /options.in cannot be given/, 'r', '0 9 * * *', { in: '5m' }],
    ['a transaction', /options.tx cannot be given/, 'r', '0 9 * * *', { tx: {} }],
    ['options that are not an object', /options must be an object/, 'r', '0 9 * * *', 'daily'],
    ['an empty id', /id must have 1 to 200 characters/, '', '0 9 * * *'],
    ['an id with a line break', /id must not have control characters/, 'a\nb', '0 9 * * *'],
    ['an id that is not text', /id must be text/, 7, '0 9 * * *'],
    ['half a character as id', /id must be well-formed/, '\ud800', '0 9 * * *'],
  ]
  test.each(cases)('%s', async (_, message, id, rule, options) => {
    const { open } = database()
    const mill = await open()
    const call = mill.recurring(id as string, report, { of: 'a' }, rule as string, options as object)
    await expect(call).rejects.toThrow(message)
    await expect(call).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    expect(await mill.schedules.list()).toEqual([])
  })

  test('all problems are reported at once', async () => {
    const { open } = database()
    const mill = await open()
    const call = mill.recurring('', report, { of: () => 1 } as never, '99 * * * *', { timezone: 'Mars', queue: '' })
    await expect(call).rejects.toThrow(/5 problems/)
  })

  test('the error names the schedule, since an app has many for one job', async () => {
    const { open } = database()
    const mill = await open()
    await expect(mill.recurring('nightly', report, { of: 'a' }, '99 * * * *')).rejects.toThrow(/^schedule "nightly": /)
    const unwritable = mill.recurring('nightly', report, { of: () => 1 } as never, '0 9 * * *')
    await expect(unwritable).rejects.toThrow(/^schedule "nightly": payload/)
  })

  test.each(['pause', 'resume', 'runNow'] as const)(
    'a transaction given to %s, which commits by itself',
    async (verb) => {
      const { open } = database()
      const mill = await open()
      await mill.recurring('r', report, { of: 'a' }, '0 9 * * *')
      const call = mill.schedules[verb] as (id: string, options: object) => Promise<unknown>
      await expect(call.call(mill.schedules, 'r', { tx: 1 })).rejects.toThrow(
        /options\.tx is not an option; the command commits by itself/,
      )
      expect((await mill.schedules.get('r'))?.pausedAt).toBeUndefined()
    },
  )

  test('a backfill from the end to the beginning', async () => {
    const { open } = database()
    const mill = await open()
    await mill.recurring('r', report, { of: 'a' }, '0 9 * * *')
    const call = mill.schedules.backfill('r', new Date('2026-02-02'), new Date('2026-02-01'))
    await expect(call).rejects.toThrow(/to must not be before from \(2026-02-02.*\), got 2026-02-01/)
  })

  test('hostile ids are ids like any other', async () => {
    const { clock, start } = database()
    const mill = await start()
    const ids = ['__proto__', `'; drop table millrace_schedules; --`, '%', '🌙'.repeat(50)]
    for (const id of ids) await mill.recurring(id, report, { of: id }, { every: '1m' })
    await move(mill, clock, MINUTE)
    for (const id of ids) expect(await ledger(mill, id)).toHaveLength(1)
    expect((await mill.schedules.list()).map(({ id }) => id).sort()).toEqual([...ids].sort())
  })
})
