import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { IsolatedJobOptions, Mill, MillOptions } from '../src/index.js'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

const module = new URL('./isolation/handlers.mjs', import.meta.url)
interface Payload {
  readonly act: string
  readonly [more: string]: unknown
}

type Options = Partial<IsolatedJobOptions<Payload, unknown>>
const limit = { timeout: '30s' } as const

async function setUp(
  executor: 'thread' | 'process',
  options: Options = {},
  millOptions: MillOptions = {},
): Promise<{ mill: Mill; echo: ReturnType<typeof isolated>; lines: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-isolation-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const lines: string[] = []
  const write = (level: string) => (fields: { err?: unknown }, text?: string) =>
    void lines.push(`${level} ${text ?? ''} ${fields.err instanceof Error ? fields.err.message : ''}`)
  const logger = { debug: () => undefined, info: write('info'), warn: write('warn'), error: write('error') }
  const echo = isolated(executor, options)
  const mill = await millrace({ store: join(folder, 'app.db'), jobs: [echo], logger, ...millOptions })
  undo.push(() => mill.close({ deadline: 0 }))
  await mill.start()
  return { mill, echo, lines }
}

const isolated = (executor: 'thread' | 'process', options: Options) =>
  job<Payload, unknown>('echo', { retry: { limit: 0 }, ...options, executor, module })

describe.each(['thread', 'process'] as const)('executor %s', (executor) => {
  test('runs the handler of the module apart from the worker, in a child that stays for the next job', async () => {
    const { mill, echo } = await setUp(executor, {}, { concurrency: 1 })
    const results = []
    for (const n of [1, 2]) {
      const handle = await mill.enqueue(echo, { act: 'echo', n, at: new Date(5) })
      results.push((await handle.result(limit)) as { payload: unknown; pid: number; runs: number })
    }
    expect(results).toMatchObject([
      { payload: { act: 'echo', n: 1, at: new Date(5) }, attempt: 1, job: 'echo', runs: 1 },
      { payload: { n: 2 }, runs: 2 },
    ])
    expect(results[0]?.pid === process.pid).toBe(executor === 'thread')
  })

  test('logs, reports progress, enqueues and reads the results of its parents through the worker', async () => {
    const { mill, echo } = await setUp(executor)
    const talk = await mill.enqueue(echo, { act: 'talk' })
    const made = (await talk.result(limit)) as { id: string; isNew: boolean }
    expect(made.isNew).toBe(true)
    expect((await talk.get())?.attempts[0]?.log).toEqual([expect.stringContaining('from the child')])
    expect(await mill.handle(made.id).result(limit)).toMatchObject({ payload: { from: talk.id } })
    const child = await mill.enqueue(echo, { act: 'parents' }, { after: [made.id] })
    expect(await child.result(limit)).toMatchObject([{ payload: { from: talk.id } }])
  })

  test('an error, an Abort and a Snooze of the handler are what they are in the event loop', async () => {
    const { mill, echo } = await setUp(executor, { retry: { limit: 3, backoff: { start: '1h' } } }, { poll: '50ms' })
    const failed = await mill.enqueue(echo, { act: 'fail' }, { retry: { limit: 0 } })
    await expect(failed.result(limit)).rejects.toThrow('out of range')
    expect((await failed.get())?.error).toMatchObject({ name: 'RangeError', props: { status: 418 }, cause: { message: 'below' } })
    const aborted = await mill.enqueue(echo, { act: 'abort' })
    await expect(aborted.result(limit)).rejects.toThrow('no more')
    expect((await aborted.get())?.attempt).toBe(1)
    const snoozed = await mill.enqueue(echo, { act: 'snooze' })
    expect([await snoozed.result(limit), (await snoozed.get())?.attempt]).toEqual(['woken', 1])
  })

  test.each([
    ['exit', 'exit code 3'],
    ['memory', 'out of memory'],
  ])('a handler whose child ends (%s) is charged at once, and parked past the budget', async (act, exit) => {
    const { mill, echo } = await setUp(executor, { memoryMb: 32 }, { crashBudget: 2, concurrency: 2 })
    const bad = await mill.enqueue(echo, { act })
    const good = await Promise.all(Array.from({ length: 20 }, (_, n) => mill.enqueue(echo, { act: 'echo', n })))
    await expect.poll(async () => (await bad.get())?.state, { timeout: 30_000 }).toBe('parked')
    const record = await bad.get()
    expect(record).toMatchObject({ attempt: 0, crashes: 2 })
    expect(record?.attempts.map((each) => each.exit)).toEqual(Array(2).fill(`${executor} ended: ${exit}`))
    for (const each of good) {
      await each.result(limit)
      expect(await each.get()).toMatchObject({ state: 'done', crashes: 0 })
    }
  })

  test('a timeout aborts the signal of the handler', async () => {
    const { mill, echo } = await setUp(executor, { timeout: '100ms' })
    const handle = await mill.enqueue(echo, { act: 'honoursAbort' })
    await expect(handle.result(limit)).rejects.toThrow('ran longer than its timeout')
    expect((await handle.get())?.attempts[0]?.exit).toBeUndefined()
  })

  test('a handler that goes on after the deadline of a stop is ended, and its job is given back', async () => {
    const { mill, echo } = await setUp(executor)
    const handle = await mill.enqueue(echo, { act: 'spin' })
    await expect.poll(async () => (await handle.get())?.state, { timeout: 10_000 }).toBe('running')
    await mill.stop({ deadline: '200ms' })
    expect(await handle.get()).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 })
  })

  test('a floating rejection fails the attempt, and what an attempt leaves behind does not fail the next one', async () => {
    const { mill, echo, lines } = await setUp(executor, {}, { concurrency: 1 })
    const floating = await mill.enqueue(echo, { act: 'floating' })
    await expect(floating.result(limit)).rejects.toThrow('floating')
    await (await mill.enqueue(echo, { act: 'later' })).result(limit)
    expect(await (await mill.enqueue(echo, { act: 'slow' })).result(limit)).toBe('slow')
    expect(lines.filter((line) => line.includes('left an error behind'))).toEqual([expect.stringMatching('left behind$')])
    expect(await (await mill.enqueue(echo, { act: 'echo' })).result(limit)).toMatchObject({ runs: 1 })
  })

  test('what cannot cross is refused by name', async () => {
    const { mill, echo } = await setUp(executor)
    await expect((await mill.enqueue(echo, { act: 'settle' })).result(limit)).rejects.toThrow('ctx.settleIn() needs')
    await expect((await mill.enqueue(echo, { act: 'badProgress' })).result(limit)).rejects.toThrow('progress')
    const odd = await mill.enqueue(echo, { act: 'uncloneable' })
    expect(await odd.result(limit)).toBeUndefined()
    expect((await odd.get())?.attempts[0]?.log).toEqual([expect.stringContaining('the result is not kept')])
  })
})
