import { describe, expect, test } from 'vitest'
import { event, job, workflow } from '../src/index.js'
import { openedMills } from './support/opened-mills.js'

/** What a client does to workflows: send, steps, cancel, pause, resume, retry, edit and delete, on either store. */

const { open, kit } = openedMills('workflow-commands', { poll: '100ms' })

const approved = event<{ by: string }>('approved')
const poked = event('poked')
const counted = event('counted', {
  '~standard': {
    version: 1,
    vendor: 'test',
    types: undefined as unknown as { readonly input: { n: number }; readonly output: { n: number } },
    validate: (value: unknown) =>
      typeof (value as { n?: unknown }).n === 'number'
        ? { value: value as { n: number } }
        : { issues: [{ message: 'must be a number', path: ['n'] }] },
  },
} as const)
const plain = job('plain', () => 'done')
const MISSING = '01890a5d-ac96-774b-bcce-b302099a8057'

const refund = workflow('refund', async (order: { id: string }, w) => {
  const made = await w.step('make', () => `r-${order.id}`)
  const { by } = await w.waitFor(approved, { timeout: '7d' })
  return `${made} by ${by}`
})

describe('mill.send', () => {
  test('checks the schema that a registered workflow declares, also for an event that is named alike and has none', async () => {
    const counts = workflow('counts', {
      events: [counted],
      run: async (_: undefined, w) => (await w.waitFor(counted)).n,
    })
    const t = await kit({ jobs: [counts] })
    const { id } = await t.mill.enqueue(counts)
    await expect(t.mill.send(id, event<unknown>('counted'), { n: 'bad' })).rejects.toMatchObject({
      code: 'E_INVALID_PAYLOAD',
    })
    expect(await t.mill.send(id, event<unknown>('counted'), { n: 3 })).toBe(true)
    await t.drain()
    expect((await t.mill.get(id))?.result).toBe(3)
  })

  test('wakes a workflow that waits, by id, handle or key, and a second event of one id is not written', async () => {
    const t = await kit({ jobs: [refund] })
    const handles = await t.mill.enqueueMany(refund, [{ id: 'a' }, { id: 'b' }])
    const keyed = await t.mill.enqueue(refund, { id: 'c' }, { key: 'c' })
    await t.drain()
    expect((await keyed.get())?.state).toBe('blocked')
    expect(await t.mill.send(handles[0]!.id, approved, { by: 'ann' })).toBe(true)
    expect(await t.mill.send(handles[1]!, approved, { by: 'bob' }, { id: 'click' })).toBe(true)
    expect(await t.mill.send(handles[1]!, approved, { by: 'bo' }, { id: 'click' })).toBe(false)
    expect(await t.mill.send([refund, 'c'], approved, { by: 'cy' })).toBe(true)
    await t.drain()
    const results = await Promise.all([...handles, keyed].map(async (handle) => (await handle.get())?.result))
    expect(results).toEqual(['r-a by ann', 'r-b by bob', 'r-c by cy'])
    expect(await t.mill.send(keyed, approved, { by: 'late' })).toBe(false)
    expect(await t.mill.send([refund, 'c'], approved, { by: 'late' })).toBe(false)
  })

  test('keeps an event that is sent before the workflow waits, or before it begins', async () => {
    const t = await kit({ jobs: [refund] })
    const handle = await t.mill.schedule(refund, { id: 'a' }, '1h')
    await t.mill.send(handle, approved, { by: 'early' })
    expect((await handle.get())?.workflow).toMatchObject({ unread: 1, answers: 0 })
    await t.advance('1h')
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 'r-a by early', workflow: { unread: 0 } })
  })

  test('reaches a workflow in hand', async () => {
    const mill = await open({ jobs: [refund, slow] })
    await mill.start()
    const handle = await mill.enqueue(slow)
    await until(async () => (await handle.get())?.state === 'running')
    await mill.send(handle, poked)
    expect(await handle.result({ timeout: '20s' })).toBe('poked')
  })

  const slow = workflow('slow', async (_: undefined, w) => {
    const first = await w.race({ poke: (own) => own.waitFor(poked), late: (own) => own.step('wait', waitLong) })
    return first.won === 'poke' ? 'poked' : 'late'
  })

  test('refuses what is no workflow, no event, or no payload of the event', async () => {
    const own = workflow('own', { events: [approved, counted], run: async (_: undefined, w) => w.waitFor(approved) })
    const t = await kit({ jobs: [own, refund, plain] })
    const handle = await t.mill.enqueue(own)
    const other = await t.mill.enqueue(plain)
    await expect(t.mill.send(MISSING, approved, { by: 'x' })).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    await expect(t.mill.send([own, 'k'], approved, { by: 'x' })).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    await expect(t.mill.send(other, approved, { by: 'x' })).rejects.toMatchObject({ code: 'E_NOT_A_WORKFLOW' })
    await expect(t.mill.send(handle, poked)).rejects.toThrow(/event "poked" is not known here.*declares "approved"/)
    await expect(t.mill.send(handle, 'aproved', {})).rejects.toThrow(/did you mean "approved"/)
    await expect(t.mill.send(handle, counted, { n: 'x' } as never)).rejects.toThrow(/event "counted".*payload\.n/)
    await expect(t.mill.send(handle, counted, { n: 1, f: () => 1 } as never)).rejects.toMatchObject({
      code: 'E_INVALID_PAYLOAD',
    })
    await expect(t.mill.send(handle, approved, { by: 'x'.repeat(2 ** 20) })).rejects.toMatchObject({
      code: 'E_PAYLOAD_TOO_LARGE',
    })
    for (const wrong of [() => t.mill.send(handle, 7 as never), () => t.mill.send({} as never, approved, { by: 'x' })])
      await expect(wrong()).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    await expect(t.mill.send(handle, approved, { by: 'x' }, { ids: 'x' } as never)).rejects.toThrow(/options.ids.*"id"/)
    expect((await handle.get())?.workflow?.unread).toBe(0)
    expect(await t.mill.send(handle, 'approved', { by: 'named' })).toBe(true)
  })
})

describe('mill.steps and the record', () => {
  test('show what is recorded, and what the workflow waits for', async () => {
    const child = job('child', async () => 'c')
    const all = workflow('all', async (_: undefined, w) => {
      await w.step('first', (s) => (s.log('a line'), { n: 1 }))
      await w.step('bad', { retry: { limit: 0 } }, () => Promise.reject(new Error('no'))).catch(() => undefined)
      await Promise.all([w.waitFor(approved, { timeout: '1h' }), w.sleep('2h'), w.call(child, undefined, { in: '1d' })])
    })
    const t = await kit({ jobs: [all, child] })
    const handle = await t.mill.enqueue(all)
    await t.drain()
    const steps = await t.mill.steps(handle.id)
    expect(steps.map(({ name, kind, state }) => [kind, name, state])).toEqual([
      ['step', 'first', 'done'],
      ['step', 'bad', 'failed'],
      ['wait', 'approved', 'open'],
      ['sleep', '', 'open'],
      ['call', 'child', 'open'],
    ])
    expect(steps[0]).toMatchObject({ attempt: 1, result: { n: 1 }, log: ['a line'] })
    expect(steps[1]).toMatchObject({ error: { message: 'no' } })
    const called = steps[4]?.child ?? ''
    expect((await t.mill.get(called))?.calledBy).toBe(handle.id)
    const paged = await t.mill.steps(handle.id, { after: steps[1]!.address, limit: 2 })
    expect(paged.map(({ name }) => name)).toEqual(['approved', ''])
    const record = await t.mill.get(handle.id)
    expect(record?.workflow).toMatchObject({ run: 0, answers: 2, unread: 0, warnings: [] })
    expect(record?.workflow?.waitingFor).toMatchObject([
      { kind: 'wait', event: 'approved', until: expect.any(Date) as Date },
      { kind: 'sleep', until: expect.any(Date) as Date },
      { kind: 'call', name: 'child', job: called },
    ])
    expect((await t.mill.enqueue(plain).then((one) => one.get()))?.workflow).toBeUndefined()
  })

  test('show a cancel as an answer of its own, with its reason', async () => {
    const undone = workflow('undone', async (_: undefined, w) => {
      try {
        await w.step('reserve', () => 1)
        await w.sleep('1h')
      } finally {
        await w.cleanup((inner) => inner.step('release', () => 2))
      }
    })
    const t = await kit({ jobs: [undone] })
    const { id } = await t.mill.enqueue(undone)
    await t.drain()
    await t.mill.cancel(id)
    await t.drain()
    const steps = (await t.mill.steps(id)).map(({ address, kind, name, state, error }) => [
      address,
      kind,
      name,
      state,
      error,
    ])
    expect(steps).toContainEqual(['!cancel', '!cancel', 'cancel() was called', 'done', undefined])
    expect(steps.map(([address]) => address)).toEqual([
      '/step:reserve#0',
      '!cancel',
      '/cleanup:#0/step:release#0',
      '/sleep:#0',
    ])
  })

  test('refuse a job that is no workflow, or does not exist', async () => {
    const t = await kit({ jobs: [plain] })
    const { id } = await t.mill.enqueue(plain)
    await expect(t.mill.steps(id)).rejects.toMatchObject({ code: 'E_NOT_A_WORKFLOW' })
    await expect(t.mill.steps(MISSING)).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    await expect(t.mill.steps(id, { limit: 0 })).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
  })
})

describe('Commands', () => {
  const undone: string[] = []
  const reserve = workflow('reserve', async (_: undefined, w) => {
    try {
      await w.step('reserve', () => 'r')
      await w.sleep('1h')
      return await w.step('charge', () => 'charged')
    } catch (error) {
      await w.cleanup((own) => own.step('release', () => void undone.push('released')))
      throw error
    }
  })

  test('a cancel unwinds, and with unwind: false the body runs no further', async () => {
    const t = await kit({ jobs: [reserve] })
    const [one, other, early] = [
      await t.mill.enqueue(reserve),
      await t.mill.enqueue(reserve),
      await t.mill.schedule(reserve, undefined, '2h'),
    ]
    await t.drain()
    undone.length = 0
    expect(await early.cancel()).toBe(true)
    expect((await early.get())?.state).toBe('cancelled')
    expect(await t.mill.cancel(one.id)).toBe(true)
    expect(await one.get()).toMatchObject({ state: 'ready', workflow: { requested: 'cancel' } })
    expect(await t.mill.pause(one.id)).toBe(false)
    expect(await other.cancel({ unwind: false })).toBe(true)
    expect((await other.get())?.state).toBe('cancelled')
    await t.drain()
    expect([(await one.get())?.state, undone]).toEqual(['cancelled', ['released']])
    expect(await t.mill.cancel(one.id)).toBe(false)
  })

  test('a pause keeps a workflow from waking, and a resume continues it', async () => {
    const t = await kit({ jobs: [reserve] })
    const handle = await t.mill.enqueue(reserve)
    await t.drain()
    expect(await t.mill.pause(handle.id)).toBe(true)
    await t.advance('2h')
    await t.drain()
    expect((await handle.get())?.state).toBe('paused')
    expect(await t.mill.resume(handle.id)).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 'charged' })
  })

  test('a retry continues where the workflow failed, and a fresh one forgets everything', async () => {
    const acts: string[] = []
    let isBroken = true
    const flaky = workflow('flaky', async (_: undefined, w) => {
      await w.step('one', () => void acts.push('one'))
      await w.step('two', { retry: { limit: 0 } }, () => {
        acts.push('two')
        if (isBroken) throw new Error('broken')
      })
      return acts.length
    })
    const t = await kit({ jobs: [flaky] })
    const handle = await t.mill.enqueue(flaky)
    await t.drain()
    expect((await handle.get())?.state).toBe('failed')
    isBroken = false
    expect(await t.mill.retry(handle.id)).toBe(true)
    await t.drain()
    expect([(await handle.get())?.state, acts]).toEqual(['done', ['one', 'two', 'two']])
    expect((await handle.get())?.attempts.map(({ exit }) => exit)).toContain('retried; forgot /step:two#0')
    isBroken = true
    const again = await t.mill.enqueue(flaky)
    await t.drain()
    isBroken = false
    acts.length = 0
    expect(await t.mill.retry(again.id, { fresh: true })).toBe(true)
    await t.drain()
    expect([(await again.get())?.workflow?.run, acts]).toEqual([1, ['one', 'two']])
  })

  test('unwind and fresh are refused for other jobs', async () => {
    const t = await kit({ jobs: [plain] })
    const { id } = await t.mill.enqueue(plain)
    await expect(t.mill.cancel(id, { unwind: false })).rejects.toThrow(/unwind is for workflows/)
    await expect(t.mill.retry(id, { fresh: true })).rejects.toThrow(/fresh is for workflows/)
    await expect(t.mill.cancel(id, { unwound: true } as never)).rejects.toThrow(/unwound.*"unwind"/)
    const sequence = await t.mill.sequence(
      job('item', () => 1),
      [undefined],
    )
    await expect(t.mill.retry(sequence.id, { fresh: true })).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
  })

  test('the input of a workflow that has begun is not edited, and its place is', async () => {
    const t = await kit({ jobs: [refund] })
    const [begun, early] = [await t.mill.enqueue(refund, { id: 'a' }), await t.mill.schedule(refund, { id: 'b' }, '1d')]
    await t.drain()
    await expect(t.mill.edit(begun.id, { payload: { id: 'x' } })).rejects.toThrow(
      /payload cannot be edited of a workflow/,
    )
    expect(await t.mill.edit(begun.id, { priority: 5, labels: ['l'] })).toBe(true)
    expect(await begun.get()).toMatchObject({ state: 'blocked', priority: 5, labels: ['l'] })
    expect(await t.mill.edit(early.id, { payload: { id: 'y' } })).toBe(true)
    await t.mill.send(begun, approved, { by: 'ann' })
    await t.drain()
    expect((await begun.get())?.result).toBe('r-a by ann')
    expect(await t.mill.delete(begun.id)).toBe(true)
    await expect(t.mill.steps(begun.id)).rejects.toMatchObject({ code: 'E_JOB_GONE' })
  })
})

async function waitLong(s: { readonly signal: AbortSignal }): Promise<string> {
  await new Promise((resolve) => s.signal.addEventListener('abort', resolve, { once: true }))
  return 'late'
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (let left = 400; left > 0; left -= 1) {
    if (await isTrue()) return
    await new Promise((next) => setTimeout(next, 25))
  }
  throw new Error('it did not become true in 10 s')
}
