import { afterAll, beforeAll, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { category, codec, event, job, lazy, millrace, sqlite, workflow } from '../src/index.js'
import type { Context, EnqueueNext, InvalidOptionsError, Mill, Work } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { restart, simulate, startMill, startPostgres, testing, waitFor } from '../src/testing/index.js'
import { optionDoors } from './support/option-levels.js'
import type { Door, Level } from './support/option-levels.js'

/**
 * Nothing is ignored: an unknown option name is refused at every level of every object that the public types let a caller
 * pass, by an error that says where it is. A new verb or level in the types is part of this test without a change here.
 */

const greet = job('greet', async (p: { name: string }) => p.name)
const ADA = { name: 'Ada' }
const BOGUS = { bogus: 1 }
const ID = '01990000-0000-7000-8000-000000000000'
let mill: Mill
let doors: readonly Door[] = []

beforeAll(async () => {
  expect(await build()).toMatchObject({ code: 0 })
  doors = optionDoors()
  mill = await millrace({ store: ':memory:', jobs: [greet], logger: false })
  await mill.recurring('daily', greet, ADA, '0 9 * * *')
})
afterAll(() => mill.close())

/** The call of each verb, with the value to try as its argument. */
const CALLS: { readonly [door: string]: (given: never) => unknown } = {
  'millrace options': (given) => millrace(given),
  'job options': (given) => job('x', given),
  'category options': (given) => category('x', given),
  'codec options': (given) => codec(given),
  'sqlite options': (given) => sqlite(':memory:', given),
  'postgres options': (given) => postgres('postgres://localhost/x', given),
  'testing options': (given) => testing(given),
  'startMill options': (given) => startMill(given),
  'restart change': async (given) => restart(await startMill({ jobs: [greet] }), given),
  'startPostgres options': (given) => startPostgres(given),
  'simulate options': (given) => simulate(given),
  'waitFor timeout': (given) => waitFor(mill.handle(ID), given),
  'TestKit.advance by': async (given) => (await testing({ jobs: [greet] })).advance(given),
  'Mill.enqueue rest[1]': (given) => mill.enqueue(greet, ADA, given),
  'Mill.enqueueMany options': (given) => mill.enqueueMany(greet, [ADA], given),
  'Mill.enqueueMany options()': (given) => mill.enqueueMany(greet, [ADA], () => given),
  'Mill.schedule when': (given) => mill.schedule(greet, ADA, given),
  'Mill.schedule options': (given) => mill.schedule(greet, ADA, '1h', given),
  'Mill.recurring rule': (given) => mill.recurring('x', greet, ADA, given),
  'Mill.recurring options': (given) => mill.recurring('x', greet, ADA, '0 9 * * *', given),
  'Mill.upcoming span': (given) => mill.upcoming(given),
  'Mill.upcoming options': (given) => mill.upcoming('1h', given),
  'Mill.upcomingBins span': (given) => mill.upcomingBins(given),
  'Mill.upcomingBins options': (given) => mill.upcomingBins('1h', given),
  'Mill.flow options': (given) => mill.flow((f) => f.add(greet, ADA), given),
  'FlowBuilder.add rest[1]': (given) => mill.flow((f) => f.add(greet, ADA, given)),
  'Mill.sequence options': (given) => mill.sequence(greet, [ADA], given),
  'Sequence.output options': async (given) => (await mill.sequence(greet, [ADA], { start: false })).output(given),
  'Sequence.result options': async (given) => (await mill.sequence(greet, [ADA], { start: false })).result(given),
  'Mill.stop options': (given) => mill.stop(given),
  'Mill.close options': (given) => mill.close(given),
  'Mill.dashboard options': (given) => mill.dashboard(given),
  'Mill.stopOnSignals options': (given) => mill.stopOnSignals(given),
  'Mill.find filter': (given) => mill.find(given).next(),
  'Mill.findPage filter': (given) => mill.findPage(given),
  'Mill.findPage options': (given) => mill.findPage({}, given),
  'Mill.parents options': (given) => mill.parents(ID, given),
  'Mill.children options': (given) => mill.children(ID, given),
  'Mill.count filter': (given) => mill.count(given),
  'Mill.check filter': (given) => mill.check(given).next(),
  'Mill.retry options': (given) => mill.retry(ID, given),
  'Mill.retryOne options': (given) => mill.retryOne('mail', given),
  'Mill.cancel options': (given) => mill.cancel(ID, given),
  'Mill.pause options': (given) => mill.pause(ID, given),
  'Mill.resume options': (given) => mill.resume(ID, given),
  'Mill.delete options': (given) => mill.delete(ID, given),
  'Mill.edit options': (given) => mill.edit(ID, { priority: 1 }, given),
  'Mill.unschedule options': (given) => mill.unschedule(greet, 'k', given),
  'Mill.deleteRecurring options': (given) => mill.deleteRecurring('x', given),
  'Mill.workers options': (given) => mill.workers(given),
  'Mill.changes options': (given) => mill.changes('mirror', given),
  'Mill.stopChanges options': (given) => mill.stopChanges('mirror', given),
  'Mill.groups options': (given) => mill.groups(given),
  'Mill.sequences options': (given) => mill.sequences(given),
  'Mill.audit options': (given) => mill.audit(given),
  'Stats.retries options': (given) => mill.stats.retries(given),
  'Stats.processingTimes options': (given) => mill.stats.processingTimes(given),
  'Stats.waitTimes options': (given) => mill.stats.waitTimes(given),
  'Stats.series options': (given) => mill.stats.series(given),
  'Stats.errorGroups options': (given) => mill.stats.errorGroups(given),
  'Mill.retryAll filter': (given) => mill.retryAll(given),
  'Mill.retryAll options': (given) => mill.retryAll({ queue: 'x' }, given),
  'Mill.cancelAll filter': (given) => mill.cancelAll(given),
  'Mill.cancelAll options': (given) => mill.cancelAll({ queue: 'x' }, given),
  'Mill.deleteAll filter': (given) => mill.deleteAll(given),
  'Mill.deleteAll options': (given) => mill.deleteAll({ queue: 'x' }, given),
  'Mill.pauseAll filter': (given) => mill.pauseAll(given),
  'Mill.pauseAll options': (given) => mill.pauseAll({ queue: 'x' }, given),
  'Mill.resumeAll filter': (given) => mill.resumeAll(given),
  'Mill.resumeAll options': (given) => mill.resumeAll({ queue: 'x' }, given),
  'Mill.send options': (given) => mill.send(ID, 'x', undefined, given),
  'Mill.send rest[1]': (given) => mill.send(ID, event('x'), undefined, given),
  'Mill.steps options': (given) => mill.steps(ID, given),
  'Mill.edit change': (given) => mill.edit(ID, given),
  'Mill.group options': (given) => mill.group('x', given),
  'Mill.configure change': (given) => mill.configure(given),
  'Schedules.pause options': (given) => mill.schedules.pause('daily', given),
  'Schedules.resume options': (given) => mill.schedules.resume('daily', given),
  'Schedules.runNow options': (given) => mill.schedules.runNow('daily', given),
  'Schedules.backfill options': (given) => mill.schedules.backfill('daily', new Date(0), new Date(1), given),
  'GroupHandle.pause options': (given) => mill.group('x').pause(given),
  'GroupHandle.resume options': (given) => mill.group('x').resume(given),
  'GroupHandle.cancel options': (given) => mill.group('x').cancel(given),
  'GroupHandle.retryFailed options': (given) => mill.group('x').retryFailed(given),
  'QueueHandle.pause options': (given) => mill.queue('x').pause(given),
  'QueueHandle.resume options': (given) => mill.queue('x').resume(given),
  'QueueHandle.pauseUntil options': (given) => mill.queue('x').pauseUntil('1m', given),
  'Handle.cancel options': (given) => mill.handle(ID).cancel(given),
  'Sequence.start options': (given) => mill.sequence(ID).start(given),
  'Sequence.pause options': (given) => mill.sequence(ID).pause(given),
  'Sequence.resume options': (given) => mill.sequence(ID).resume(given),
  'Sequence.cancel options': (given) => mill.sequence(ID).cancel(given),
  'Sequence.reset options': (given) => mill.sequence(ID).reset(given),
  'Schedules.list options': (given) => mill.schedules.list(given),
  'Schedules.ticks options': (given) => mill.schedules.ticks('x', given),
  'GroupHandle.progress options': (given) => mill.group('x').progress(given),
  'GroupHandle.seal options': (given) => mill.group('x').seal(given),
  'QueueHandle.pauseUntil when': (given) => mill.queue('x').pauseUntil(given),
  'Handle.result options': (given) => mill.handle(ID).result(given),
  'Context.enqueue rest[1]': (given) => inHandler((ctx) => ctx.enqueue(greet, ADA, given)),
  'Context.queue.pauseUntil when': (given) => inHandler((ctx) => ctx.queue.pauseUntil(given)),
  'workflow options': (given) => workflow('x', given),
  'StepContext.enqueue rest[1]': (given) =>
    inBody((w, note) => w.step('s', (s) => s.enqueue(greet, ADA, given).then(() => 1, note))),
  'Work.all options': (given) => inBody((w) => w.all([], given)),
  'Work.call rest[1]': (given) => inBody((w) => w.call(greet, ADA, given)),
  'Work.each options': (given) => inBody((w) => w.each('x', [], () => 1, given)),
  'Work.enqueue rest[1]': (given) => inBody((w) => w.enqueue(greet, ADA, given)),
  'Work.sleep options': (given) => inBody((w) => w.sleep(1, given)),
  'Work.sleep span': (given) => inBody((w) => w.sleep(given)),
  'Work.sleepUntil options': (given) => inBody((w) => w.sleepUntil(new Date(0), given)),
  'Work.step options': (given) => inBody((w) => w.step('x', given, () => 1)),
  'Work.waitFor options': (given) => inBody((w) => w.waitFor(event('x'), given)),
  'EnqueueNext change': (given) => hooked((next) => next(given)),
  'EnqueueNext change()': (given) => hooked((next) => next(() => given)),
}

/** What a call inside the handler of a real attempt throws. */
async function inHandler(call: (ctx: Context) => unknown): Promise<unknown> {
  const t = await testing({ jobs: [greet, job('calls', async (_: undefined, ctx) => call(ctx))] })
  await t.mill.enqueue('calls')
  try {
    return await t.consume()
  } finally {
    await t.close()
  }
}

/** What a verb of a workflow's body rejects with. */
async function inBody(call: (w: Work, note: (error: unknown) => void) => Promise<unknown>): Promise<unknown> {
  const refused: unknown[] = []
  const body = workflow('calls', async (_: undefined, w) => {
    const note = (error: unknown): void => void refused.push(error)
    await call(w, note).catch(note)
  })
  const t = await testing({ jobs: [greet, body] })
  await t.mill.enqueue(body)
  await t.drain()
  await t.close()
  if (refused.length > 0) throw refused[0]
  return undefined
}

async function hooked(call: (next: EnqueueNext) => unknown): Promise<unknown> {
  const t = await testing({ jobs: [greet], hooks: { enqueue: (_, next) => call(next) } })
  try {
    return await t.mill.enqueue(greet, ADA)
  } finally {
    await t.close()
  }
}

test('every verb of the public types that takes an object is called here', () => {
  expect(doors.map((door) => door.name).sort()).toEqual(Object.keys(CALLS).sort())
})

test.each(Object.keys(CALLS))('%s: an unknown option name is refused at every level, with its path', async (name) => {
  const levels = doors.find((door) => door.name === name)?.levels ?? []
  const ignored: string[] = []
  for (const level of levels) {
    const error = await refusalOf(async () => CALLS[name]?.(valueOf(level) as never))
    if (!isNamed(level, error)) ignored.push(`${pathOf(level.keys)}: ${error?.message ?? 'accepted'}`)
  }
  expect(levels.length).toBeGreaterThan(0)
  expect(ignored).toEqual([])
})

test.each([
  [
    'job.run()',
    () => job('calls', async (_: undefined, ctx) => ctx.enqueue(greet, ADA, BOGUS as never)).run(undefined),
  ],
])('%s refuses an unknown name too', async (_, call) => {
  expect((await refusalOf(call))?.problems).toEqual([{ path: 'options.bogus', message: 'is not an option' }])
})

/** It has no fields of its own, so nothing of it would be read. */
class Settings {
  get queue(): string {
    return 'mail'
  }
}

/** Objects that hold no options: each would pass for an empty one. */
const CONTAINERS: readonly (readonly [came: string, given: () => unknown])[] = [
  ['a Map', () => new Map([['queue', 'mail']])],
  ['a Promise', () => Promise.resolve({ queue: 'mail' })],
  ['an Array', () => ['queue']],
  ['a Settings', () => new Settings()],
]

test.each(Object.keys(CALLS))('%s: a Map, a promise, an array and an object of a class are refused', async (name) => {
  const accepted: string[] = []
  for (const [came, given] of CONTAINERS) {
    const error = await refusalOf(async () => CALLS[name]?.(given() as never))
    if (error?.code?.startsWith('E_') !== true || !error.message.toLowerCase().includes(`got ${came.toLowerCase()}`))
      accepted.push(`${came}: ${error?.message ?? 'accepted'}`)
  }
  expect(accepted).toEqual([])
})

test.each(['jobs', 'capture', 'queues', 'hooks', 'retry', 'keep', 'redact', 'encryption', 'store'])(
  'millrace: %s refuses them too, by its name',
  async (option) => {
    const accepted: string[] = []
    for (const [came, given] of CONTAINERS) {
      // Arrays of jobs and of hooks are right, and a handle of a SQLite library is an object of a class.
      if (came === 'an Array' && (option === 'jobs' || option === 'hooks' || option === 'redact')) continue
      if (came === 'a Settings' && option === 'store') continue
      const error = await refusalOf(() => millrace({ logger: false, store: ':memory:', [option]: given() }))
      if (error?.message?.includes(option) !== true || !/got (a|an) |not yet/.test(error.message))
        accepted.push(`${came}: ${error?.message ?? 'accepted'}`)
    }
    expect(accepted).toEqual([])
  },
)

test.each<[string, () => unknown, RegExp]>([
  ['lazy(5)', () => lazy(5 as never), /lazy\(\) takes a function that imports the handler, .*got 5/],
  ['lazy(import())', () => lazy(Promise.resolve(greet) as never), /got a Promise/],
  ['a blank store', () => millrace({ store: ' ', logger: false }), /store must be a path.*got " "/],
  ['sqlite of a blank', () => sqlite(' '), /target must be a path.*got " "/],
  [
    'a timezone of null',
    () => mill.recurring('x', greet, ADA, '0 9 * * *', { timezone: null as never }),
    /options\.timezone must be .*got null/,
  ],
])('%s is refused', async (_, call, message) => {
  expect((await refusalOf(async () => call()))?.message).toMatch(message)
})

async function refusalOf(call: () => unknown): Promise<InvalidOptionsError | undefined> {
  try {
    await call()
    return undefined
  } catch (error) {
    return error as InvalidOptionsError
  }
}

/** An object with the unknown name, nested at its path. A duration is an object with fields. */
function valueOf({ keys, type }: Level): unknown {
  const innermost: object = type === 'DurationLike' ? { hours: 1, ...BOGUS } : BOGUS
  return keys.reduceRight<unknown>((inner, key) => {
    const index = /^\[(\d+)\]$/.exec(key)?.[1]
    // Before the options of `whenDone` there are its job and its payload.
    if (index !== undefined) return [...[greet, ADA].slice(0, Number(index)), inner]
    return { [key === '*' ? 'anything' : key]: inner }
  }, innermost)
}

function pathOf(keys: readonly string[]): string {
  return keys
    .map((key) => (key.startsWith('[') ? key : `.${key === '*' ? 'anything' : key}`))
    .join('')
    .replace(/^\./, '')
}

/** By its path; a duration is one value, whose message names the field. */
function isNamed({ keys, type }: Level, error: InvalidOptionsError | undefined): boolean {
  const at = pathOf(keys)
  if (error === undefined || !error.code.startsWith('E_')) return false
  if (type === 'DurationLike') return error.message.includes('with the field "bogus"')
  const path = at === '' ? 'bogus' : `${at}.bogus`
  return (error.problems ?? []).some((problem) => problem.path === path || problem.path.endsWith(`.${path}`))
}
