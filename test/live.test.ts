import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Context as HandlerContext, LiveState, Mill, MillOptions } from '../src/index.js'
import { computed, createContext, effect } from '../src/reactive/index.js'
import { freshStore } from './support/fresh-store.js'

/** S5: live state as signals, across processes, on either store. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-live-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

async function open(options: MillOptions, store = freshStore(folder)): Promise<Mill> {
  const mill = await millrace({ store, logger: false, poll: '100ms', ...options })
  mills.push(mill)
  return mill
}

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
