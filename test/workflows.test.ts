import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { Abort, event, job, workflow } from '../src/index.js'
import type { Mill, Work } from '../src/index.js'
import { internalsOf } from '../src/mill/internals.js'
import type { MillInternals } from '../src/mill/internals.js'
import { run as runCommandLine } from '../src/cli/run.js'
import { replay } from '../src/testing/index.js'
import { systemWorld } from '../src/world/world.js'
import { freshStore } from './support/fresh-store.js'
import { testing } from './support/testing.js'
import { openedMills } from './support/opened-mills.js'

/** Workflows through the public API, on either store. The numbers are those of the acceptance tests of long work. */

const { folder, open, kit } = openedMills('workflows', { poll: '100ms' })

const partsOf = (mill: Mill): MillInternals => internalsOf(mill) as MillInternals
const wait = (ms: number): Promise<void> => new Promise((next) => void setTimeout(next, ms))

const COMMANDS = {
  cancel: (mill: Mill, id: string) => mill.cancel(id),
  end: (mill: Mill, id: string) => mill.cancel(id, { unwind: false }),
  pause: (mill: Mill, id: string) => mill.pause(id),
  resume: (mill: Mill, id: string) => mill.resume(id),
  retry: (mill: Mill, id: string) => mill.retry(id),
}

function command(mill: Mill, id: string, verb: keyof typeof COMMANDS): Promise<boolean> {
  return COMMANDS[verb](mill, id)
}

async function addresses(mill: Mill, id: string): Promise<string[]> {
  const page = await partsOf(mill).store.workflows.readSteps(id, undefined, 1_000)
  return (page?.rows ?? []).map(({ address, no }) => (no === null ? `${address} open` : address))
}

test('a step that is slow is logged by its name until it logs something itself', async () => {
  const lines: string[] = []
  const error = (_: object, line: string): void => void lines.push(line)
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error }
  const flow = workflow('flow', (_: undefined, w) =>
    w.step('charge', async (ctx) => {
      await vi.waitFor(() => expect(lines.join()).toContain('(last step: charge)'), { timeout: 10_000, interval: 5 })
      ctx.log('half of it')
      await vi.waitFor(() => expect(lines.join()).toContain('(last log: half of it)'), { timeout: 10_000, interval: 5 })
    }),
  )
  const mill = await open({ jobs: [flow], logger, slowAfter: '20ms' })
  await mill.start()
  await (await mill.enqueue(flow)).result({ timeout: '20s' })
})

test('the end of a workflow is written while every slot is taken, and waits for no poll', async () => {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const short = workflow('short', (n: number, w) => w.step('double', () => n * 2))
  const long = workflow('long', (_: undefined, w) => w.step('hold', () => released))
  const mill = await open({ jobs: [short, long], concurrency: 2, poll: '1h' })
  const first = await mill.enqueue(short, 21)
  const others = [await mill.enqueue(long), await mill.enqueue(long)]
  await mill.start()
  expect(await first.result({ timeout: '20s' })).toBe(42)
  release()
  await Promise.all(others.map((other) => other.result({ timeout: '20s' })))
})

describe('A workflow', () => {
  test('takes steps, sleeps, and ends with its result', async () => {
    const acts: string[] = []
    const onboard = workflow('onboard', async (user: { name: string }, w) => {
      const account = await w.step('create', (s) => {
        acts.push(`create ${s.attempt}`)
        return { id: `a-${user.name}`, at: new Date(5) }
      })
      await w.sleep('3d')
      const charged = await w.step('charge', () => {
        acts.push('charge')
        return 42
      })
      return [account.id, account.at.getTime(), charged] as const
    })
    const t = await kit({ jobs: [onboard] })
    const handle = await t.mill.enqueue(onboard, { name: 'ada' })
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'scheduled', attempt: 0, attempts: [] })
    await t.advance('2d')
    await t.drain()
    expect(acts).toEqual(['create 1'])
    await t.advance('1d')
    expect(await t.drain()).toMatchObject({ ran: 1, done: 1 })
    expect(acts).toEqual(['create 1', 'charge'])
    expect(await handle.get()).toMatchObject({ state: 'done', result: ['a-ada', 5, 42] })
  })

  test('1: LW1: is enqueued by key, in a group, after another and scheduled like any job', async () => {
    const first = job('first', () => 'parent')
    const flow = workflow('flow', async (n: number, w) => {
      const [parent] = n === 2 ? await w.results(first) : []
      return w.step('s', () => [n, parent])
    })
    const t = await kit({ jobs: [first, flow] })
    const one = await t.mill.enqueue(flow, 1, { key: 'k', group: 'g' })
    const again = await t.mill.enqueue(flow, 9, { key: 'k' })
    expect([again.id, again.isNew]).toEqual([one.id, false])
    const parent = await t.mill.enqueue(first)
    const two = await t.mill.enqueue(flow, 2, { after: [parent], group: 'g' })
    const three = await t.mill.schedule(flow, 3, '1h')
    await t.drain()
    expect((await one.get())?.result).toEqual([1, undefined])
    expect((await two.get())?.result).toEqual([2, 'parent'])
    expect((await three.get())?.state).toBe('scheduled')
    await t.advance('1h')
    await t.drain()
    expect((await three.get())?.result).toEqual([3, undefined])
    expect(await t.mill.group('g').progress()).toMatchObject({ done: 2, total: 2 })
  })

  test('23: LW24: a step is retried by its own policy, and its attempts survive', async () => {
    const attempts: number[] = []
    const flaky = workflow('flaky', (_: undefined, w) =>
      w.step('s', { retry: { limit: 2, backoff: { start: '1m', factor: 1 }, jitter: 0 } }, (s) => {
        attempts.push(s.attempt)
        if (s.attempt < 3) throw new Error('not yet')
        return s.attempt
      }),
    )
    const t = await kit({ jobs: [flaky] })
    const handle = await t.mill.enqueue(flaky)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'retrying', attempt: 0 })
    await t.advance('1m')
    await t.drain()
    await t.advance('1m')
    await t.drain()
    expect(attempts).toEqual([1, 2, 3])
    expect(await handle.get()).toMatchObject({ state: 'done', result: 3 })
  })

  test('24: LW25: Abort in a step is final, and in the body fails the workflow', async () => {
    const aborted = workflow('aborted', async (inStep: boolean, w) => {
      if (inStep) await w.step('s', () => { throw new Abort('no use') }) // prettier-ignore
      throw new Abort('body')
    })
    const t = await kit({ jobs: [aborted] })
    const [a, b] = [await t.mill.enqueue(aborted, true), await t.mill.enqueue(aborted, false)]
    await t.drain()
    expect(await a.get()).toMatchObject({ state: 'failed', error: { code: 'E_STEP_FAILED' } })
    expect(await b.get()).toMatchObject({ state: 'failed', error: { name: 'Abort' } })
  })

  test('steps one after the other, side by side, and calls of jobs on a running mill', async () => {
    const add = job('add', (p: { a: number; b: number }) => p.a + p.b)
    const sums = workflow('sums', async (n: number, w) => {
      const doubled = await w.step('double', () => n * 2)
      await w.sleep(20)
      const each = await w.each('n', [1, 2, 3], (one, x) => x.step('square', () => one * one), { concurrency: 2 })
      const sum = await w.call(add, { a: doubled, b: each[2] as number })
      const { id } = await w.enqueue(add, { a: 1, b: 1 })
      return [sum, typeof id]
    })
    const mill = await open({ jobs: [add, sums] })
    await mill.start()
    const handle = await mill.enqueue(sums, 4)
    expect(await handle.result({ timeout: '20s' })).toEqual([17, 'string'])
  })
})

const original = async (_: undefined, w: Work): Promise<string> => {
  await w.step('a', () => 1)
  await w.sleep('1h')
  await w.step('b', () => 2)
  return 'end'
}

describe('Changed code', () => {
  test('9, 10, 13: LW10, LW13: parks with the difference, replay says so before, and a retry with the old code ends', async () => {
    let body = original
    const flow = workflow('flow', (input: undefined, w) => body(input, w))
    const t = await kit({ jobs: [flow], workflows: { sticky: 0 } })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    expect(await replay(t.mill, handle.id, flow)).toEqual({ fits: true })
    const before = await addresses(t.mill, handle.id)
    body = async (_, w) => {
      await w.step('renamed', () => expect.unreachable('it acted'))
      return 'never'
    }
    const difference = { recorded: ['/step:a#0', '/sleep:#0'], called: ['/step:renamed#0'] }
    expect(await replay(t.mill, handle.id, flow)).toEqual({ fits: false, ...difference })
    await t.advance('1h')
    await t.drain()
    const parked = await handle.get()
    expect(parked).toMatchObject({ state: 'parked', error: { code: 'E_NON_DETERMINISM' } })
    expect(parked?.reason).toContain('no longer calls /step:a#0, /sleep:#0; it calls /step:renamed#0')
    const { recorded, called } = parked?.error?.props ?? {}
    expect({ recorded: JSON.parse(String(recorded)), called: JSON.parse(String(called)) }).toEqual(difference)
    expect(await addresses(t.mill, handle.id)).toEqual(before)
    body = original
    expect(await command(t.mill, handle.id, 'retry')).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 'end' })
  })

  test('13: LW13: millrace replay agrees with replay(), and fails when one would park', async () => {
    const flow = workflow('flow', original)
    const store = freshStore(folder)
    const mill = await open({ jobs: [flow] }, store)
    await mill.start()
    const handle = await mill.enqueue(flow)
    await vi.waitFor(async () => expect((await handle.get())?.state).toBe('scheduled'), { timeout: 10_000 })
    const replayed = async (body: string, name = 'flow'): Promise<{ code: number; out: string }> => {
      const module = join(folder, `jobs-${name}-${body.length}.mjs`)
      const brands = `[Symbol.for('millrace.job')]: true, [Symbol.for('millrace.workflow')]: true`
      writeFileSync(
        module,
        `export const flow = { ${brands}, name: '${name}', options: { run: async (_, w) => { ${body} } } }`,
      )
      const lines: string[] = []
      const note = (line: string): void => void lines.push(line)
      const terminal = { stdout: note, stderr: note, world: systemWorld() }
      const code = await runCommandLine(['replay', '--jobs', module, '--store', store], terminal)
      return { code, out: lines.join(' | ') }
    }
    expect(await replayed(`await w.step('a', () => 1); await w.sleep('1h')`)).toEqual({
      code: 0,
      out: '1 fit, 0 would park',
    })
    const parking = await replayed(`await w.step('z', () => 1)`)
    expect(parking.code).toBe(1)
    expect(parking.out).toContain('no longer calls /step:a#0, /sleep:#0; it calls /step:z#0')
    const missing = await replayed(`await w.step('a', () => 1); await w.sleep('1h');`, 'other')
    expect(missing.code).toBe(1)
    expect(missing.out).toContain(`flow ${handle.id}: the module exports no workflow of this name`)
    expect(missing.out).toContain('0 fit, 0 would park, 1 are of workflows that')
  })

  test('52: LW62: w.version guards an insert: 0 in an old run, 1 in a new one', async () => {
    let body: (input: undefined, w: Work) => Promise<unknown> = original
    const flow = workflow('flow', (input: undefined, w) => body(input, w))
    const t = await kit({ jobs: [flow], workflows: { sticky: 0 } })
    const old = await t.mill.enqueue(flow)
    await t.drain()
    body = async (input, w) => {
      const version = w.version('audit')
      if (version) await w.step('audit', () => 1)
      await original(input, w)
      return version
    }
    const young = await t.mill.enqueue(flow)
    await t.drain()
    await t.advance('1h')
    await t.drain()
    expect([(await old.get())?.result, (await young.get())?.result]).toEqual([0, 1])
  })
})

const go = event<number>('go')
/** Three waiters share them. `MILLRACE_LONG_WORK=full` sends as many as the acceptance test states. */
const EVENTS = process.env['MILLRACE_LONG_WORK'] === 'full' ? 1_002 : 90

describe('Events', () => {
  test('32: LW35: early, while it waits, while it is paused, and after its end', async () => {
    const flow = workflow('flow', async (_: undefined, w) => {
      await w.step('s', () => 1)
      return [await w.waitFor(go), await w.waitFor(go), await w.waitFor(go, { timeout: '1h' })]
    })
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow)
    expect(await t.mill.send(handle.id, go, 1)).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'blocked' })
    expect(await t.mill.send(handle.id, go, 2)).toBe(true)
    await t.drain()
    expect(await command(t.mill, handle.id, 'pause')).toBe(true)
    expect(await t.mill.send(handle.id, go, 3)).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'paused' })
    expect(await command(t.mill, handle.id, 'resume')).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: [1, 2, 3] })
    expect(await t.mill.send(handle.id, go, 4)).toBe(false)
  })

  test.each([
    [-1, 'event'],
    [1, 'E_TIMEOUT'],
  ])(
    '36: LW40: one that is sent %d ms after the timeout, to a worker that sleeps for an hour',
    async (by, expected) => {
      const flow = workflow('flow', (_: undefined, w) =>
        w.waitFor(go, { timeout: '1m' }).then(
          () => 'event',
          (error: { code: string }) => error.code,
        ),
      )
      const t = await kit({ jobs: [flow] })
      const handle = await t.mill.enqueue(flow)
      await t.drain()
      await t.advance(60_000 + by)
      await t.mill.send(handle.id, go, 1)
      await t.advance('1h')
      await t.drain()
      expect((await handle.get())?.result).toBe(expected)
    },
  )

  test(`35: LW39: ${EVENTS} events to three waiters of a running mill, with runs that are not kept: each once and in order`, async () => {
    const flow = workflow('flow', async (_: undefined, w) => {
      const got: number[] = []
      const waiter = async (): Promise<void> => {
        for (let i = 0; i < EVENTS / 3; i += 1) got.push(await w.waitFor(go))
      }
      await Promise.all([waiter(), waiter(), waiter()])
      return got
    })
    const mill = await open({ jobs: [flow], workflows: { sticky: 0 } })
    await mill.start()
    const handle = await mill.enqueue(flow)
    for (let i = 0; i < EVENTS; i += 1) expect(await mill.send(handle.id, go, i)).toBe(true)
    expect(await handle.result({ timeout: '120s' })).toEqual(Array.from({ length: EVENTS }, (_, i) => i))
  }, 180_000) // prettier-ignore
})

describe('Time', () => {
  test('30: LW32: 40 days, a past instant, and a span that is edited while the workflow sleeps', async () => {
    let span: '40d' | '1d' = '40d'
    const flow = workflow('flow', async (_: undefined, w) => {
      await w.sleepUntil(new Date(0))
      const before = w.now().getTime()
      await w.sleep(span)
      return w.now().getTime() - before
    })
    const t = await kit({ jobs: [flow], workflows: { sticky: 0 } })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    span = '1d'
    await t.advance('39d')
    await t.drain()
    expect((await handle.get())?.state).toBe('scheduled')
    await t.advance('1d')
    await t.drain()
    expect((await handle.get())?.result).toBe(40 * 86_400_000)
  })

  test("7: LW8: a body is driven under the runner's fake timers", async () => {
    vi.useFakeTimers()
    try {
      const flow = workflow('flow', async (_: undefined, w) => {
        const won = await Promise.race([w.step('a', () => 'a'), w.step('b', () => 'b')])
        await w.sleep('1h')
        return won
      })
      const t = await testing({ jobs: [flow], workflows: { sticky: 0 } })
      const handle = await t.mill.enqueue(flow)
      await t.drain()
      await t.advance('1h')
      await t.drain()
      expect((await handle.get())?.result).toBe('a')
      await t.close()
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('Calls', () => {
  test('39, 40: LW43, LW44: a child without history, failed, cancelled and deleted', async () => {
    const good = job('good', { run: (n: number) => n * 2, keep: 'none' })
    const bad = job('bad', { run: () => Promise.reject(new TypeError('broken')), retry: { limit: 0 } })
    const later = job('later', (n: number) => n)
    const flow = workflow('flow', async (_: undefined, w) => {
      const code = (error: { code: string; cause?: { name: string } }): unknown => [error.code, error.cause?.name]
      return Promise.all([
        w.call(good, 21),
        w.call(bad).catch(code),
        w.call(later, 1, { in: '1d' }).catch(code),
        w.call(later, 2, { in: '1d' }).catch(code),
      ])
    })
    const t = await kit({ jobs: [good, bad, later, flow] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'blocked' })
    const [one, two] = [await t.expectEnqueued(later, 1), await t.expectEnqueued(later, 2)]
    expect(one.calledBy).toBe(handle.id)
    expect(await t.mill.cancel(one.id)).toBe(true)
    expect(await t.mill.delete(two.id)).toBe(true)
    await t.drain()
    await t.drain()
    expect((await handle.get())?.result).toEqual([
      42,
      ['E_JOB_FAILED', 'TypeError'],
      ['E_JOB_CANCELLED', undefined],
      ['E_JOB_GONE', undefined],
    ])
  })

  test('41: LW45: a cancel reaches called jobs, but for those that are left or existed before', async () => {
    const slow = job('slow', (n: number) => n)
    const flow = workflow('flow', async (_: undefined, w) => {
      await Promise.all([
        w.call(slow, 1, { in: '1d' }),
        w.call(slow, 2, { in: '1d', onCancel: 'leave' }),
        w.call(slow, 3, { key: 'held' }),
      ])
    })
    const t = await kit({ jobs: [slow, flow] })
    const held = await t.mill.enqueue(slow, 3, { key: 'held', in: '1d' })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    expect(await command(t.mill, handle.id, 'cancel')).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'cancelled' })
    const states = await Promise.all([1, 2].map(async (n) => (await t.expectEnqueued(slow, n)).state))
    expect([...states, (await held.get())?.state]).toEqual(['cancelled', 'scheduled', 'scheduled'])
  })
})

describe('Cancel, pause and stop', () => {
  test('45, 46: LW51, LW52: a cancel while a step acts lets its result be known, and runs the cleanup', async () => {
    const acts: string[] = []
    let charging: () => void = () => undefined
    const begun = new Promise<void>((begin) => (charging = begin))
    const flow = workflow('flow', async (_: undefined, w) => {
      let receipt: string | undefined
      try {
        receipt = await w.step('charge', async (s) => {
          acts.push('charge')
          charging()
          await new Promise((aborted) => s.signal.addEventListener('abort', aborted))
          return 'receipt'
        })
        await w.step('ship', () => void acts.push('ship'))
      } catch (error) {
        await w.cleanup((one) => one.step('refund', () => void acts.push(`refund ${receipt}`)))
        throw error
      }
    })
    const mill = await open({ jobs: [flow] })
    await mill.start()
    const handle = await mill.enqueue(flow)
    await begun
    expect(await command(mill, handle.id, 'cancel')).toBe(true)
    await expect(handle.result({ timeout: '20s' })).rejects.toMatchObject({ code: 'E_JOB_CANCELLED' })
    expect(acts).toEqual(['charge', 'refund receipt'])
  })

  test('47: LW49: ended at once without unwinding, and cancelled before it began', async () => {
    let undone = 0
    const flow = workflow('flow', async (_: undefined, w) => {
      try {
        await w.step('s', () => 1)
        await w.sleep('1d')
      } finally {
        undone += 1
      }
    })
    const t = await kit({ jobs: [flow] })
    const never = await t.mill.enqueue(flow, undefined, { in: '1h' })
    expect(await command(t.mill, never.id, 'cancel')).toBe(true)
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    expect(await command(t.mill, handle.id, 'end')).toBe(true)
    await t.drain()
    expect([(await never.get())?.state, (await handle.get())?.state, undone]).toEqual(['cancelled', 'cancelled', 0])
  })

  test('48: LW55: a pause in a step lets it end, and a resume continues', async () => {
    const acts: string[] = []
    let letGo: () => void = () => undefined
    const flow = workflow('flow', async (_: undefined, w) => {
      await w.step('a', async () => {
        acts.push('a')
        await new Promise<void>((go) => (letGo = go))
      })
      await w.step('b', () => void acts.push('b'))
    })
    const mill = await open({ jobs: [flow] })
    await mill.start()
    const handle = await mill.enqueue(flow)
    await vi.waitFor(() => expect(acts).toEqual(['a']))
    expect(await command(mill, handle.id, 'pause')).toBe(true)
    await wait(100)
    letGo()
    await vi.waitFor(async () => expect((await handle.get())?.state).toBe('paused'), { timeout: 10_000 })
    expect(acts).toEqual(['a'])
    expect(await command(mill, handle.id, 'resume')).toBe(true)
    await handle.result({ timeout: '20s' })
    expect(acts).toEqual(['a', 'b'])
  })

  test('49: LW56: a stop in step 2 of 3: it ends in another process, and no act is doubled', async () => {
    const acts: string[] = []
    const flow = workflow('flow', async (_: undefined, w) => {
      for (const name of ['a', 'b', 'c'])
        await w.step(name, async () => {
          acts.push(name)
          await wait(150)
        })
      return 'end'
    })
    const store = freshStore(folder)
    const first = await open({ jobs: [flow] }, store)
    await first.start()
    const { id } = await first.enqueue(flow)
    await vi.waitFor(() => expect(acts).toEqual(['a', 'b']))
    await first.stop({ deadline: '10s' })
    expect(acts).toEqual(['a', 'b'])
    expect(await first.get(id)).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 })
    const second = await open({ jobs: [flow] }, store)
    await second.start()
    expect(await second.handle(id).result({ timeout: '20s' })).toBe('end')
    expect(acts).toEqual(['a', 'b', 'c'])
  })
})

describe('Retry, restart and limits', () => {
  test('51: LW61: a retry of a failed workflow acts again only from the answer that failed it', async () => {
    const acts: string[] = []
    let isBroken = true
    const flow = workflow('flow', { retry: { limit: 0 }, run: async (_: undefined, w) => {
      await w.step('a', () => void acts.push('a'))
      const [b] = await Promise.all([
        w.step('b', () => {
          acts.push('b')
          if (isBroken) throw new Error('broken')
          return 'b'
        }),
        w.step('c', () => void acts.push('c')),
      ])
      await w.step('d', () => void acts.push('d'))
      return b
    } }) // prettier-ignore
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'failed', error: { code: 'E_STEP_FAILED' } })
    expect(acts.toSorted()).toEqual(['a', 'b', 'c'])
    isBroken = false
    expect(await command(t.mill, handle.id, 'retry')).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 'b' })
    expect(acts.toSorted()).toEqual(['a', 'b', 'b', 'c', 'd'])
  })

  test('51: LW61: a retry of a cancelled workflow goes on where it was', async () => {
    const flow = workflow('flow', async (_: undefined, w) => {
      const a = await w.step('a', () => 1)
      await w.sleep('1h')
      return a
    })
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    await command(t.mill, handle.id, 'cancel')
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'cancelled' })
    expect(await command(t.mill, handle.id, 'retry')).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'scheduled' })
    await t.advance('1h')
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 1 })
  })

  test('51: LW61: a step that threw because of the cancel acts again after a retry', async () => {
    let acts = 0
    const flow = workflow('flow', async (_: undefined, w) =>
      w.step('s', async (s) => {
        acts += 1
        if (acts === 1)
          await new Promise((_done, fail) => s.signal.addEventListener('abort', () => fail(new Error('no'))))
        return acts
      }),
    )
    const mill = await open({ jobs: [flow] })
    await mill.start()
    const handle = await mill.enqueue(flow)
    await vi.waitFor(() => expect(acts).toBe(1))
    expect(await mill.cancel(handle.id)).toBe(true)
    await vi.waitFor(async () => expect((await handle.get())?.state).toBe('cancelled'), { timeout: 10_000 })
    expect(await mill.retry(handle.id)).toBe(true)
    expect(await handle.result({ timeout: '20s' })).toBe(2)
  })

  test('LW53: what a body returns after its cancel is kept with it', async () => {
    const flow = workflow('flow', async (_: undefined, w) => {
      await w.step('a', () => 1)
      await w.sleep('1h').catch(() => undefined)
      return 'partial'
    })
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    await t.mill.cancel(handle.id)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'cancelled', result: 'partial', error: undefined })
    await expect(t.mill.sequence(flow, [undefined])).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
  })

  test('53: LW63: a restart begins an empty log with the next input, and an event between two runs is taken', async () => {
    const flow = workflow('flow', async (sum: number, w: Work<number>) => {
      const got = await w.waitFor(go)
      const next = await w.step('add', () => sum + got)
      return got === 0 ? next : w.restart(next)
    })
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow, 100, { key: 'k' })
    for (let i = 1; i <= 20; i += 1) await t.mill.send(handle.id, go, i)
    await t.mill.send(handle.id, go, 0)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 310 })
    expect((await handle.get())?.attempts.filter(({ exit }) => exit === 'restarted').length).toBeGreaterThan(0)
    expect(await addresses(t.mill, handle.id)).toEqual(['/wait:go#0', '/step:add#0'])
  })

  test('54: LW64: a full log parks, and a raised limit continues', async () => {
    let acts = 0
    const make = (steps: number) =>
      workflow('flow', {
        steps,
        run: async (_: undefined, w) => {
          for (let i = 0; i < 6; i += 1) await w.step('s', () => void (acts += 1))
          return acts
        },
      })
    const store = freshStore(folder)
    const small = make(4)
    const mill = await open({ jobs: [small] }, store)
    await mill.start()
    const handle = await mill.enqueue(small)
    await vi.waitFor(async () => expect((await handle.get())?.state).toBe('parked'), { timeout: 10_000 })
    expect([(await handle.get())?.error?.code, acts]).toEqual(['E_LOG_LIMIT', 4])
    await mill.close()
    const raised = await open({ jobs: [make(100)] }, store)
    await raised.start()
    await command(raised, handle.id, 'retry')
    expect(await raised.handle(handle.id).result({ timeout: '20s' })).toBe(6)
  })

  test('31: LW33: a deadline in a sleep runs the cleanup and fails', async () => {
    let undone = 0
    const flow = workflow('flow', {
      deadline: '1h',
      run: async (_: undefined, w) => {
        try {
          await w.sleep('1d')
        } finally {
          await w.cleanup((one) => one.step('undo', () => void (undone += 1)))
        }
      },
    })
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    await t.advance('1h')
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'failed', error: { code: 'E_TIMEOUT' } })
    expect(undone).toBe(1)
  })
})

describe('Steps', () => {
  test('20: LW21: a verb inside a step, and result() in the body and in a step', async () => {
    const flow = workflow('flow', async (_: undefined, w) => {
      const code = (error: { code: string; cause?: { code: string } }): string => error.cause?.code ?? error.code
      const handle = mill.handle(w.id)
      return [
        await w.step('nested', { retry: { limit: 0 } }, () => w.step('inner', () => 1)).catch(code),
        await w.step('result', { retry: { limit: 0 } }, () => handle.result()).catch(code),
        await handle.result().catch(code),
      ]
    })
    const mill = await open({ jobs: [flow] })
    await mill.start()
    const handle = await mill.enqueue(flow)
    expect(await handle.result({ timeout: '20s' })).toEqual([
      'E_STEP_NESTED',
      'E_RESULT_IN_HANDLER',
      'E_RESULT_IN_HANDLER',
    ])
  })

  test('25: LW26: a timeout aborts the signal, and the attempt is retried', async () => {
    const flow = workflow('flow', (_: undefined, w) =>
      w.step('s', { timeout: 50, retry: { limit: 1, backoff: { start: 10 }, jitter: 0 } }, async (s) => {
        if (s.attempt === 1) await new Promise((_done, fail) => s.signal.addEventListener('abort', () => fail(s.signal.reason)))
        return s.attempt
      }),
    ) // prettier-ignore
    const mill = await open({ jobs: [flow] })
    await mill.start()
    expect(await (await mill.enqueue(flow)).result({ timeout: '20s' })).toBe(2)
  })

  test('19: LW20: a foreign await ends, and strict refuses it', async () => {
    const make = (strict: boolean) =>
      workflow('flow', {
        strict,
        run: async (_: undefined, w) => {
          await w.step('a', () => 1)
          await wait(30)
          return w.step('b', () => 2)
        },
      })
    for (const strict of [false, true]) {
      const flow = make(strict)
      const mill = await open({ jobs: [flow] })
      await mill.start()
      const handle = await mill.enqueue(flow)
      if (strict)
        await expect(handle.result({ timeout: '20s' })).rejects.toMatchObject({ cause: { code: 'E_FOREIGN_AWAIT' } })
      else expect(await handle.result({ timeout: '20s' })).toBe(2)
    }
  })

  test('LW17, LW20: a foreign await that ends while the run is suspended is replayed, and strict refuses it', async () => {
    const make = (strict: boolean) =>
      workflow('beside', {
        strict,
        run: (_: undefined, w) =>
          w.all({
            a: async (inner) => {
              await wait(50)
              return inner.step('a', () => 1)
            },
            b: async (inner) => {
              await inner.sleep(500)
              return 2
            },
          }),
      })
    for (const strict of [false, true]) {
      const beside = make(strict)
      const mill = await open({ jobs: [beside], concurrency: 1 })
      await mill.start()
      const result = (await mill.enqueue(beside)).result({ timeout: '20s' })
      if (strict) await expect(result).rejects.toMatchObject({ cause: { code: 'E_FOREIGN_AWAIT' } })
      else expect(await result).toEqual({ a: 1, b: 2 })
    }
  })

  test('20: LW21: a verb inside an act fails the step at once, whatever its retries', async () => {
    let acts = 0
    const nested = workflow('nested', (_: undefined, w) =>
      w.step('outer', { retry: { limit: 5 } }, () => {
        acts += 1
        return w.step('inner', () => 1)
      }),
    )
    const mill = await open({ jobs: [nested] })
    await mill.start()
    await expect((await mill.enqueue(nested)).result({ timeout: '20s' })).rejects.toMatchObject({
      cause: { code: 'E_STEP_FAILED' },
    })
    expect(acts).toBe(1)
  })

  test('15: LW15: two endless loops of steps on a concurrency of 2 let a plain job run', async () => {
    let isOver = false
    const loop = workflow('loop', async (_: undefined, w: Work<undefined>) => {
      while (!isOver) {
        await w.step('s', () => wait(5))
        if (w.steps > 500) return w.restart(undefined)
      }
      return undefined
    })
    const plain = job('plain', () => 'ran')
    const mill = await open({ jobs: [loop, plain], concurrency: 2 })
    await mill.start()
    const loops = [await mill.enqueue(loop), await mill.enqueue(loop)]
    await wait(300)
    expect(await (await mill.enqueue(plain)).result({ timeout: '15s' })).toBe('ran')
    isOver = true
    for (const handle of loops) await handle.result({ timeout: '15s' })
  }, 40_000)
})
