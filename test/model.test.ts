import fc from 'fast-check'
import { expect, test } from 'vitest'
import { job } from '../src/job/definition/define.js'
import type { State } from '../src/job/rules/states.js'
import type { TestKit } from '../src/testing/index.js'
import { onPostgres } from './support/fresh-store.js'
import { testing } from './support/testing.js'

/**
 * Random commands against a plain model, shrunk when they disagree. The model has no SQL, leases or claims: a list
 * of jobs, a clock, and the rules a user would write down.
 */
interface ModelJob {
  readonly order: number
  readonly key: string | null
  readonly fails: number
  priority: number
  state: State | 'gone'
  dueAt: number
  attempt: number
  retries: number
}

interface Model {
  now: number
  jobs: ModelJob[]
}

interface Real {
  readonly t: TestKit
  readonly ids: string[]
}

const RETRY_LIMIT = 2
const BACKOFF_MS = 10_000
const POINT_MS = 600_000

const work = job('work', {
  run: async (p: { fails: number }, ctx) => {
    if (ctx.attempt <= p.fails) throw new Error('planned')
    return ctx.attempt
  },
  retry: { limit: RETRY_LIMIT, backoff: { start: BACKOFF_MS, factor: 1 }, jitter: 0 },
})

const isFinal = (state: ModelJob['state']): boolean => state === 'done' || state === 'failed' || state === 'cancelled'
const isLive = (each: ModelJob): boolean => each.state !== 'gone' && !isFinal(each.state)

function promote(model: Model): void {
  for (const each of model.jobs)
    if ((each.state === 'scheduled' || each.state === 'retrying') && each.dueAt <= model.now) each.state = 'ready'
}

function nextReady(model: Model): ModelJob | undefined {
  const line = model.jobs.filter((each) => each.state === 'ready')
  line.sort((a, b) => a.dueAt - a.priority * POINT_MS - (b.dueAt - b.priority * POINT_MS) || a.order - b.order)
  return line[0]
}

/** After every command the two must agree on every job. */
async function agree(model: Model, real: Real): Promise<void> {
  promote(model)
  await real.t.advance(0)
  const found: unknown[] = []
  for (const id of real.ids) {
    const record = await real.t.mill.get(id)
    found.push(
      record === undefined
        ? 'gone'
        : [record.state, record.attempt, isFinal(record.state) ? 0 : record.dueAt.getTime()],
    )
  }
  const expected = model.jobs.map((each) =>
    each.state === 'gone' ? 'gone' : [each.state, each.attempt, isFinal(each.state) ? 0 : each.dueAt],
  )
  expect(found).toEqual(expected)
}

type Step = fc.AsyncCommand<Model, Real>

/** A command that prints itself and compares afterwards. */
function command(name: string, run: (model: Model, real: Real) => Promise<void>): Step {
  return {
    check: () => true,
    run: async (model, real) => {
      await run(model, real)
      await agree(model, real)
    },
    toString: () => name,
  }
}

const target = (model: Model, at: number): ModelJob | undefined =>
  model.jobs.length === 0 ? undefined : model.jobs[at % model.jobs.length]

const enqueue = (key: string | null, delay: number, fails: number, priority: number): Step =>
  command(`enqueue(${key}, in ${delay}, fails ${fails}, priority ${priority})`, async (model, real) => {
    const handle = await real.t.mill.enqueue(work, { fails }, { in: delay, priority, ...(key === null ? {} : { key }) })
    const holder = key === null ? undefined : model.jobs.find((each) => each.key === key && isLive(each))
    expect(handle.isNew).toBe(holder === undefined)
    if (holder !== undefined) return expect(handle.id).toBe(real.ids[holder.order])
    model.jobs.push({
      order: real.ids.length,
      key,
      fails,
      priority,
      state: delay > 0 ? 'scheduled' : 'ready',
      dueAt: model.now + delay,
      attempt: 0,
      retries: 0,
    })
    real.ids.push(handle.id)
  })

const schedule = (key: string, delay: number): Step =>
  command(`schedule(${key}, in ${delay})`, async (model, real) => {
    const handle = await real.t.mill.schedule(work, { fails: 0 }, delay, { key })
    const holder = model.jobs.find((each) => each.key === key && isLive(each))
    expect(handle.isNew).toBe(holder === undefined)
    const state = delay > 0 ? 'scheduled' : 'ready'
    if (holder === undefined) {
      model.jobs.push({
        order: real.ids.length,
        key,
        fails: 0,
        priority: 0,
        state,
        dueAt: model.now + delay,
        attempt: 0,
        retries: 0,
      })
      real.ids.push(handle.id)
    } else Object.assign(holder, { state, dueAt: model.now + delay, priority: 0, fails: 0 })
  })

const advance = (ms: number): Step =>
  command(`advance(${ms})`, async (model, real) => {
    model.now += ms
    await real.t.advance(ms)
  })

const consume = (): Step =>
  command('consume()', async (model, real) => {
    promote(model)
    const next = nextReady(model)
    if (next === undefined) return await expect(real.t.consume()).rejects.toMatchObject({ code: 'E_QUEUE_EMPTY' })
    next.attempt += 1
    if (next.attempt > next.fails) {
      expect(await real.t.consume()).toBe(next.attempt)
      next.state = 'done'
      return
    }
    await expect(real.t.consume()).rejects.toThrow('planned')
    if (next.retries >= RETRY_LIMIT) next.state = 'failed'
    else Object.assign(next, { state: 'retrying', retries: next.retries + 1, dueAt: model.now + BACKOFF_MS })
  })

const cancel = (at: number): Step =>
  command(`cancel(${at})`, async (model, real) => {
    const each = target(model, at)
    if (each === undefined) return
    const can = isLive(each)
    expect(await real.t.mill.cancel(real.ids[each.order] as string)).toBe(can)
    if (can) each.state = 'cancelled'
  })

const retry = (at: number): Step =>
  command(`retry(${at})`, async (model, real) => {
    const each = target(model, at)
    if (each === undefined) return
    const id = real.ids[each.order] as string
    const can = each.state === 'failed' || each.state === 'cancelled' || each.state === 'retrying'
    const taken =
      each.key !== null &&
      isFinal(each.state) &&
      model.jobs.some((other) => other !== each && other.key === each.key && isLive(other))
    if (can && taken) return await expect(real.t.mill.retry(id)).rejects.toMatchObject({ code: 'E_DUPLICATE_KEY' })
    expect(await real.t.mill.retry(id)).toBe(can)
    if (can) Object.assign(each, { state: 'ready', dueAt: model.now, retries: 0 })
  })

const remove = (at: number): Step =>
  command(`delete(${at})`, async (model, real) => {
    const each = target(model, at)
    if (each === undefined) return
    expect(await real.t.mill.delete(real.ids[each.order] as string)).toBe(each.state !== 'gone')
    each.state = 'gone'
  })

const edit = (at: number, priority: number): Step =>
  command(`edit(${at}, priority ${priority})`, async (model, real) => {
    const each = target(model, at)
    if (each === undefined) return
    expect(await real.t.mill.edit(real.ids[each.order] as string, { priority })).toBe(isLive(each))
    if (isLive(each)) each.priority = priority
  })

const unschedule = (key: string): Step =>
  command(`unschedule(${key})`, async (model, real) => {
    const holder = model.jobs.find((each) => each.key === key && isLive(each))
    expect(await real.t.mill.unschedule(work, key)).toBe(holder !== undefined)
    if (holder !== undefined) holder.state = 'cancelled'
  })

const key = fc.constantFrom('a', 'b')
const place = fc.nat(30)
const delay = fc.constantFrom(0, 0, 1, 5_000, 3_600_000)
const priority = fc.integer({ min: -2, max: 2 })
const commands = [
  fc.tuple(fc.option(key), delay, fc.nat(4), priority).map((given) => enqueue(...given)),
  fc.tuple(key, delay).map((given) => schedule(...given)),
  fc.constantFrom(1, 4_999, 10_000, 3_600_000).map(advance),
  fc.constant(null).map(consume),
  fc.constant(null).map(consume),
  place.map(cancel),
  place.map(retry),
  place.map(remove),
  fc.tuple(place, priority).map((given) => edit(...given)),
  key.map(unschedule),
]

/** Creating a schema for each run is slow: the same commands, fewer of them. */
const EXTENT = onPostgres
  ? { numRuns: 40, interruptAfterTimeLimit: 8_000 }
  : { numRuns: 250, interruptAfterTimeLimit: 60_000 }

test('the engine agrees with a plain model for any commands', { timeout: 110_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 60, size: 'max' }), async (steps) => {
      const t = await testing({ jobs: [work] })
      try {
        await fc.asyncModelRun(() => ({ model: { now: t.now.getTime(), jobs: [] }, real: { t, ids: [] } }), steps)
      } finally {
        await t.close()
      }
    }),
    { ...EXTENT, markInterruptAsFailure: false },
  )
})
