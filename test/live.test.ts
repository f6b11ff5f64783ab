import { describe, expect, test, vi } from 'vitest'
import { job, workflow } from '../src/index.js'
import type { Context as HandlerContext, LiveState, Mill } from '../src/index.js'
import { INTERNALS } from '../src/mill/internals.js'
import type { MillInternals } from '../src/mill/internals.js'
import { computed, createContext, effect } from '../src/reactive/index.js'
import { freshStore } from './support/fresh-store.js'
import { openedMills } from './support/opened-mills.js'

/** S5: live state as signals, across processes, on either store. */

const { folder, open } = openedMills('live', { poll: '100ms' })

/** Reads on until a state is as wanted, and returns what was seen. */
async function seenUntil<Value>(live: LiveState<Value>, isLast: (value: Value) => boolean): Promise<Value[]> {
  const seen: Value[] = []
  for await (const value of live) {
    seen.push(value)
    if (isLast(value)) break
  }
  return seen
}

describe('mill.watch', () => {
  test('follows a job that another mill runs, with its progress', async () => {
    let release: () => void = () => undefined
    const load = job('load', async (_: number, ctx: HandlerContext) => {
      ctx.progress(1, 2)
      await new Promise<void>((resolve) => (release = resolve))
      return 'loaded'
    })
    const store = freshStore(folder)
    const [app, worker] = [await open({ jobs: [load] }, store), await open({ jobs: [load] }, store)]
    const handle = await app.enqueue(load, 1)
    const records = handle.watch()[Symbol.asyncIterator]()
    expect((await records.next()).value).toMatchObject({ id: handle.id, state: 'ready' })
    await worker.start()
    const states = new Set<string>()
    for (;;) {
      const { value } = (await records.next()) as { value: Awaited<ReturnType<Mill['get']>> }
      states.add(value?.state ?? 'gone')
      if (value?.progress !== undefined && value.state === 'running') release()
      if (value?.state === 'done') break
    }
    expect([...states]).toEqual(['running', 'done'])
    await records.return?.()
  })

  test('shows what a handler has logged so far, of a plain job and of a step of a workflow', async () => {
    let release: () => void = () => undefined
    const wait = (): Promise<void> => new Promise((resolve) => (release = resolve))
    const load = job('load', async (_: number, ctx: HandlerContext) => {
      for (let n = 1; n <= 25; n += 1) ctx.log(`page ${n}`)
      await wait()
    })
    const import_ = workflow('import', async (_: number, w) => {
      await w.step('fetch', async (ctx) => {
        ctx.log('fetching')
        await wait()
      })
    })
    const mill = await open({ jobs: [load, import_] })
    await mill.start()
    for (const [of, last, count] of [
      [load, 'page 25', 20],
      [import_, 'fetching', 1],
    ] as const) {
      const handle = await mill.enqueue(of, 1)
      const [seen] = (await seenUntil(handle.watch(), (record) => record?.log !== undefined)).slice(-1)
      expect([seen?.state, seen?.log?.at(-1), seen?.log?.length, seen?.progress]).toEqual([
        'running',
        last,
        count,
        undefined,
      ])
      expect((await handle.get())?.log?.at(-1)).toBe(last)
      release()
      await handle.result()
      expect((await handle.get())?.log).toBeUndefined()
    }
  })

  test('gives undefined for a job that does not exist, and again when it is deleted', async () => {
    const idle = job('idle', async () => undefined)
    const mill = await open({ jobs: [idle] })
    const handle = await mill.enqueue(idle, undefined, { in: '1h' })
    expect(await seenUntil(mill.watch('01890a5d-ac96-774b-bcce-b302099a8057'), () => true)).toEqual([undefined])
    const seen = seenUntil(handle.watch(), (record) => record === undefined)
    await mill.delete(handle.id)
    expect((await seen).at(-1)).toBeUndefined()
  })

  test('reads nothing without an observer, and one job for many', async () => {
    const idle = job('idle', async () => undefined)
    const mill = await open({ jobs: [idle] })
    const { id } = await mill.enqueue(idle, undefined, { in: '1h' })
    const unobserved = mill.watch(id)
    const many = Array.from({ length: 20 }, () => mill.watch(id))
    const first = await Promise.all(many.map((live) => seenUntil(live, () => true)))
    expect(first.every(([record]) => record?.id === id)).toBe(true)
    expect(unobserved.get()).toBeUndefined()
  })

  test('its values can be computed with, in the context of the mill and in that of the app', async () => {
    const idle = job('idle', async () => undefined)
    const mill = await open({ jobs: [idle] })
    const [a, b] = [
      await mill.enqueue(idle, undefined, { in: '1h' }),
      await mill.enqueue(idle, undefined, { in: '1h' }),
    ]
    const own = createContext()
    for (const context of [mill.live.context, own]) {
      const texts: string[] = []
      const stop = context.enter(() => {
        const [first, second] = [a.watch(), b.watch()]
        const both = computed(() => `${first.get()?.state ?? '?'} ${second.get()?.state ?? '?'}`)
        return effect(() => void texts.push(both.get()))
      })
      await vi.waitFor(() => expect(texts.at(-1)).toBe('scheduled scheduled'), { timeout: 20_000 })
      await mill.pause(b.id)
      await vi.waitFor(() => expect(texts.at(-1)).toBe('scheduled paused'), { timeout: 20_000 })
      await mill.resume(b.id)
      stop()
    }
    await own.close()
  })

  test('ends its readers when the mill is closed', async () => {
    const idle = job('idle', async () => undefined)
    const mill = await open({ jobs: [idle] })
    const { id } = await mill.enqueue(idle, undefined, { in: '1h' })
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const record of mill.watch(id)) seen.push(record?.state)
    })()
    const stream = mill.watch(id).stream().getReader()
    expect((await stream.read()).value?.state).toBe('scheduled')
    await vi.waitFor(() => expect(seen).toEqual(['scheduled']), { timeout: 20_000 })
    await mill.close()
    await reading
    expect((await stream.read()).done).toBe(true)
  })

  test('ends its readers in a context of the app too', async () => {
    const idle = job('idle', async () => undefined)
    const mill = await open({ jobs: [idle] })
    const { id } = await mill.enqueue(idle, undefined, { in: '1h' })
    const own = createContext()
    const records = own.enter(() => mill.watch(id))[Symbol.asyncIterator]()
    expect((await records.next()).value?.state).toBe('scheduled')
    const next = records.next()
    await mill.close()
    expect((await next).done).toBe(true)
    await own.close()
  })

  test('refuses what is no id', async () => {
    const mill = await open({})
    expect(() => mill.watch(7 as never)).toThrow(expect.objectContaining({ code: 'E_INVALID_OPTIONS' }))
  })
})

describe('Groups, sequences and schedules', () => {
  test('group.watch gives its progress', async () => {
    const mail = job('mail', async () => undefined)
    const mill = await open({ jobs: [mail] })
    await mill.enqueueMany(mail, [undefined, undefined, undefined], { group: 'spring' })
    const seen = seenUntil(mill.group('spring').watch(), ({ done }) => done === 3)
    await mill.start()
    expect((await seen).at(-1)).toEqual(await mill.group('spring').progress())
  })

  test('sequence.watch gives its progress, which never goes back, also by its key', async () => {
    const item = job('item', async (n: number) => n)
    const mill = await open({ jobs: [item] })
    const byKey = seenUntil(mill.sequence([item, 'list']).watch(), (progress) => progress?.state === 'done')
    const sequence = await mill.sequence(
      item,
      Array.from({ length: 200 }, (_, n) => n),
      { key: 'list' },
    )
    const seen = seenUntil(sequence.watch(), (progress) => progress?.state === 'done')
    await mill.start()
    const done = (await seen).map((progress) => progress?.done ?? -1)
    expect(done).toEqual([...done].sort((a, b) => a - b))
    expect(done.at(-1)).toBe(200)
    expect((await byKey).at(-1)).toEqual({ state: 'done', done: 200, total: 200 })
  })

  test('schedules.watch gives the list', async () => {
    const tick = job('tick', async () => undefined)
    const mill = await open({ jobs: [tick] })
    const seen = seenUntil(mill.schedules.watch(), (list) => list.length === 1 && list[0]?.pausedAt !== undefined)
    await mill.recurring('nightly', tick, undefined, '0 3 * * *')
    await mill.schedules.pause('nightly')
    expect((await seen).at(-1)?.map(({ id }) => id)).toEqual(['nightly'])
  })
})

describe('Queues and workers', () => {
  test('mill.live.queues gives counts, pauses and the oldest due time, and one signal for each context', async () => {
    const mail = job('mail', { run: async () => undefined, queue: 'letters' })
    const store = freshStore(folder)
    const [app, other] = [await open({ jobs: [mail] }, store), await open({ jobs: [mail] }, store)]
    expect(app.live.queues).toBe(app.live.queues)
    await app.enqueue(mail)
    await app.enqueue(mail, undefined, { in: '1h' })
    const seen = seenUntil(app.live.queues, ([queue]) => queue?.paused === true)
    await other.queue('letters').pause()
    const [queue] = (await seen).at(-1) ?? []
    expect(queue).toMatchObject({
      name: 'letters',
      exact: true,
      outages: [],
      counts: { ready: 1, scheduled: 1, running: 0 },
    })
    expect(queue?.oldestDueAt).toBeInstanceOf(Date)
  })

  test('mill.live.workers gives what each worker runs', async () => {
    let release: () => void = () => undefined
    const load = job('load', () => new Promise<void>((resolve) => (release = resolve)))
    const store = freshStore(folder)
    const [app, worker] = [await open({ jobs: [load] }, store), await open({ jobs: [load], version: '7' }, store)]
    await worker.start()
    const seen = seenUntil(app.live.workers, ([only]) => only?.running[0]?.job === 'load')
    await app.enqueue(load)
    expect((await seen).at(-1)).toMatchObject([{ version: '7', state: 'alive', slots: 10, running: [{ count: 1 }] }])
    release()
  })

  test('one read serves all watched jobs, and none is made without an observer', async () => {
    const idle = job('idle', async () => undefined)
    const mill = await open({ jobs: [idle] })
    const handles = await mill.enqueueMany(idle, Array.from({ length: 1_000 }), { in: '1h' })
    const { jobs, observing } = (mill as unknown as { [INTERNALS]: MillInternals })[INTERNALS].store
    const reads = [vi.spyOn(jobs, 'readJobs'), vi.spyOn(observing, 'listQueues'), vi.spyOn(observing, 'listWorkers')]
    const live = handles.map((handle) => handle.watch())
    void [mill.live.queues, mill.live.workers]
    await mill.enqueue(idle, undefined, { in: '1h' })
    expect(reads.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0])
    const begun = performance.now()
    const readers = live.map((each) => each[Symbol.asyncIterator]())
    await Promise.all(readers.map((reader) => reader.next()))
    const changed = readers[0]?.next()
    await mill.pause(handles[0]?.id ?? '')
    expect((await changed)?.value?.state).toBe('paused')
    const passedMs = performance.now() - begun
    expect(reads[0]?.mock.calls.length).toBeLessThanOrEqual(2 + Math.ceil(passedMs / 100))
    expect(reads[0]?.mock.calls.at(-1)?.[0]).toHaveLength(1_000)
    for (const reader of readers) await reader.return?.()
  })
})
