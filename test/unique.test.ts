import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { category, job } from '../src/job/definition/define.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'
import { isShort } from './support/fresh-store.js'
import { testing } from './support/testing.js'

describe('through the public API', () => {
  test('a job is unique by its definition, and an enqueue overrides it, field by field', async () => {
    const sync = job('sync', {
      run: async (p: { user: number; reason: string }) => p.reason,
      unique: { by: 'user', for: '10m' },
    })
    const t = await testing({ jobs: [sync] })
    const first = await t.mill.enqueue(sync, { user: 7, reason: 'a' })
    const second = await t.mill.enqueue(sync, { user: 7, reason: 'b' })
    expect([second.isNew, second.id]).toEqual([false, first.id])
    expect((await t.mill.enqueue(sync, { user: 8, reason: 'c' })).isNew).toBe(true)
    expect((await t.mill.enqueue(sync, { user: 7, reason: 'd' }, { unique: { by: 'reason' } })).isNew).toBe(true)
    expect((await t.mill.enqueue(sync, { user: 7, reason: 'e' }, { unique: false })).isNew).toBe(true)
    const rejecting = t.mill.enqueue(sync, { user: 7, reason: 'f' }, { unique: { onDuplicate: 'reject' } })
    await expect(rejecting).rejects.toMatchObject({
      code: 'E_DUPLICATE_JOB',
      existingId: first.id,
      message: expect.stringContaining('unique value user:7 is unfinished') as string,
    })
    await t.drain()
    expect((await t.mill.enqueue(sync, { user: 7, reason: 'g' })).isNew).toBe(false)
    await t.advance('10m')
    expect((await t.mill.enqueue(sync, { user: 7, reason: 'h' })).isNew).toBe(true)
    await t.close()
  })

  test('a handler schedules its own key: the successor is moved, found by the key, and runs at its time', async () => {
    const seen: unknown[] = []
    const other = job('other', async () => undefined)
    const timer = job('timer', async (p: { n: number }) => {
      seen.push(`run ${p.n}`)
      if (p.n !== 1) return
      const next = await t.mill.schedule(timer, { n: 2 }, '1h', { key: 'k' })
      const moved = await t.mill.schedule(timer, { n: 3 }, '2h', { key: 'k' })
      const child = await t.mill.enqueue(other, undefined, { after: [[timer, 'k']] })
      const after = (await t.mill.get(child.id))?.after
      seen.push(next.isNew, moved.isNew, moved.id === next.id, after?.[0] === next.id)
      seen.push((await t.mill.get(next.id))?.state)
    })
    const t = await testing({ jobs: [timer, other] })
    await t.mill.schedule(timer, { n: 1 }, 0, { key: 'k' })
    await t.drain()
    expect(seen).toEqual(['run 1', true, false, true, true, 'blocked'])
    await t.advance('1h')
    await t.drain()
    expect(seen).toHaveLength(6)
    await t.advance('1h')
    await t.drain()
    expect(seen.at(-1)).toBe('run 3')
    await t.close()
  })

  test('unschedule while the job of the key runs removes its successor, and then has nothing to remove', async () => {
    const answers: boolean[] = []
    const timer = job('timer', async (p: { n: number }) => {
      if (p.n !== 1) throw new Error('it was unscheduled')
      await t.mill.schedule(timer, { n: 2 }, '1m', { key: 'k' })
      answers.push(await t.mill.unschedule(timer, 'k'), await t.mill.unschedule(timer, 'k'))
      answers.push((await t.mill.enqueue(timer, { n: 3 }, { key: 'k' })).isNew)
    })
    const t = await testing({ jobs: [timer] })
    const first = await t.mill.enqueue(timer, { n: 1 }, { key: 'k' })
    await t.drain()
    await t.advance('1h')
    await t.drain()
    expect(answers).toEqual([true, false, false])
    expect((await t.mill.get(first.id))?.state).toBe('done')
    await t.close()
  })

  test('a category sets it for its jobs, each by its own name, and a job may switch it off', async () => {
    const once = category('once', { unique: { by: (p: { id: number }) => p.id, onDuplicate: 'reject' } })
    const run = async (p: { id: number }): Promise<number> => p.id
    const one = job('one', { run, is: [once] })
    const two = job('two', { run, is: [once] })
    const free = job('free', { run, is: [once], unique: false })
    const t = await testing({ jobs: [one, two, free] })
    for (const each of [one, two, free]) await t.mill.enqueue(each, { id: 1 })
    for (const each of [one, two])
      await expect(t.mill.enqueue(each, { id: 1 })).rejects.toMatchObject({ code: 'E_DUPLICATE_JOB' })
    expect((await t.mill.enqueue(free, { id: 1 })).isNew).toBe(true)
    await t.close()
  })

  test('without by the whole payload counts, whatever the order of its keys', async () => {
    const work = job('work', { run: async (p: unknown) => p, unique: {} })
    const t = await testing({ jobs: [work] })
    const at = new Date(0)
    const first = await t.mill.enqueue(work, { a: 1, tags: new Set(['x', 'y']), at, deep: { b: 1, c: 2 } })
    const same = { deep: { c: 2, b: 1 }, at: new Date(0), tags: new Set(['y', 'x']), a: 1, none: undefined }
    expect((await t.mill.enqueue(work, same)).id).toBe(first.id)
    for (const other of [{ ...same, a: '1' }, { ...same, at: 0 }, { ...same, tags: ['x', 'y'] }, undefined, null])
      expect((await t.mill.enqueue(work, other)).isNew).toBe(true)
    const long = { text: 'x'.repeat(100_000) }
    const big = await t.mill.enqueue(work, long)
    expect((await t.mill.enqueue(work, { ...long })).id).toBe(big.id)
    expect((await t.mill.enqueue(work, { text: `${long.text}y` })).isNew).toBe(true)
    await t.close()
  })

  test('a debounced job runs once, with the last payload, and is not postponed for ever', async () => {
    const ran: string[] = []
    const index = job('index', {
      run: async (p: { doc: string; version: number }) => void ran.push(`${p.doc}${p.version}`),
      unique: { by: 'doc', for: '1m', onDuplicate: 'reschedule' },
    })
    const t = await testing({ jobs: [index] })
    const started = t.now.getTime()
    for (let version = 1; version <= 30; version += 1) {
      await t.mill.enqueue(index, { doc: 'a', version }, { in: '10s', labels: [`v${version}`] })
      await t.advance('4s')
      await t.drain()
    }
    expect(ran[0]).toBe('a15')
    await t.advance('10s')
    await t.drain()
    expect(ran).toEqual(['a15', 'a30'])
    const records = []
    for await (const record of t.mill.find({ order: 'oldest' })) records.push(record)
    expect(records.map((each) => each.labels)).toEqual([['v15'], ['v30']])
    expect(records[0]?.dueAt.getTime()).toBe(started + 60_000)
    await t.close()
  })

  test('a handler that enqueues its own job finds itself as the duplicate, unless only waiting jobs count', async () => {
    const again: boolean[] = []
    const crawl = job('crawl', {
      run: async (p: { site: string; whilst: 'unfinished' | 'waiting'; left: number }, ctx) => {
        if (p.left === 0) return
        const next = { ...p, left: p.left - 1 }
        again.push((await ctx.enqueue('crawl', next, { unique: { by: 'site', while: p.whilst } })).isNew)
      },
      unique: { by: 'site' },
    })
    const t = await testing({ jobs: [crawl] })
    await t.mill.enqueue(crawl, { site: 'a', whilst: 'unfinished', left: 2 })
    await t.drain()
    await t.mill.enqueue(crawl, { site: 'a', whilst: 'waiting', left: 2 })
    await t.drain()
    expect(again).toEqual([false, true, true])
    await t.close()
  })

  test('in a bulk each item follows its own policy, also against items of the same bulk', async () => {
    const work = job('work', { run: async (p: { n: number; v: string }) => p.v, unique: { by: 'n' } })
    const t = await testing({ jobs: [work] })
    const payloads = [
      { n: 1, v: 'a' },
      { n: 1, v: 'b' },
      { n: 2, v: 'c' },
      { n: 2, v: 'd' },
      { n: 3, v: 'e' },
      { n: 3, v: 'f' },
    ]
    const policies = ['ignore', 'replace', 'reschedule'] as const
    const handles = await t.mill.enqueueMany(work, payloads, (p) => ({
      unique: { onDuplicate: policies[p.n - 1] },
    }))
    expect(handles.map((handle) => handle.isNew)).toEqual([true, false, true, true, true, false])
    const records = await Promise.all(handles.map((handle) => handle.get()))
    expect(records.map((record) => [(record?.payload as { v: string } | undefined)?.v, record?.state])).toEqual([
      ['a', 'ready'],
      ['a', 'ready'],
      ['c', 'cancelled'],
      ['d', 'ready'],
      ['f', 'ready'],
      ['f', 'ready'],
    ])
    const refused = t.mill.enqueueMany(work, [{ n: 4, v: 'g' }, ...payloads], { unique: { onDuplicate: 'reject' } })
    await expect(refused).rejects.toMatchObject({ code: 'E_DUPLICATE_JOB' })
    expect((await t.mill.enqueue(work, { n: 4, v: 'h' })).isNew).toBe(true)
    await t.close()
  })

  test('an edit keeps a job’s unique slot, and cannot change it', async () => {
    const work = job('work', { run: async (p: { n: number }) => p.n, unique: { by: 'n' } })
    const t = await testing({ jobs: [work] })
    const first = await t.mill.enqueue(work, { n: 1 })
    expect(await t.mill.edit(first.id, { payload: { n: 2 }, priority: 3 })).toBe(true)
    expect((await t.mill.enqueue(work, { n: 1 })).id).toBe(first.id)
    expect((await t.mill.enqueue(work, { n: 2 })).isNew).toBe(true)
    await expect(t.mill.edit(first.id, { unique: { by: 'n' } } as never)).rejects.toThrow(/unique cannot be edited/)
    expect(await t.mill.cancel(first.id)).toBe(true)
    expect((await t.mill.enqueue(work, { n: 1 })).isNew).toBe(true)
    await expect(t.mill.retry(first.id)).rejects.toMatchObject({ code: 'E_DUPLICATE_JOB' })
    await t.close()
  })

  test('a window outlives a job of which nothing is kept', async () => {
    const work = job('work', { run: async () => {}, keep: 'none', unique: { for: '1d' } })
    const t = await testing({ jobs: [work] })
    const first = await t.mill.enqueue(work)
    await t.drain()
    const second = await t.mill.enqueue(work)
    expect([second.isNew, second.id, await second.get()]).toEqual([false, first.id, undefined])
    await t.close()
  })
})

/** Real processes on one store, started at the same moment. */
const processes = useProcesses()
/** Each costs the start of a process with connections of its own; the matrix starts eight. */
const PROCESSES = isShort ? 4 : 8
const VALUES = 15

interface Told {
  readonly policy: string
  readonly n: number
  readonly id?: string
  readonly isNew?: boolean
  readonly code?: string
}

/** When this file exists, the producers stop. */
const enough = (): string => join(processes().folder, 'enough')

function crowd(body: string): { children: Child[]; go: () => Promise<void> } {
  const gate = join(processes().folder, `go-${Math.trunc(performance.now())}`)
  const children = Array.from({ length: PROCESSES }, (_, me) =>
    processes().run(`const me = ${me}
      const { existsSync } = await import('node:fs')
      const work = job('work', { run: async () => {}, keep: { cancelled: '1d' } })
      const mill = await millrace({ store: file, jobs: { work }, logger: false, poll: '20ms' })
      const told = []
      const tell = async (policy, n, enqueueing) => told.push(await enqueueing.then(
        (handle) => ({ policy, n, id: handle.id, isNew: handle.isNew }), (error) => ({ policy, n, code: error.code ?? String(error) })))
      say('ready')
      while (!existsSync(${JSON.stringify(gate)})) await new Promise((next) => setTimeout(next, 2))
      ${body}`),
  )
  const go = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.receives('ready')))
    writeFileSync(gate, '')
  }
  return { children, go }
}

async function toldBy(children: readonly Child[], what = 'told'): Promise<Told[]> {
  const said = await Promise.all(children.map((child) => child.receives(what, 60_000)))
  return said.flatMap((each) => each['told'] as Told[])
}

describe('with many processes at once', () => {
  test('each policy accepts exactly one job, and a throttle one per window', { timeout: 120_000 }, async () => {
    const windowMs = 150
    const { children, go } = crowd(`
      for (let n = 0; n < ${VALUES}; n += 1)
        await Promise.all(['ignore', 'reject', 'replace', 'reschedule'].map((onDuplicate) =>
          tell(onDuplicate, n, mill.enqueue(work, { n, onDuplicate, me }, { in: '1h', unique: { by: ['n', 'onDuplicate'], onDuplicate } }))))
      say('told', { told: told.splice(0) })
      await mill.start()
      const end = Date.now() + 1_500
      while (Date.now() < end) await tell('throttle', 0, mill.enqueue(work, { me }, { unique: { by: () => 0, for: ${windowMs}, while: 'waiting' } }))
      say('throttled', { told }); await mill.close()`)
    await go()
    expectOneOfEach(await toldBy(children))
    const letIn = (await toldBy(children, 'throttled')).filter((each) => each.isNew === true)
    const jobs = await census(`{ order: 'oldest' }`)
    const unfinished = jobs.filter(({ state }) => state === 'scheduled')
    expect(unfinished).toHaveLength(4 * VALUES)
    expect(new Set(unfinished.map((each) => `${each.payload.onDuplicate} ${each.payload.n}`)).size).toBe(4 * VALUES)
    const times = jobs.filter(({ payload }) => payload.n === undefined).map((each) => each.createdAt)
    expect(times).toHaveLength(letIn.length)
    expect(times.length).toBeGreaterThan(2)
    for (const [i, time] of times.entries())
      if (i > 0) expect(time - (times[i - 1] ?? 0)).toBeGreaterThanOrEqual(windowMs)
  })

  function expectOneOfEach(told: readonly Told[]): void {
    const of = (policy: string): Told[] => told.filter((each) => each.policy === policy)
    expect(told).toHaveLength(4 * VALUES * PROCESSES)
    for (const policy of ['ignore', 'reschedule']) {
      expect(of(policy).filter((each) => each.isNew === true)).toHaveLength(VALUES)
      for (let n = 0; n < VALUES; n += 1) {
        const ids = of(policy).flatMap((each) => (each.n === n ? [each.id] : []))
        expect(new Set(ids).size).toBe(1)
      }
    }
    expect(of('reject').filter((each) => each.isNew === true)).toHaveLength(VALUES)
    expect(of('reject').filter((each) => each.code === 'E_DUPLICATE_JOB')).toHaveLength(VALUES * (PROCESSES - 1))
    expect(of('replace').filter((each) => each.isNew === true)).toHaveLength(VALUES * PROCESSES)
  }

  test('kill -9 in between leaves no unique slot held twice and none without a job', { timeout: 120_000 }, async () => {
    const { children, go } = crowd(`
      for (let n = 0; n < 100_000; n += 1) {
        await tell('ignore', n, mill.enqueue(work, { n }, { in: '1h', unique: { by: 'n', for: '1h' } }))
        if (n === 30) say('under way')
        if (existsSync(${JSON.stringify(enough())})) break
      }
      say('told', { told }); await mill.close()`)
    await go()
    const doomed = children.slice(0, PROCESSES / 2)
    await Promise.all(doomed.map((child) => child.receives('under way', 60_000)))
    await Promise.all(doomed.map((child) => child.kill()))
    writeFileSync(enough(), '')
    const survivors = children.slice(PROCESSES / 2)
    const told = await toldBy(survivors)
    const jobs = await census(`{}`)
    const byValue = new Map(jobs.map((each) => [each.payload.n, each.id]))
    expect(byValue.size, 'no value has two jobs').toBe(jobs.length)
    for (const each of told) expect(byValue.get(each.n), `the job of value ${each.n}`).toBe(each.id)
    const last = processes().run(`
      const work = job('work', async () => {})
      const mill = await millrace({ store: file, jobs: { work }, logger: false })
      const told = []
      for (let n = 0; n < ${jobs.length + 5}; n += 1) {
        const handle = await mill.enqueue(work, { n }, { in: '1h', unique: { by: 'n', for: '1h' } })
        told.push({ n, id: handle.id, isNew: handle.isNew })
      }
      say('told', { told }); await mill.close()`)
    for (const each of await toldBy([last])) expect(each.isNew, `value ${each.n}`).toBe(byValue.has(each.n) === false)
  })

  async function census(
    filter: string,
  ): Promise<{ id: string; state: string; createdAt: number; payload: { n?: number; onDuplicate: string } }[]> {
    const child = processes().run(`
      const mill = await millrace({ store: file, logger: false })
      const census = []
      for await (const found of mill.find(${filter})) census.push({ id: found.id, state: found.state, payload: found.payload, createdAt: found.createdAt.getTime() })
      say('census', { census }); await mill.close()`)
    return (await child.receives('census'))['census'] as never
  }
})
