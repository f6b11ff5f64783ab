import { describe, expect, test, vi } from 'vitest'
import { category, CycleError, job, ParentMissingError } from '../src/index.js'
import type { Handle } from '../src/index.js'
import { testing } from '../src/testing/index.js'
import { describeAboveStore } from './support/above-store.js'
import { isShort, onPostgres } from './support/fresh-store.js'
import { openedMills } from './support/opened-mills.js'

/** Jobs that run after others, and flows, through the public API; on both stores. */

const { open } = openedMills('links', { poll: '20ms' })

/** Jobs of a large flow. */
const NODES = isShort ? 2_000 : 10_000

const state = async (handle: Handle<unknown>): Promise<string> => (await handle.get())?.state ?? 'gone'
const soon = { timeout: '30s' } as const

/** Fails for the numbers in `failing`. */
function linkedJobs() {
  const ran: string[] = []
  const failing = new Set<string>()
  const work = (p: { n: string }): string => {
    if (failing.has(p.n)) throw new Error(`${p.n} is broken`)
    ran.push(p.n)
    return p.n
  }
  const extract = job('extract', { run: work, retry: { limit: 0 } })
  const load = job('load', { run: (p: { n: string }) => void ran.push(p.n), retry: { limit: 0 } })
  const keyed = job('keyed', {
    run: (p: { of: string }) => void ran.push(`after ${p.of}`),
    after: (p) => [[extract, p.of]],
  })
  return { ran, failing, extract, load, keyed, jobs: [extract, load, keyed] }
}

describe('a job after others', () => {
  test('runs when all are done, however they are named', async () => {
    const { ran, extract, load, keyed, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const a = await mill.enqueue(extract, { n: 'a' })
    const b = await mill.enqueue(extract, { n: 'b' }, { key: 'b' })
    const c = await mill.enqueue(extract, { n: 'c' })
    const last = await mill.enqueue(load, { n: 'last' }, { after: [a, [extract, 'b'], ['extract', 'b'], c.id] })
    const own = await mill.enqueue(keyed, { of: 'b' })
    expect([await state(last), await state(own)]).toEqual(['blocked', 'blocked'])
    expect((await last.get())?.after).toEqual([a.id, b.id, c.id])
    await mill.start()
    await Promise.all([last.result(soon), own.result(soon)])
    expect(ran.indexOf('last')).toBeGreaterThan(Math.max(...['a', 'b', 'c'].map((n) => ran.indexOf(n))))
    expect(ran.indexOf('after b')).toBeGreaterThan(ran.indexOf('b'))
  })

  test('the after of an enqueue replaces that of the definition', async () => {
    const { keyed, jobs } = linkedJobs()
    const mill = await open({ jobs })
    await expect(mill.enqueue(keyed, { of: 'nobody' })).rejects.toBeInstanceOf(ParentMissingError)
    expect(await state(await mill.enqueue(keyed, { of: 'nobody' }, { after: [] }))).toBe('ready')
  })

  test('waits, is cancelled or runs when one fails, by the policy of enqueue, job or category', async () => {
    const { failing, extract, load } = linkedJobs()
    const careless = category('careless', { onParentFailure: 'run' })
    const report = job('report', { run: () => 'told', is: [careless] })
    const strict = job('strict', { run: () => 'done', onParentFailure: 'cancel' })
    const mill = await open({ jobs: [extract, load, report, strict] })
    failing.add('a')
    const a = await mill.enqueue(extract, { n: 'a' })
    const after = { after: [a] }
    const [waits, runs, falls] = [
      await mill.enqueue(load, { n: 'x' }, after),
      await mill.enqueue(report, undefined, after),
      await mill.enqueue(strict, undefined, after),
    ]
    const grandchild = await mill.enqueue(load, { n: 'y' }, { after: [falls], onParentFailure: 'cancel' })
    await mill.start()
    expect(await runs.result(soon)).toBe('told')
    await expect(falls.result(soon)).rejects.toThrow(`its parent extract ${a.id} failed`)
    await expect(grandchild.result(soon)).rejects.toThrow(`its parent strict ${falls.id} was cancelled`)
    expect(await state(waits)).toBe('blocked')
    failing.clear()
    expect(await mill.retry(a.id)).toBe(true)
    await waits.result(soon)
    expect(await mill.retry(falls.id)).toBe(true)
    expect(await falls.result(soon)).toBe('done')
  })

  test('does not stay blocked by a parent that is deleted', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const parent = await mill.enqueue(extract, { n: 'a' }, { in: '1h' })
    const [waits, runs] = [
      await mill.enqueue(load, { n: 'x' }, { after: [parent] }),
      await mill.enqueue(load, { n: 'y' }, { after: [parent], onParentFailure: 'run' }),
    ]
    await mill.start()
    expect(await mill.delete(parent.id)).toBe(true)
    await expect(waits.result(soon)).rejects.toThrow(`its parent ${parent.id} is gone`)
    await runs.result(soon)
  })

  test('does not stay blocked by a failed parent that is pruned', async () => {
    const { failing, extract, load } = linkedJobs()
    const brief = job('brief', {
      ...(extract.options as object),
      run: extract.options.run as never,
      keep: { failed: '200ms' },
    })
    const mill = await open({ jobs: [brief, load] })
    failing.add('a')
    const parent = await mill.enqueue(brief, { n: 'a' } as never)
    const child = await mill.enqueue(load, { n: 'x' }, { after: [parent] })
    await mill.start()
    await expect(parent.result(soon)).rejects.toThrow('a is broken')
    // Finished jobs are pruned at the start, and then every half minute.
    await vi.waitFor(
      async () => {
        await mill.stop()
        await mill.start()
        await expect(child.result({ timeout: '1s' })).rejects.toThrow('is gone')
      },
      { timeout: 30_000 },
    )
  })

  test('can be paused, resumed, edited, rescheduled, cancelled and expire while it is blocked', async () => {
    const { ran, extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const parent = await mill.enqueue(extract, { n: 'a' }, { in: '1h' })
    const child = await mill.enqueue(load, { n: 'x' }, { after: [parent], key: 'k' })
    const expiring = await mill.enqueue(load, { n: 'late' }, { after: [parent], expires: '100ms' })
    const dropped = await mill.enqueue(load, { n: 'dropped' }, { after: [parent] })
    expect(await mill.pause(child.id)).toBe(true)
    expect(await mill.resume(child.id)).toBe(true)
    expect(await mill.edit(child.id, { payload: { n: 'edited' }, priority: 3 })).toBe(true)
    expect(await state(await mill.schedule(load, { n: 'moved' }, '1ms', { key: 'k' }))).toBe('blocked')
    expect(await mill.cancel(dropped.id)).toBe(true)
    await mill.start()
    await expect(expiring.result(soon)).rejects.toThrow('expired')
    expect(await mill.edit(parent.id, { in: 0 })).toBe(true)
    await child.result(soon)
    expect(ran).toEqual(['a', 'moved'])
  })

  test('does not run while its parent retries: only the final outcome of the parent counts', async () => {
    let tries = 0
    const flaky = job('flaky', {
      run: () => {
        tries += 1
        if (tries < 3) throw new Error('not yet')
        return tries
      },
      retry: { limit: 5, backoff: () => 0, jitter: 0 },
    })
    const sum = job('sum', async (_: undefined, ctx) => (await ctx.results(flaky)).reduce((a, b) => a + b, 0))
    const mill = await open({ jobs: [flaky, sum] })
    await mill.start()
    const parent = await mill.enqueue(flaky)
    const child = await mill.enqueue(sum, undefined, { after: [parent] })
    expect(await child.result(soon)).toBe(3)
  })
})

describe('parents that are added later', () => {
  test('block a job that waits', async () => {
    const { ran, extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const [parent, child] = [await mill.enqueue(extract, { n: 'a' }), await mill.enqueue(load, { n: 'x' })]
    expect(await mill.edit(child.id, { after: [parent] })).toBe(true)
    expect(await state(child)).toBe('blocked')
    await mill.start()
    await child.result(soon)
    expect(ran).toEqual(['a', 'x'])
  })

  test('are given a new policy when they are named again: a job that waits for a cancelled parent then runs', async () => {
    const { ran, extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const parent = await mill.enqueue(extract, { n: 'a' })
    const child = await mill.enqueue(load, { n: 'x' }, { after: [parent], onParentFailure: 'wait' })
    await mill.cancel(parent.id)
    expect(await mill.edit(child.id, { after: [parent], onParentFailure: 'run' })).toBe(true)
    await mill.start()
    await child.result(soon)
    expect(ran).toEqual(['x'])
  })

  test('are refused when they would close a cycle, with the path, and when they are missing', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const a = await mill.enqueue(extract, { n: 'a' }, { in: '1h' })
    const b = await mill.enqueue(load, { n: 'b' }, { after: [a] })
    const error = await mill.edit(a.id, { after: [b] }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CycleError)
    expect((error as Error).message).toContain(`extract ${a.id} → load ${b.id} → extract ${a.id}`)
    await expect(mill.edit(a.id, { after: [[load, 'nobody']] })).rejects.toBeInstanceOf(ParentMissingError)
    expect((await a.get())?.after).toEqual([])
    expect(await state(a)).toBe('scheduled')
  })

  test('never close a cycle, also when two are added at once', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    for (let round = 0; round < 5; round += 1) {
      const [a, b] = [
        await mill.enqueue(extract, { n: 'a' }, { in: '1h' }),
        await mill.enqueue(load, { n: 'b' }, { in: '1h' }),
      ]
      const answers = await Promise.allSettled([mill.edit(a.id, { after: [b] }), mill.edit(b.id, { after: [a] })])
      expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    }
  })
})

describe('a job that is moved', () => {
  test('by schedule under its key runs after the parents that the call names', async () => {
    const { ran, extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const parent = await mill.enqueue(extract, { n: 'a' }, { in: '300ms' })
    const timer = await mill.schedule(load, { n: 'old' }, '1h', { key: 'k' })
    const moved = await mill.schedule(load, { n: 'x' }, '1ms', { key: 'k', after: [parent] })
    expect([moved.id, moved.isNew, await state(moved)]).toEqual([timer.id, false, 'blocked'])
    expect((await moved.get())?.after).toEqual([parent.id])
    await mill.start()
    await moved.result(soon)
    expect(ran).toEqual(['a', 'x'])
  })

  test('by unique does too, in a flow and by its definition', async () => {
    const { ran, extract, load, keyed, jobs } = linkedJobs()
    const unique = { by: () => 1, onDuplicate: 'reschedule' } as const
    const mill = await open({ jobs })
    await mill.enqueue(extract, { n: 'b' }, { key: 'b', in: '300ms' })
    const first = await mill.enqueue(load, { n: 'old' }, { unique, in: '1h' })
    const second = await mill.enqueue(keyed, { of: 'nobody' }, { unique, after: [], in: '1h' })
    await mill.enqueue(keyed, { of: 'b' }, { unique })
    const node = await mill.flow((f) =>
      f.add(load, { n: 'x' }, { unique, after: [f.add(extract, { n: 'a' }, { in: '300ms' })] }),
    )
    expect([node.id, await state(first), await state(second)]).toEqual([first.id, 'blocked', 'blocked'])
    await mill.start()
    await Promise.all([first.result(soon), second.result(soon)])
    expect(ran.indexOf('x')).toBeGreaterThan(ran.indexOf('a'))
    expect(ran.indexOf('after b')).toBeGreaterThan(ran.indexOf('b'))
  })

  test('is not changed by a call that is refused', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const timer = await mill.schedule(load, { n: 'old' }, '1h', { key: 'k' })
    const child = await mill.enqueue(extract, { n: 'a' }, { after: [timer] })
    const moving = (after: Handle<unknown>[]) => mill.schedule(load, { n: 'x' }, '1ms', { key: 'k', after })
    await expect(moving([child])).rejects.toBeInstanceOf(CycleError)
    await expect(moving([timer])).rejects.toBeInstanceOf(CycleError)
    const missing = mill.handle('00000000-0000-7000-8000-000000000000')
    await expect(moving([missing])).rejects.toBeInstanceOf(ParentMissingError)
    expect(await timer.get()).toMatchObject({ state: 'scheduled', after: [], payload: { n: 'old' } })
  })

  test('differs from one that is only returned: that gets no parents, also not in a flow', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const parent = await mill.enqueue(extract, { n: 'a' })
    const [holder, first] = [
      await mill.enqueue(load, { n: 'k' }, { key: 'k' }),
      await mill.enqueue(load, { n: 'u' }, { unique: {} }),
    ]
    await mill.enqueue(load, { n: 'k' }, { key: 'k', after: [parent] })
    await mill.enqueue(load, { n: 'u' }, { unique: {}, after: [parent] })
    const node = await mill.flow((f) => f.add(load, { n: 'k' }, { key: 'k', after: [f.add(extract, { n: 'b' })] }))
    expect(node.id).toBe(holder.id)
    for (const met of [holder, first]) expect(await met.get()).toMatchObject({ state: 'ready', after: [] })
  })
})

describe('a flow', () => {
  test('is written completely and returns the handles of what its builder returned', async () => {
    const { ran, extract, load, jobs } = linkedJobs()
    const total = job('total', async (_: undefined, ctx) => (await ctx.results(extract)).join('+'))
    const mill = await open({ jobs: [...jobs, total] })
    await mill.start()
    const { sum, rest } = await mill.flow((f) => {
      const parts = ['a', 'b', 'c'].map((n) => f.add(extract, { n }))
      const sum = f.add(total, undefined, { after: parts })
      return { sum, rest: [f.add(load, { n: 'last' }).after(sum)] }
    })
    expect(await sum.result(soon)).toBe('a+b+c')
    await rest[0]?.result(soon)
    expect(ran.at(-1)).toBe('last')
    const all = await mill.flow((f) => {
      f.add(load, { n: 'y' }, { after: [f.add(extract, { n: 'x' })] })
    })
    await Promise.all(all.map((handle) => handle.result(soon)))
    expect(all).toHaveLength(2)
  })

  test('with a cycle is refused with an error that shows it, and writes nothing', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const ring = mill.flow((f) => {
      const a = f.add(extract, { n: 'a' })
      const b = f.add(load, { n: 'b' }, { after: [a] })
      a.after(b)
    })
    const error = await ring.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'E_CYCLE', path: ['extract[0]', 'load[1]', 'extract[0]'] })
    for await (const found of mill.find()) expect(found).toBeUndefined()
  })

  test('with two nodes that are one job is refused when that closes a cycle, and writes nothing', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const ring = mill.flow((f) => {
      const a = f.add(extract, { n: 'a' }, { key: 'k' })
      const b = f.add(load, { n: 'b' }, { after: [f.add(extract, { n: 'c' }, { key: 'k' })] })
      a.after(b)
    })
    await expect(ring).rejects.toMatchObject({ code: 'E_CYCLE' })
    for await (const found of mill.find()) expect(found).toBeUndefined()
  })

  test('is refused with all its problems, and writes nothing', async () => {
    const { extract, load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const wrong = mill.flow((f) => {
      f.add(extract, { n: 'a' }, { priority: 0.5 })
      f.add(load, { n: () => 1 } as never)
    })
    await expect(wrong).rejects.toThrow(/nodes\[0\]\.options\.priority[\s\S]*nodes\[1\]\.payload/)
    await expect(mill.flow((f) => f.add(load, { n: 'b' }, { after: ['x' as never] }))).rejects.toThrow(
      'nodes[0].options.after[0] must be a handle',
    )
    await expect(mill.flow((async () => undefined) as never)).rejects.toThrow('must be synchronous')
    await expect(mill.flow(5 as never)).rejects.toThrow('build must be a function')
    await expect(mill.flow(() => undefined, { key: 'k' } as never)).rejects.toThrow(
      'options.key is not an option of a flow',
    )
    await expect(mill.flow((f) => f.add(load, { n: 'b' }, { tx: {} } as never))).rejects.toThrow('give it as mill.flow')
    for await (const found of mill.find()) expect(found).toBeUndefined()
  })

  test('whose return value cannot be read is refused before anything is written', async () => {
    const { extract, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const ring = mill.flow((f) => {
      const tree: { node: unknown; self?: unknown } = { node: f.add(extract, { n: 'a' }) }
      tree.self = [tree]
      return tree as never
    })
    await expect(ring).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    await expect(ring).rejects.toThrow('contains itself')
    const hostile = mill.flow((f) => {
      f.add(extract, { n: 'a' })
      return {
        get node(): never {
          throw new Error('a getter of the caller')
        },
      }
    })
    await expect(hostile).rejects.toThrow('a getter of the caller')
    for await (const found of mill.find()) expect(found).toBeUndefined()
  })

  test('passes each node through the hooks, and is written when all have called next', async () => {
    const { extract, load, jobs } = linkedJobs()
    const seen: string[] = []
    const mill = await open({
      jobs,
      hooks: {
        enqueue: async (call, next) => {
          seen.push(`${call.verb} ${call.job}`)
          const handles = await next({ labels: ['seen'] })
          return handles
        },
      },
    })
    const handles = await mill.flow((f) => {
      const a = f.add(extract, { n: 'a' })
      f.add(load, { n: 'b' }, { after: [a] })
    })
    expect(seen).toEqual(['flow extract', 'flow load'])
    for (const handle of handles) expect((await handle.get())?.labels).toEqual(['seen'])
    const refusing = await open({
      jobs,
      hooks: { enqueue: (call, next) => (call.job === 'load' ? Promise.reject(new Error('no')) : next()) },
    })
    const refused = refusing.flow((f) => void f.add(load, { n: 'b' }, { after: [f.add(extract, { n: 'a' })] }))
    await expect(refused).rejects.toThrow('no')
    for await (const found of refusing.find()) expect(found).toBeUndefined()
  })

  test('of thousands of jobs, wide and deep, runs to its end', { timeout: 300_000 }, async () => {
    const leaf = job('leaf', () => 1)
    const join = job('join', async (_: undefined, ctx) => (await ctx.results(leaf)).length)
    const mill = await open({ jobs: [leaf, join], concurrency: 100 })
    const began = performance.now()
    const [root, last] = await mill.flow((f) => {
      const root = f.add(leaf)
      const leaves = Array.from({ length: NODES - 2 }, () => f.add(leaf, undefined, { after: [root] }))
      return [root, f.add(join, undefined, { after: leaves })] as const
    })
    const wroteMs = performance.now() - began
    await mill.start()
    expect(await last.result({ timeout: '4m' })).toBe(NODES - 2)
    const ranMs = performance.now() - began - wroteMs
    expect(await root.result()).toBe(1)
    console.log(
      `${NODES} nodes on ${onPostgres ? 'PostgreSQL' : 'SQLite'}: written in ${wroteMs.toFixed(0)} ms, run in ${ranMs.toFixed(0)} ms`,
    )
  })

  test('of thousands of jobs in one chain is written', { timeout: 120_000 }, async () => {
    const { load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    const began = performance.now()
    const handles = await mill.flow((f) => {
      let before = f.add(load, { n: '0' })
      for (let n = 1; n < NODES; n += 1) before = f.add(load, { n: String(n) }, { after: [before] })
    })
    console.log(`a chain of ${NODES}: ${(performance.now() - began).toFixed(0)} ms`)
    const [first, end] = [handles[0] as Handle<unknown>, handles.at(-1) as Handle<unknown>]
    expect([await state(first), await state(end)]).toEqual(['ready', 'blocked'])
    await expect(mill.edit(first.id, { after: [end] })).rejects.toMatchObject({ code: 'E_CYCLE' })
  })
})

test('a missing parent in a bulk is reported with its item', async () => {
  const { extract, keyed, jobs } = linkedJobs()
  const mill = await open({ jobs })
  await mill.enqueue(extract, { n: 'a' }, { key: 'a' })
  const call = mill.enqueueMany(keyed, [{ of: 'a' }, { of: 'nobody' }])
  await expect(call).rejects.toThrow(/after of item 1: no such job: "extract" with key "nobody"/)
})

describeAboveStore('bad input to after', () => {
  const id = '00000000-0000-7000-8000-000000000000'
  test.each<[string, unknown, RegExp]>([
    ['no array', 'x', /options\.after must be an array of handles, ids or \[job, key\], got "x"/],
    [
      'a text that is no id',
      ['x'],
      /options\.after\[0\] must be a handle, a job's id \(a UUID\) or \[job, key\], got "x"/,
    ],
    ['a promise', [Promise.resolve()], /options\.after\[0\] must be a handle, got a promise; await the enqueue/],
    ['a job alone', [job('j', () => 1)], /options\.after\[0\].*give \[job, key\]/],
    ['a pair without a key', [['extract']], /options\.after\[0\] must be \[job, key\], got an array of 1/],
    ['a wrong key', [['extract', 5]], /options\.after\[0\] must be \[job, key\]: the key must be text, got 5/],
    ['too many', Array(20_001).fill(id), /options\.after must name at most 20000 jobs, got 20001/],
    ['nobody', [id], /no such job: 00000000-0000-7000-8000-000000000000/],
  ])('%s is refused, and nothing is written', async (_, after, message) => {
    const { load, jobs } = linkedJobs()
    const mill = await open({ jobs })
    await expect(mill.enqueue(load, { n: 'x' }, { after: after as never })).rejects.toThrow(message)
    for await (const found of mill.find()) expect(found).toBeUndefined()
  })

  test('a function of a definition that fails is reported with its payload', async () => {
    const odd = job('odd', { run: (p: { n: number }) => p.n, after: () => [5 as never] })
    const bad = job('bad', {
      run: (p: { n: number }) => p.n,
      after: () => {
        throw new Error('no idea')
      },
    })
    const mill = await open({ jobs: [odd, bad] })
    await expect(mill.enqueue(odd, { n: 1 })).rejects.toThrow(
      /payload made after\(\) of the job fail: after\(\)\[0\] must be/,
    )
    await expect(mill.enqueue(bad, { n: 1 })).rejects.toThrow('after() threw no idea')
    await expect(mill.enqueue(odd, { n: 1 }, { onParentFailure: 'explode' as never })).rejects.toThrow(
      'onParentFailure must be "wait" or "cancel" or "run"',
    )
  })
})

test('the kit runs flows in virtual time', async () => {
  const { ran, failing, extract, load, jobs } = linkedJobs()
  const t = await testing({ jobs })
  const loaded = await t.mill.flow((f) => f.add(load, { n: 'x' }, { after: [f.add(extract, { n: 'a' })], in: '1h' }))
  expect(await t.drain()).toMatchObject({ ran: 1, done: 1 })
  await t.advance('1h')
  expect(await t.drain()).toMatchObject({ ran: 1, done: 1 })
  expect((await loaded.get())?.state).toBe('done')
  failing.add('b')
  const child = await t.mill.flow((f) =>
    f.add(load, { n: 'y' }, { after: [f.add(extract, { n: 'b' })], onParentFailure: 'cancel' }),
  )
  await t.drain()
  await t.advance('1s')
  expect((await child.get())?.reason).toContain('failed')
  expect(ran).toEqual(['a', 'x'])
  await t.close()
})

test('children that are enqueued while their parent is settled are released', { timeout: 60_000 }, async () => {
  const quick = job('quick', () => 1)
  const after = job('after', () => 2)
  const mill = await open({ jobs: [quick, after], concurrency: 20 })
  await mill.start()
  const children: Handle<number>[] = []
  const rounds = isShort ? 30 : 100
  for (let round = 0; round < rounds; round += 1) {
    const parent = await mill.enqueue(quick)
    children.push(await mill.enqueue(after, undefined, { after: [parent] }))
  }
  expect(await Promise.all(children.map((child) => child.result(soon)))).toEqual(Array(rounds).fill(2))
})
