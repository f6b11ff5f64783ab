import { afterEach, expect, test } from 'vitest'
import type { Isolation } from '../../job/definition/isolation.js'
import { TimeoutError } from '../../errors.js'
import type { Running } from '../attempt/running.js'
import { ABORT_GRACE_MS } from '../in-flight/overdue.js'
import { inheritedFlags, startChild } from './child.js'
import { isolatingExecutor } from './isolated.js'
import { ChildPool } from './pool.js'

/** Timers that fire when the test says so. */
class ManualTimers {
  readonly armed = new Map<() => void, number>()
  after(ms: number, callback: () => void): () => void {
    this.armed.set(callback, ms)
    return () => void this.armed.delete(callback)
  }
  soon(callback: () => void): void {
    setImmediate(callback)
  }
  fire(ms: number): void {
    for (const [callback, at] of this.armed) if (at === ms && this.armed.delete(callback)) callback()
  }
}

const module = new URL('../../../test/isolation/handlers.mjs', import.meta.url).href
const undo: (() => void)[] = []
afterEach(() => undo.splice(0).forEach((step) => step()))

function setUp(executor: 'thread' | 'process') {
  const timers = new ManualTimers()
  let started = 0
  const pool = new ChildPool(timers, (given) => ((started += 1), startChild(given)))
  undo.push(() => pool.close())
  const isolated = isolatingExecutor({ call: () => 'in the loop' }, { pool, timers, strayError: () => undefined })
  const isolation: Isolation = { executor, module, memoryMb: undefined }
  const run = (act: string): { ended: Promise<unknown>; running: Running; abort: (reason: unknown) => void } => {
    const controller = new AbortController()
    let abortReason: unknown
    const running = {
      id: 'id',
      job: 'echo',
      attempt: 1,
      tick: undefined,
      queue: { name: 'default' },
      registered: { isolation },
      signal: controller.signal,
      get abortReason() {
        return abortReason
      },
      exit: undefined,
      log: () => undefined,
    } as unknown as Running
    const ended = Promise.resolve(isolated.call(() => undefined, { act }, running))
    ended.catch(() => undefined)
    return { ended, running, abort: (reason) => controller.abort((abortReason = reason)) }
  }
  return { timers, pool, run, isolated, startedCount: () => started }
}

test.each(['thread', 'process'] as const)(
  'a %s that blocks is killed when the grace after its abort is over',
  async (executor) => {
    const { run, timers, pool } = setUp(executor)
    const { ended, running, abort } = run('spin')
    abort(new TimeoutError('too long'))
    expect([...timers.armed.values()]).toEqual([ABORT_GRACE_MS])
    timers.fire(ABORT_GRACE_MS)
    await expect(ended).rejects.toThrow(`the ${executor} of the handler ended`)
    expect([running.exit, pool.size, timers.armed.size]).toEqual(['killed', 0, 0])
  },
)

test('end() kills the child of one attempt and leaves the others', async () => {
  const { run, isolated } = setUp('thread')
  const [blocked, other] = [run('spin'), run('slow')]
  isolated.end?.(blocked.running)
  await expect(blocked.ended).rejects.toThrow('ended')
  expect(await other.ended).toBe('slow')
})

test('a child that has no attempt for a while is ended, and the next attempt starts another one', async () => {
  const { run, timers, pool, startedCount } = setUp('thread')
  expect(await run('slow').ended).toBe('slow')
  expect([pool.size, [...timers.armed.values()]]).toEqual([1, [30_000]])
  await run('slow').ended
  expect(startedCount()).toBe(1)
  timers.fire(30_000)
  expect(pool.size).toBe(0)
  await run('slow').ended
  expect(startedCount()).toBe(2)
})

test('attempts at the same time have a child each', async () => {
  const { run, startedCount } = setUp('thread')
  await Promise.all([run('slow').ended, run('slow').ended])
  expect(startedCount()).toBe(2)
})

test('a payload that cannot be cloned fails its attempt, and the child stays', async () => {
  const { isolated, run, pool } = setUp('process')
  const { running, ended } = run('slow')
  await ended
  expect(() => isolated.call(() => undefined, { act: () => undefined }, running)).toThrow('cannot be sent to a process')
  expect(pool.size).toBe(1)
})

test.each([
  [
    ['--import', 'tsx'],
    ['--import', 'tsx'],
  ],
  [['--eval', 'code', '--conditions=dev'], ['--conditions=dev']],
  [['--inspect-brk=0', '--max-old-space-size=9', '--input-type=module', '-e', 'code'], []],
  [['--input-type', 'module', '--enable-source-maps'], ['--enable-source-maps']],
])('of the flags %j a child inherits %j', (flags, inherited) => {
  expect(inheritedFlags(flags)).toEqual(inherited)
})
