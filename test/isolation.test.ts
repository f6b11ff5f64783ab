import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { category, job, millrace } from '../src/index.js'
import type { IsolatedJobOptions, Mill, MillOptions } from '../src/index.js'
import { testing } from '../src/testing/index.js'
import { useProcesses } from './processes/child.js'

const processes = useProcesses()
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
    expect((await failed.get())?.error).toMatchObject({
      name: 'RangeError',
      props: { status: 418 },
      cause: { message: 'below' },
    })
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
    expect(lines.filter((line) => line.includes('left an error behind'))).toEqual([
      expect.stringMatching('left behind$'),
    ])
    expect(await (await mill.enqueue(echo, { act: 'echo' })).result(limit)).toMatchObject({ runs: 1 })
  })

  test('an item of a sequence runs there too, with its place in the sequence', async () => {
    const { mill, echo } = await setUp(executor, {}, { crashBudget: 1 })
    const sequence = await mill.sequence(echo, [{ act: 'item' }, { act: 'item' }])
    await sequence.result(limit)
    expect((await sequence.output()).map(({ result }) => result)).toEqual([
      { index: 0, total: 2, previous: undefined },
      { index: 1, total: 2, previous: { index: 0, total: 2, previous: undefined } },
    ])
    const crashing = await mill.sequence(echo, [{ act: 'exit' }])
    await expect.poll(async () => (await crashing.progress()).state, { timeout: 30_000 }).toBe('failed')
  })

  test('what cannot cross is refused by name', async () => {
    const { mill, echo } = await setUp(executor)
    await expect((await mill.enqueue(echo, { act: 'settle' })).result(limit)).rejects.toThrow('ctx.settleIn() needs')
    await expect((await mill.enqueue(echo, { act: 'badProgress' })).result(limit)).rejects.toThrow('progress')
    const odd = await mill.enqueue(echo, { act: 'uncloneable' })
    expect(await odd.result(limit)).toBeUndefined()
    expect((await odd.get())?.reason).toMatch('the result is not kept: () => undefined could not be cloned')
  })

  test.each([['ready'], [null], [{ threw: 1 }], [{ returned: 5 }], [{ enqueue: 1 }]])(
    'a message %j that the module sends itself is ignored',
    async (message) => {
      const { mill, echo } = await setUp(executor)
      const handle = await mill.enqueue(echo, { act: 'message', message })
      expect(await handle.result(limit)).toBe('sent')
    },
  )
})

test('a category gives its jobs the executor, the module and the limit', async () => {
  const heavy = category('heavy', { executor: 'process', module, memoryMb: 32, retry: { limit: 0 } })
  const render = job<Payload, unknown>('render', { is: [heavy] } as never)
  const mill = await millrace({ store: ':memory:', jobs: [render], logger: false, crashBudget: 1 })
  undo.push(() => mill.close({ deadline: 0 }))
  await mill.start()
  const handle = await mill.enqueue(render, { act: 'echo' })
  expect(((await handle.result(limit)) as { pid: number }).pid).not.toBe(process.pid)
  const full = await mill.enqueue(render, { act: 'memory' })
  await expect.poll(async () => (await full.get())?.state, { timeout: 30_000 }).toBe('parked')
})

test('a process that is killed by a signal is charged with it', async () => {
  const { mill, echo } = await setUp('process', {}, { crashBudget: 1 })
  const handle = await mill.enqueue(echo, { act: 'segfault' })
  await expect.poll(async () => (await handle.get())?.state, { timeout: 30_000 }).toBe('parked')
  expect((await handle.get())?.attempts.map((each) => each.exit)).toEqual(['process ended: signal SIGSEGV'])
})

test('a job of a module can be run directly, and under the test kit', async () => {
  const echo = isolated('process', {})
  expect(await echo.run({ act: 'echo', n: 1 })).toMatchObject({ payload: { n: 1 }, pid: process.pid })
  const kit = await testing({ jobs: [echo] })
  undo.push(() => kit.close())
  const handle = await kit.mill.enqueue(echo, { act: 'echo', n: 2 })
  await kit.drain()
  expect((await handle.get())?.result).toMatchObject({ payload: { n: 2 } })
})

test('a module that cannot be loaded, or has no handler, fails the attempt with its reason', async () => {
  const missing = job('missing', {
    executor: 'thread',
    module: new URL('./nowhere.mjs', import.meta.url),
    retry: { limit: 0 },
  })
  const empty = job('empty', {
    executor: 'process',
    module: new URL('./isolation/empty.mjs', import.meta.url),
    retry: { limit: 0 },
  })
  const mill = await millrace({ store: ':memory:', jobs: [missing, empty], logger: false })
  undo.push(() => mill.close({ deadline: 0 }))
  await mill.start()
  await expect((await mill.enqueue(missing)).result(limit)).rejects.toThrow('nowhere.mjs')
  await expect((await mill.enqueue(empty)).result(limit)).rejects.toThrow(
    'must export its handler as default or as run; it exports other',
  )
})

test(
  'a process whose worker is killed ends too, with what it started, also when its handler blocks it',
  { timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-orphan-'))
    undo.push(() => rmSync(folder, { recursive: true, force: true }))
    const pidFile = join(folder, 'pid')
    const worker = processes().run(`
    const spin = job('spin', { executor: 'process', module: ${JSON.stringify(module.href)} })
    const mill = await millrace({ store: file, jobs: [spin], logger: false })
    await mill.enqueue(spin, { act: 'orphan', file: ${JSON.stringify(pidFile)} })
    await mill.start()`)
    await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '', { timeout: 30_000 }).toBe(true)
    const pid = Number(readFileSync(pidFile, 'utf8'))
    expect(isAlive(pid)).toBe(true)
    const grandchild = Number(readFileSync(`${pidFile}.child`, 'utf8'))
    await worker.kill()
    await expect.poll(() => [isAlive(pid), isAlive(grandchild)], { timeout: 20_000 }).toEqual([false, false])
  },
)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('refused definitions', () => {
  const run = (): number => 1
  test.each([
    [
      'a closure',
      { executor: 'process', run },
      /run cannot be sent to a process: move the handler to a file of its own/,
    ],
    [
      'a relative path',
      { executor: 'thread', module: './render.js' },
      /module must be the file: URL or the absolute path/,
    ],
    ['an http URL', { executor: 'thread', module: new URL('https://example.com/a.js') }, /must be the file: URL/],
    ['a module beside run', { run, module }, /module cannot be given with run/],
    ['an unknown executor', { executor: 'fork', module }, /must be "loop" or "thread" or "process", got "fork"/],
    ['too little memory', { executor: 'thread', module, memoryMb: 1 }, /memoryMb must be a whole number from 16/],
  ])('%s', (_, options, message) => {
    expect(() => job('render', options as never)).toThrow(message)
  })

  test.each([
    [
      'an executor without a module',
      { executor: 'thread' },
      /executor "thread" needs the module of the handler: module: new URL/,
    ],
    ['a module without an executor', { module }, /module is loaded by executor "thread" or "process"/],
    ['memory without an executor', { run, memoryMb: 64 }, /memoryMb limits a thread or a process/],
    [
      'a closure under the executor of a category',
      { run, is: [category('c', { executor: 'thread' })] },
      /its run cannot be sent to a thread/,
    ],
  ])('%s, when it is registered', async (_, options, message) => {
    await expect(millrace({ store: ':memory:', jobs: [job('render', options as never)] })).rejects.toThrow(message)
  })
})
