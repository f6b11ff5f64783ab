import { afterEach, expect, test, vi } from 'vitest'
import type { Isolation } from '../../job/definition/isolation.js'
import { Abort, Snooze } from '../../job/attempt/control-errors.js'
import { TimeoutError } from '../../errors.js'
import type { Running } from '../attempt/running.js'
import { ABORT_GRACE_MS } from '../in-flight/overdue.js'
import { UnsentResult } from './child-crash.js'
import type { Child } from './child.js'
import { isolatingExecutor } from './isolated.js'
import { ChildPool } from './pool.js'

/** A child whose messages the test sends. */
class ScriptedChild implements Child {
  readonly sent: unknown[] = []
  isKilled = false
  isIdle = false
  onMessage: (message: never) => void = () => undefined
  onEnd: (exit: string) => void = () => undefined
  send(message: unknown): void {
    this.sent.push(message)
  }
  kill(): void {
    this.isKilled = true
  }
  setIdle(isIdle: boolean): void {
    this.isIdle = isIdle
  }
  says(message: object): void {
    this.onMessage(message as never)
  }
}

const undo: (() => void)[] = []
afterEach(() => undo.splice(0).forEach((step) => step()))

function setUp(executor: 'thread' | 'process' = 'thread') {
  const armed = new Map<() => void, number>()
  const timers = {
    after: (ms: number, run: () => void) => (armed.set(run, ms), () => void armed.delete(run)),
    soon: (run: () => void) => run(),
  }
  const children: ScriptedChild[] = []
  const strays: unknown[] = []
  const pool = new ChildPool(timers, () => {
    children.push(new ScriptedChild())
    return children.at(-1) as ScriptedChild
  })
  undo.push(() => pool.close())
  const loop = { call: () => 'in the loop', current: () => undefined }
  const isolated = isolatingExecutor(loop, { pool, timers, strayError: (_, error) => strays.push(error) })
  const run = (
    change: object = {},
    isolation: Isolation | undefined = { executor, module: 'm', memoryMb: undefined },
  ) => {
    const controller = new AbortController()
    const running = {
      id: 'id',
      job: 'echo',
      attempt: 3,
      tick: 9,
      queue: { name: 'mail', pauseUntil: (when: unknown) => `paused ${String(when)}` },
      registered: { isolation },
      signal: controller.signal,
      exit: undefined,
      log: vi.fn<(...line: unknown[]) => void>(),
      progress: vi.fn<(done: number, total?: number) => void>(),
      enqueue: (name: string, payload: unknown) =>
        Promise.resolve({ id: `${name} ${String(payload)}`, isNew: true, get: 1 }),
      results: (name: string) => Promise.resolve([name]),
      ...change,
    } as unknown as Running
    const ended = Promise.resolve(isolated.call(() => undefined, { n: 1 }, running))
    ended.catch(() => undefined)
    const abort = (reason: Error): void => {
      Object.assign(running, { abortReason: reason })
      controller.abort(reason)
    }
    return { ended, running, abort }
  }
  return { run, isolated, children, strays, pool, armed }
}

const thrown = (change: object = {}): object => ({
  name: 'E',
  message: 'no',
  stack: 's',
  props: {},
  isAbort: false,
  ...change,
})

test('a child gets the payload and the context, and its result ends the attempt', async () => {
  const { run, children, pool, armed } = setUp()
  const { ended } = run({ sequence: { index: 1 } })
  const context = { id: 'id', job: 'echo', attempt: 3, tick: 9, queue: 'mail', sequence: { index: 1 } }
  expect(children[0]?.sent).toEqual([{ run: { payload: { n: 1 }, context } }])
  children[0]?.says({ ready: true })
  children[0]?.says({ returned: 5 })
  expect(await ended).toBe(5)
  expect([pool.size, children[0]?.isIdle, children[0]?.isKilled]).toEqual([1, true, false])
  expect([...armed.values()]).toEqual([30_000])
  const next = run()
  expect([children.length, children[0]?.isIdle, armed.size]).toEqual([1, false, 0])
  const beside = run()
  expect([children.length, children[1]?.sent]).toMatchObject([2, [{ run: { context: { sequence: undefined } } }]])
  children[1]?.says({ returned: 6 })
  expect(await beside.ended).toBe(6)
  children[1]?.says({ log: ['late'] })
  expect(vi.mocked(beside.running.log).mock.calls).toEqual([])
  children[0]?.says({ returned: undefined, unsent: 'not cloned' })
  expect(await next.ended).toEqual(new UnsentResult('not cloned'))
})

test('a child that a payload cannot be sent to takes the next attempt', () => {
  const { run, children, pool, isolated } = setUp()
  const { running } = run()
  children[0]?.says({ returned: 1 })
  const send = vi.spyOn(children[0] as ScriptedChild, 'send').mockImplementation(() => {
    throw new TypeError('could not be cloned')
  })
  const call = (): unknown => isolated.call(() => undefined, 1, running)
  expect(call).toThrow('job "echo": its payload cannot be sent to a thread: could not be cloned')
  expect([pool.size, children[0]?.isIdle, children[0]?.isKilled]).toEqual([1, true, false])
  send.mockRestore()
  run()
  expect(children.length).toBe(1)
})

test('a job without isolation runs in the event loop', async () => {
  const { isolated } = setUp()
  expect([isolated.isolates, typeof isolated.current]).toEqual([true, 'function'])
  expect(isolated.call(() => undefined, 1, { registered: {} } as Running)).toBe('in the loop')
})

test('log and progress reach the attempt, and what they throw fails it', async () => {
  const { run, children } = setUp()
  const { running, ended } = run()
  children[0]?.says({ log: ['one', 2] })
  children[0]?.says({ progress: [3, 4] })
  children[0]?.says({ returned: 1 })
  expect(await ended).toBe(1)
  expect([vi.mocked(running.log).mock.calls, vi.mocked(running.progress).mock.calls]).toEqual([[['one', 2]], [[3, 4]]])
  const refuse = (text: string) => () => {
    throw new RangeError(text)
  }
  const other = run({ progress: refuse('first'), log: refuse('second') })
  children[0]?.says({ progress: [-1, undefined] })
  children[0]?.says({ log: ['x'] })
  children[0]?.says({ returned: 1 })
  await expect(other.ended).rejects.toThrow('first')
})

test('what a handler throws keeps its name, fields and causes, and control errors stay what they are', async () => {
  const { run, children, pool } = setUp()
  const failed = run()
  children[0]?.says({
    threw: thrown({ name: 'RangeError', props: { status: 418 }, cause: thrown({ message: 'below' }) }),
  })
  await expect(failed.ended).rejects.toMatchObject({
    name: 'RangeError',
    message: 'no',
    status: 418,
    cause: { message: 'below' },
  })
  const value = run()
  children[0]?.says({ threw: { value: 'a text' } })
  await expect(value.ended).rejects.toBe('a text')
  const aborted = run()
  children[0]?.says({ threw: thrown({ isAbort: true, cause: { value: 7 } }) })
  const abort = await aborted.ended.catch((error: unknown) => error)
  expect(abort).toBeInstanceOf(Abort)
  expect(abort).toMatchObject({ message: 'no', stack: 's', cause: 7 })
  const snoozed = run()
  children[0]?.says({ threw: thrown({ snooze: { delay: '5m' } }) })
  await expect(snoozed.ended).rejects.toBeInstanceOf(Snooze)
  expect([children.length, pool.size]).toEqual([1, 1])
})

test('a child with an uncaught error runs no other attempt', async () => {
  const { run, children, pool } = setUp()
  const { ended } = run()
  children[0]?.says({ uncaught: thrown() })
  await expect(ended).rejects.toThrow('no')
  expect([pool.size, children[0]?.isKilled]).toEqual([0, true])
  for (const late of [{ returned: 1 }, { threw: thrown() }, { uncaught: thrown() }]) children[0]?.says(late)
  children[0]?.onEnd('signal SIGKILL')
  run()
  expect(children.length).toBe(2)
})

test('an error that an earlier attempt left behind is reported, and the child ends with this one', async () => {
  const { run, children, strays, pool } = setUp()
  const { ended } = run()
  children[0]?.says({ stray: thrown({ message: 'left' }) })
  expect(strays).toMatchObject([{ message: 'left' }])
  children[0]?.says({ returned: 2 })
  expect(await ended).toBe(2)
  expect([pool.size, children[0]?.isKilled]).toEqual([0, true])
})

test('verbs of the context are called here, and their answers and errors are sent back', async () => {
  const { run, children } = setUp('process')
  const { ended } = run()
  const call = async (verb: string, ...args: unknown[]): Promise<unknown> => {
    children[0]?.says({ call: 8, verb, args })
    await new Promise((next) => setImmediate(next))
    return children[0]?.sent.at(-1)
  }
  expect(await call('enqueue', 'mail', 1)).toEqual({ answer: 8, value: { id: 'mail 1', isNew: true } })
  expect(await call('results', 'mail')).toEqual({ answer: 8, value: ['mail'] })
  expect(await call('pauseUntil', 'noon')).toEqual({ answer: 8, value: 'paused noon' })
  expect(await call('get')).toMatchObject({
    answer: 8,
    error: {
      name: 'DefinitionError',
      message: expect.stringContaining('handle.get() is not available in a process'),
      code: expect.any(String),
    },
  })
  children[0]?.says({ call: 9, verb: 'results', args: ['late'] })
  const sent = children[0]?.sent.length
  children[0]?.says({ returned: 1 })
  await ended
  await new Promise((next) => setImmediate(next))
  expect(children[0]?.sent.length).toBe(sent)
})

test.each(['thread', 'process'] as const)(
  'a %s that ends by itself fails the attempt with how it ended',
  async (executor) => {
    const { run, children, pool } = setUp(executor)
    const { ended, running } = run()
    children[0]?.onEnd('exit code 3')
    await expect(ended).rejects.toThrow(`the ${executor} of the handler ended`)
    expect([running.exit, pool.size]).toEqual([`${executor} ended: exit code 3`, 0])
  },
)

test('an abort is sent with its reason, and the child is killed only if it does not end within the grace', async () => {
  const { run, children, armed } = setUp()
  const kind = run()
  kind.abort(new TimeoutError('too long'))
  expect(children[0]?.sent.at(-1)).toEqual({ abort: { name: 'TimeoutError', message: 'too long' } })
  expect([...armed.values()]).toEqual([ABORT_GRACE_MS])
  children[0]?.says({ returned: 1 })
  await kind.ended
  expect([...armed.values()]).toEqual([30_000])
  const stuck = run()
  stuck.abort(new TimeoutError('too long'))
  for (const [callback, ms] of armed) if (ms === ABORT_GRACE_MS) callback()
  expect([children[0]?.isKilled, stuck.running.exit]).toEqual([true, 'killed'])
  children[0]?.onEnd('killed')
  await expect(stuck.ended).rejects.toThrow('ended')
  expect(stuck.running.exit).toBe('killed')
})

test('an attempt that was aborted before it began tells its child at once', async () => {
  const { run, children } = setUp()
  const controller = new AbortController()
  controller.abort()
  run({ signal: controller.signal, abortReason: new TimeoutError('early') })
  expect(children[0]?.sent.at(-1)).toEqual({ abort: { name: 'TimeoutError', message: 'early' } })
})

test('an abort after the end, and an end of an attempt that is over, do nothing', async () => {
  const { run, children, isolated } = setUp()
  const { ended, running, abort } = run()
  children[0]?.says({ returned: 1 })
  await ended
  const sent = children[0]?.sent.length
  abort(new TimeoutError('late'))
  isolated.end?.(running)
  expect([children[0]?.sent.length, children[0]?.isKilled, running.exit]).toEqual([sent, false, undefined])
})

test('end() kills the child of one attempt alone', async () => {
  const { run, children, isolated } = setUp()
  const [one, other] = [run(), run()]
  isolated.end?.(one.running)
  expect([one.running.exit, children.map(({ isKilled }) => isKilled)]).toEqual(['killed', [true, false]])
  children[0]?.onEnd('signal SIGKILL')
  await expect(one.ended).rejects.toThrow()
  expect(other.running.exit).toBeUndefined()
})

test('a pool takes only an idle child of the same module, executor and limit', async () => {
  const { run, children } = setUp()
  const isolation = { executor: 'thread', module: 'm', memoryMb: undefined } as const
  const idle = run()
  children[0]?.says({ returned: 1 })
  await idle.ended
  run({}, { ...isolation, module: 'other' })
  run({}, { ...isolation, memoryMb: 64 })
  run({}, { ...isolation, executor: 'process' })
  expect(children.length).toBe(4)
  run()
  expect(children.length).toBe(4)
})

test('an idle child that ends is not taken, and one that is given back after the close is killed', async () => {
  const { run, children, pool, isolated, armed } = setUp()
  const first = run()
  children[0]?.says({ returned: 1 })
  await first.ended
  children[0]?.onEnd('exit code 0')
  expect([pool.size, armed.size]).toEqual([0, 0])
  const second = run()
  expect(children.length).toBe(2)
  isolated.close?.()
  expect([pool.size, children[1]?.isKilled]).toEqual([0, true])
  Object.assign(children[1] as object, { isKilled: false })
  children[1]?.says({ returned: 2 })
  expect([await second.ended, children[1]?.isKilled, armed.size]).toEqual([2, true, 0])
})

test('one listener kills all children of a pool when the process exits, and is removed with the last of them', async () => {
  const before = process.listenerCount('exit')
  const { run, children, pool } = setUp()
  const one = run()
  expect(process.listenerCount('exit')).toBe(before + 1)
  run()
  expect(process.listenerCount('exit')).toBe(before + 1)
  children[0]?.says({ uncaught: thrown() })
  await one.ended.catch(() => undefined)
  expect(process.listenerCount('exit')).toBe(before + 1)
  const killAll = process.listeners('exit').at(-1) as () => void
  killAll()
  expect([process.listenerCount('exit'), children[1]?.isKilled, pool.size]).toEqual([before, true, 0])
})
