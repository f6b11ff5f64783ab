import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { DrivenWorkflow } from '../../test/support/driven-workflow.js'
import type { DrivenOptions } from '../../test/support/driven-workflow.js'
import { seeded } from '../testing/simulation/random.js'
import type { AnyJob } from '../job/definition/define.js'
import type { RunEnd } from './host.js'
import { event, workflow } from './define.js'
import type { Work } from './work.js'

type Body = (input: never, w: Work) => unknown

/** `body` is given what it drives: its steps take virtual time. */
function driven(
  body: (d: () => DrivenWorkflow) => Body,
  options: DrivenOptions = {},
  more: object = {},
): DrivenWorkflow {
  const made: DrivenWorkflow[] = []
  const job = workflow('w', { run: body(() => made[0] as DrivenWorkflow), ...more } as never)
  made.push(new DrivenWorkflow(job as AnyJob, options))
  return made[0] as DrivenWorkflow
}

function valueOf(end: RunEnd): unknown {
  if (end.kind === 'done') return end.value
  throw 'error' in end && end.error instanceof Error ? end.error : new Error(JSON.stringify(end))
}

/** Runs it unharmed, and killed after each number of rows, before and after that commit; every run returns the same. */
async function withEachKill(
  make: (options: DrivenOptions) => DrivenWorkflow,
  check: (d: DrivenWorkflow, value: unknown) => void,
) {
  const first = make({})
  const value = valueOf(await first.toEnd())
  check(first, value)
  for (let killAt = 0; killAt <= first.written; killAt += 1)
    for (const options of [{ killAt }, { killAt, killsAfterCommit: true }, { killAt, sticky: true }]) {
      const killed = make(options)
      const again = valueOf(await killed.toEnd())
      expect(again, `killed at ${killAt}`).toEqual(value)
      check(killed, again)
    }
}

test('LW2: addresses of a body with a loop, keys and nested branches', async () => {
  const d = driven(() => async (_: never, w: Work) => {
    for (let i = 0; i < 2; i += 1) await w.step('load', () => i)
    await w.step('load', { key: 'a/b' }, () => 0)
    await w.all({
      stock: (one) => one.all([(two) => two.step('x', () => 1), (two) => two.sleep('1s')]),
      price: (one) => one.step('x', () => w.id),
    })
    await w.each('page', ['u', 'v'], (url, one) => one.step('get', () => url), { key: (url) => url })
    await w.each('page', [7], (n, one) => one.step('get', () => n))
    await w.race({ reply: (one) => one.sleep('1ms', { name: 'nap' }) })
    await w.cleanup((one) => one.step('tidy', () => 0))
  })
  expect((await d.toEnd()).kind).toBe('done')
  expect(d.addresses().toSorted()).toEqual(
    [
      '/step:load#0',
      '/step:load#1',
      '/step:load=a%2fb#0',
      '/all:#0/stock/all:#0/0/step:x#0',
      '/all:#0/stock/all:#0/1/sleep:#0',
      '/all:#0/price/step:x#0',
      '/each:page#0/=u/step:get#0',
      '/each:page#0/=v/step:get#0',
      '/each:page#1/0/step:get#0',
      '/race:#0/reply/sleep:nap#0',
      '/cleanup:#0/step:tidy#0',
    ].toSorted(),
  )
})

test('LW3: verbs of the outer w inside a branch are addressed in the outer scope', async () => {
  const d = driven(() => async (_: never, w: Work) => {
    await w.all({ a: () => w.step('outer', () => 1), b: (one) => one.step('inner', () => 2) })
  })
  await d.toEnd()
  expect(d.addresses().toSorted()).toEqual(['/all:#0/b/step:inner#0', '/step:outer#0'])
})

test('4: LW4, LW8: three plain branches with equal names get their own values however the run is killed', async () => {
  const random = seeded(4)
  for (let seed = 0; seed < 12; seed += 1) {
    const delays = Array.from({ length: 9 }, () => Math.floor(random.next() * 40))
    await withEachKill(
      (options) =>
        driven(
          (d) => async (_: never, w: Work) => {
            const branch = async (mark: number) => {
              const seen: number[] = []
              for (let i = 0; i < 3; i += 1)
                seen.push(
                  await w.step('load', async () => {
                    await d().after(delays[mark * 3 + i] as number)
                    return mark
                  }),
                )
              return seen
            }
            return Promise.all([branch(0), branch(1), branch(2)])
          },
          options,
        ),
      (d, value) => {
        expect(value).toEqual([[0, 0, 0], [1, 1, 1], [2, 2, 2]]) // prettier-ignore
        if (d.kills === 0) expect(d.warnings.some(({ kind }) => kind === 'same-name')).toBe(true)
      },
    )
  }
})

test('6: LW7: the body sees no result before its commit', async () => {
  const seen: number[] = []
  const d = driven(
    (of) => async (_: never, w: Work) => {
      await w.step('a', () => 1)
      seen.push(of().time.now, of().rows.size)
      await Promise.all([w.step('b', () => 2), w.step('c', () => 3)])
      seen.push(of().time.now, of().rows.size)
    },
    { commitMs: 500 },
  )
  await d.toEnd()
  expect(seen).toEqual([1_000_500, 1, 1_001_000, 3])
})

test('16: LW16: frozen bodies are collected', async () => {
  const bodies: WeakRef<object>[] = []
  for (let i = 0; i < 200; i += 1) {
    const d = driven(() => async (_: never, w: Work) => {
      const held = { large: new Array(50).fill(i) }
      bodies.push(new WeakRef(held))
      await w.sleep('1h')
      return held
    })
    await d.claim()
  }
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  // The last one may still be on the stack.
  expect(bodies.filter((body) => body.deref() !== undefined).length).toBeLessThan(5)
})

test('7: LW8: Promise.race of two steps of one commit has the same winner on each of 100 replays', async () => {
  const body = async (_: never, w: Work) => {
    const won: string[] = []
    for (let i = 0; i < 3; i += 1)
      won.push(await Promise.race([w.step('a', () => 'a'), w.step('b', () => 'b'), w.sleep(0).then(() => 'c')]))
    await w.step('end', () => 0)
    return won.join('')
  }
  const first = driven(() => body)
  const value = valueOf(await first.toEnd())
  for (let replay = 0; replay < 100; replay += 1) {
    const again = driven(() => body)
    for (const [address, row] of first.rows) again.rows.set(address, row)
    expect(valueOf(await again.toEnd())).toBe(value)
    expect(again.written).toBe(0)
  }
})

test('8: LW9: a replay of 1,000 answers acts 0 times and logs nothing', async () => {
  let acts = 0
  const lines: string[] = []
  const make = () => {
    const d = driven(() => async (_: never, w: Work) => {
      let sum = 0
      for (let i = 0; i < 1_000; i += 1) {
        sum += await w.step('add', () => {
          acts += 1
          return i
        })
        w.log('line', i)
      }
      await w.sleep('1h')
      return sum
    })
    return d
  }
  const first = make()
  await first.claim()
  expect(acts).toBe(1_000)
  for (const { note } of first.rows.values())
    lines.push(...((JSON.parse(note ?? '{}') as { log?: string[] }).log ?? []))
  expect(lines).toHaveLength(1_000)
  const again = make()
  for (const [address, row] of first.rows) again.rows.set(address, row)
  await again.time.advanceTo(first.time.now + 3_600_000)
  expect(valueOf(await again.toEnd())).toBe(499_500)
  expect(acts).toBe(1_000)
  expect(again.rows.get('/sleep:#0')?.note).toBe(first.rows.get('/sleep:#0')?.note)
})

const original: Body = async (_: never, w: Work) => {
  await w.step('a', () => 1)
  await w.step('b', () => 2)
  await w.sleep('1h')
  await w.step('c', () => 3)
  return 'old'
}

test.each<[string, Body, { recorded: string[]; called: string[] }]>([
  ['renamed', async (_, w: Work) => { await w.step('a', () => 1); await w.step('z', () => 2); await w.sleep('1h') }, { recorded: ['/step:b#0', '/sleep:#0'], called: ['/step:z#0'] }], // prettier-ignore
  ['removed', async (_, w: Work) => { await w.step('a', () => 1); await w.sleep('1h') }, { recorded: ['/step:b#0'], called: [] }], // prettier-ignore
  ['inserted', async (_, w: Work) => { await w.step('new', () => 1); await original(_, w as never) }, { recorded: ['/step:a#0', '/step:b#0', '/sleep:#0'], called: ['/step:new#0'] }], // prettier-ignore
  ['early return', async (_, w: Work) => { await w.step('a', () => 1) }, { recorded: ['/step:b#0', '/sleep:#0'], called: [] }], // prettier-ignore
  ['changed open sleep', async (_, w: Work) => { await w.step('a', () => 1); await w.step('b', () => 2); await w.sleep('1h', { name: 'long' }) }, { recorded: ['/sleep:#0'], called: ['/sleep:long#0'] }], // prettier-ignore
])('9: LW10: code that was %s parks with the exact difference, and nothing acts', async (_, body, difference) => {
  const first = driven(() => original)
  await first.claim()
  let acts = 0
  const changed = driven(() => async (input: never, w: Work) => {
    const step = (name: string, act: () => unknown) => w.step(name, () => { acts += 1; return act() }) // prettier-ignore
    return body(input, { step, sleep: w.sleep.bind(w) } as never)
  })
  for (const [address, row] of first.rows) changed.rows.set(address, row)
  expect(await changed.toEnd()).toEqual({ kind: 'drifted', ...difference })
  expect(acts).toBe(0)
  expect([...changed.rows.values()]).toEqual([...first.rows.values()])
})

test.each<[string, Body]>([
  ['swapped', async (_, w: Work) => { await w.step('b', () => 2); await w.step('a', () => 1); await w.sleep('1h'); await w.step('c', () => 3); return 'old' }], // prettier-ignore
  ['parallel', async (_, w: Work) => { await Promise.all([w.step('b', () => 2), w.step('a', () => 1)]); await w.sleep('1h'); await w.step('c', () => 3); return 'old' }], // prettier-ignore
])('11: LW11: steps that were %s replay without parking', async (kind, body) => {
  const first = driven(() => original)
  await first.claim()
  const changed = driven(() => body)
  for (const [address, row] of first.rows) changed.rows.set(address, row)
  await changed.time.advanceTo(first.time.now + 3_600_000)
  expect(valueOf(await changed.toEnd())).toBe('old')
  expect(changed.warnings.some((each) => each.kind === 'reordered')).toBe(kind === 'swapped')
})

test('12: LW12: the body sees the recorded copy, live and after a kill', async () => {
  class Point {
    x = 1
  }
  await withEachKill(
    (options) =>
      driven(
        () => async (_: never, w: Work) => {
          const at = await w.step('date', () => new Date(5))
          const map = await w.step('map', () => new Map([[1, { deep: new Date(6) }]]))
          const bad = await w.step('class', () => new Point()).catch((error: { code: string }) => error.code)
          const nothing = await w.step('nothing', () => undefined)
          await w.sleep('1m')
          return [at instanceof Date, at.getTime(), map.get(1)?.deep.getTime(), bad, nothing]
        },
        options,
      ),
    (_, value) => expect(value).toEqual([true, 5, 6, 'E_STEP_RESULT', undefined]),
  )
})

test('14: LW14: the state and the wake-up time for each mixture of waits', async () => {
  const end = async (body: Body): Promise<RunEnd> => driven(() => body).claim() as Promise<RunEnd>
  const go = event('go')
  const failing = { retry: { backoff: { start: '1m' as const } } }
  const fail = () => {
    throw new Error('no')
  }
  expect(await end((_, w: Work) => w.sleep('1h'))).toMatchObject({ to: 'scheduled', wakeAt: 4_600_000, waits: [] })
  expect(await end((_, w: Work) => w.waitFor(go))).toMatchObject({ to: 'blocked', wakeAt: null, waits: ['event:go'] })
  expect(await end((_, w: Work) => w.step('s', failing, fail))).toMatchObject({ to: 'retrying', wakeAt: 1_060_000 })
  expect(await end((_, w: Work) => Promise.all([w.sleep('1h'), w.waitFor(go, { timeout: '2h' })]))).toMatchObject({ to: 'blocked', wakeAt: 4_600_000 }) // prettier-ignore
  expect(await end((_, w: Work) => Promise.all([w.sleep('1h'), w.step('s', failing, fail)]))).toMatchObject({ to: 'scheduled', wakeAt: 1_060_000 }) // prettier-ignore
  expect(await end((_, w: Work) => w.call('other' as never, 1 as never))).toMatchObject({ to: 'blocked', waits: ['call:child-0'] }) // prettier-ignore
})

test('16: LW16: neither catch nor finally runs around a sleep when the run is frozen', async () => {
  let ran = 0
  const d = driven(() => async (_: never, w: Work) => {
    try {
      await w.sleep('1h')
    } catch {
      ran += 1
    } finally {
      ran += 1
    }
  })
  await d.claim()
  await new Promise((resolve) => setImmediate(resolve))
  expect(ran).toBe(0)
})

test('17: LW17: a verb after the end rejects, and one of a frozen run never settles', async () => {
  let late: Work | undefined
  const d = driven(() => async (_: never, w: Work) => {
    late = w
  })
  await d.toEnd()
  await expect(late?.step('x', () => 1)).rejects.toMatchObject({ code: 'E_WORKFLOW_OVER' })
  const frozen = driven(() => async (_: never, w: Work) => {
    late = w
    await w.sleep('1h')
  })
  await frozen.claim()
  const settled = await Promise.race([late?.step('x', () => 1).then(() => true), Promise.resolve(false)])
  expect(settled).toBe(false)
  expect(frozen.warnings).toHaveLength(1)
})

test('18: LW18: now, random and uuid are the same on each replay and write nothing', async () => {
  const seen: unknown[] = []
  const d = driven(() => async (_: never, w: Work) => {
    const drawn: unknown[] = [w.now().getTime(), w.random(), w.uuid()]
    await w.sleep('1m')
    drawn.push(w.now().getTime(), w.random(), await w.all([(one) => one.random(), (one) => one.random()]))
    await w.sleep('1m')
    drawn.push(w.now().getTime())
    seen.push(JSON.stringify(drawn))
    for (let i = 0; i < 5; i += 1) await w.sleep('1m')
  })
  await d.toEnd()
  expect(seen.length).toBeGreaterThan(4)
  expect(new Set(seen).size).toBe(1)
  expect(JSON.parse(seen[0] as string)[2]).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  expect(d.rows.size).toBe(7)
})

test('19: LW20: a foreign await is warned of once, ends, and is waited for on replay; strict refuses it', async () => {
  const make = (options: DrivenOptions) =>
    driven(
      (d) => async (_: never, w: Work) => {
        await w.step('a', () => 1)
        await d().after(50)
        const b = await w.step('b', () => 2)
        await w.sleep('1h')
        return b
      },
      options,
    )
  const first = make({})
  expect(valueOf(await first.toEnd())).toBe(2)
  expect(first.warnings.filter(({ kind }) => kind === 'foreign-await').length).toBeGreaterThan(0)
  expect(JSON.parse(first.rows.get('/step:b#0')?.note ?? '{}')).toMatchObject({ foreign: true })
  const strict = make({ isStrict: true })
  await expect(strict.toEnd().then(valueOf)).rejects.toMatchObject({ code: 'E_FOREIGN_AWAIT' })
})

test('21: LW22: a body that returns while a step acts ends, and its answer is not recorded', async () => {
  const d = driven((d) => async (_: never, w: Work) => {
    void w.step('slow', () => d().after(10_000))
    void w.step('bad', { retry: { limit: 0 } }, () => Promise.reject(new Error('unseen')))
    await w.step('quick', () => d().after(50))
  })
  const end = await d.toEnd()
  expect(end).toMatchObject({ kind: 'done', note: expect.stringContaining('/step:slow#0') as string })
  expect(d.addresses()).not.toContain('/step:slow#0')
})

test('22: LW23: of 13 steps at once never more than `concurrency` act', async () => {
  let [acting, most] = [0, 0]
  const d = driven(
    (d) => async (_: never, w: Work) => {
      await Promise.all(
        Array.from({ length: 13 }, () =>
          w.step('s', async () => {
            acting += 1
            most = Math.max(most, acting)
            await d().after(10)
            acting -= 1
          }),
        ),
      )
    },
    {},
    { concurrency: 4 },
  )
  await d.toEnd()
  expect(most).toBe(4)
})

test('23: LW24: attempts survive a kill between them; the acts are the limit and one, and one for each kill in an act', async () => {
  for (let killAt = 0; killAt < 5; killAt += 1) {
    const attempts: number[] = []
    const d = driven(
      () => (_: never, w: Work) =>
        w
          .step('s', { retry: { limit: 3, jitter: 0 } }, (s) => {
            attempts.push(s.attempt)
            throw new Error('no')
          })
          .catch((error: { code: string; attempt: number }) => [error.code, error.attempt]),
      { killAt, killsAfterCommit: true },
    )
    expect(valueOf(await d.toEnd())).toEqual(['E_STEP_FAILED', 4])
    expect(attempts.length).toBe(killAt === 0 ? 5 : 4)
  }
})

test('26: LW27: a caught error is the same after a kill as live', async () => {
  await withEachKill(
    (options) =>
      driven(
        () => async (_: never, w: Work) => {
          const error = await w
            .step('s', { retry: { limit: 0 } }, () => {
              throw Object.assign(new TypeError('bad', { cause: new Error('root') }), { code: 'E_OWN', status: 409 })
            })
            .catch((caught: Error & { cause: Error & { code: string; status: number } }) => caught)
          await w.sleep('1m')
          const { name, message, cause } = error as Error & { cause: Error & { code: string; status: number } }
          return [name, message, cause.name, cause.message, cause.code, cause.status, (cause.cause as Error).message]
        },
        options,
      ),
    (_, value) =>
      expect(value).toEqual(['StepFailedError', 'step "s" failed (attempt 1): bad', 'TypeError', 'bad', 'E_OWN', 409, 'root']), // prettier-ignore
  )
})

test('27: LW28: a result that cannot be written is one act and E_STEP_RESULT', async () => {
  let acts = 0
  const d = driven(() => (_: never, w: Work) =>
    w.step('s', () => { acts += 1; return () => 1 }).catch((error: { code: string }) => error.code)) // prettier-ignore
  expect(valueOf(await d.toEnd())).toBe('E_STEP_RESULT')
  expect(acts).toBe(1)
})

test('28: LW29: a transaction is recorded in its own commit, and other answers wait for it', async () => {
  await withEachKill(
    (options) =>
      driven(
        (d) => async (_: never, w: Work) =>
          Promise.all([
            w.transaction('t', async () => {
              await d().after(30)
              return 't'
            }),
            w.step('a', async () => {
              await d().after(10)
              return 'a'
            }),
            w.transaction('u', () => 'u'),
          ]),
        options,
      ),
    (d, value) => {
      expect(value).toEqual(['t', 'a', 'u'])
      expect([...d.rows.values()].map(({ no }) => no ?? -1).toSorted((a, b) => a - b)).toEqual([0, 1, 2])
    },
  )
})

test('31: LW33: a deadline in a sleep unwinds, runs the cleanup and fails', async () => {
  let undone = 0
  const d = driven(
    () => async (_: never, w: Work) => {
      try {
        await w.sleep('1d')
      } finally {
        await w.cleanup((one) => one.step('undo', () => void (undone += 1)))
      }
    },
    {},
    { deadline: '1h' },
  )
  const end = await d.toEnd()
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'E_TIMEOUT' } })
  expect(undone).toBe(1)
  expect(d.addresses()[0]).toBe('!deadline')
})

test('35: LW39: many events and three waiters, killed after every row: each once and in order', async () => {
  const go = event<number>('go')
  const make = (options: DrivenOptions) => {
    const d = driven(
      () => async (_: never, w: Work) => {
        const got: number[] = []
        const waiter = async () => {
          for (let i = 0; i < 4; i += 1) got.push(await w.waitFor(go))
        }
        await Promise.all([waiter(), waiter(), waiter()])
        return got
      },
      options,
    )
    for (let i = 0; i < 6; i += 1) d.send('go', i)
    for (let i = 6; i < 12; i += 1) d.time.at(d.time.now + i * 1_000, () => d.send('go', i))
    return d
  }
  await withEachKill(make, (d, value) => {
    expect(value).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(d.inbox).toEqual([])
  })
})

test.each([
  ['before', -1, 'event'],
  ['at', 0, 'event'],
  ['after', 1, 'E_TIMEOUT'],
])(
  '36: LW40: an event sent 1 ms %s the timeout decides, though the worker comes an hour late',
  async (_, by, expected) => {
    const go = event('go')
    const d = driven(() => (_: never, w: Work) =>
    w.waitFor(go, { timeout: '1m' }).then(() => 'event', (error: { code: string }) => error.code)) // prettier-ignore
    await d.claim()
    await d.time.advanceTo(1_060_000 + by)
    d.send('go', undefined)
    await d.time.advanceTo(1_060_000 + 3_600_000)
    expect(valueOf(await d.toEnd())).toBe(expected)
  },
)

test('38: LW42: one child for an address however the run is killed', async () => {
  const make = (options: DrivenOptions) =>
    driven(
      () => async (_: never, w: Work) => {
        const a = await w.call('child' as never, 1 as never)
        const [b, c] = await Promise.all([
          w.call('child' as never, 2 as never),
          w.enqueue('other' as never, 3 as never),
        ])
        return [a, b, typeof (c as { id: string }).id]
      },
      {
        ...options,
        onRow: ({ address, kind, no }, d) => {
          if (kind === 'call' && no === null)
            d.time.at(d.time.now + 500, () => {
              const id = d.children.find((child) => child.address === address)?.id
              if (id !== undefined) d.endChild(id, address)
            })
        },
      },
    )
  await withEachKill(make, (d, value) => {
    expect(value).toEqual(['/call:child#0', '/call:child#1', 'string'])
    expect(d.children.map(({ address }) => address).toSorted()).toEqual(['/call:child#0', '/call:child#1', '/enqueue:other#0']) // prettier-ignore
  })
})

test('a step that ends in the turn in which a call is inserted gets its answer', async () => {
  const make = (options: DrivenOptions) =>
    driven(
      () => async (_: never, w: Work) =>
        Promise.all([w.step('a', () => 'a'), w.call('child' as never, 1 as never), w.sleep(0).then(() => 's')]),
      {
        ...options,
        onRow: ({ kind, no }, d) => {
          if (kind === 'call' && no === null) d.time.at(d.time.now + 50, () => d.endChild('child-0', 'c'))
        },
      },
    )
  await withEachKill(make, (_, value) => expect(value).toEqual(['a', 'c', 's']))
})

test('41: LW45: the job that the loser of a race has called is cancelled, unless it is left', async () => {
  const d = driven((of) => async (_: never, w: Work) => {
    await w.race({
      quick: (one) => one.step('s', () => of().after(500)),
      slow: (one) => one.call('slow' as never, 1 as never),
      left: (one) => one.call('left' as never, 1 as never, { onCancel: 'leave' } as never),
    })
    await w.sleep('1h')
  })
  await d.claim()
  expect(d.children.map(({ address }) => address)).toEqual(['/race:#0/slow/call:slow#0', '/race:#0/left/call:left#0'])
  expect(d.cancelledChildren).toEqual(['child-0'])
})

test('42: LW46: `all` rejects with the first error, and its siblings unwind', async () => {
  const make = (options: DrivenOptions) =>
    driven(
      (d) => async (_: never, w: Work) => {
        const codes: string[] = []
        const caught = await w
          .all({
            a: async (one) => {
              await one.sleep('1d').catch((error: { code: string }) => codes.push(error.code))
              await one.step('never', () => 1).catch((error: { code: string }) => codes.push(error.code))
            },
            b: (one) => one.step('late', { retry: { limit: 0 } }, async (s) => {
              await d().after(50)
              return s.signal.aborted
            }),
            c: (one) => one.step('bad', { retry: { limit: 0 } }, async () => {
              await d().after(10)
              throw new Error('first')
            }),
          })
          .catch((error: Error & { cause: Error }) => error.cause.message)
        return [caught, codes]
      },
      options,
    ) // prettier-ignore
  await withEachKill(make, (d, value) => {
    expect(value).toEqual(['first', ['E_SIBLING_FAILED', 'E_SIBLING_FAILED']])
    expect(d.addresses()).not.toContain('/all:#0/a/step:never#0')
    expect(d.rows.get('/all:#0/a/sleep:#0')?.kind ?? 'unwound').toBe('unwound')
  })
})

test('43: LW47: each of none, with keys, and at most so many at a time', async () => {
  let [acting, most] = [0, 0]
  const d = driven((d) => async (_: never, w: Work) => {
    const none = await w.each('n', [], () => 1)
    const twice = await w.each('p', [1, 2], (n, one) => one.step('s', () => n), { key: () => 'same' }).catch((error: Error) => error.message) // prettier-ignore
    const all = await w.each('p', [3, 1, 2], (n, one) => one.step('s', async () => {
      acting += 1
      most = Math.max(most, acting)
      await d().after(n * 10)
      acting -= 1
      return n
    }), { concurrency: 2 }) // prettier-ignore
    return [none, twice, all]
  })
  const [none, twice, all] = valueOf(await d.toEnd()) as unknown[]
  expect([none, all, most]).toEqual([[], [3, 1, 2], 2])
  expect(twice).toContain('items[0]')
})

test('44: LW48: the loser of a race unwinds, runs its cleanup, and its sleep never wakes', async () => {
  const reply = event<string>('reply')
  const make = (options: DrivenOptions) => {
    const d = driven(
      () => async (_: never, w: Work) => {
        const first = await w.race({
          reply: (one) => one.waitFor(reply),
          late: async (one) => {
            try {
              await one.sleep('7d')
            } catch (error) {
              await one.cleanup((two) => two.step('undo', () => (error as { code: string }).code))
              throw error
            }
          },
        })
        await w.sleep('30d')
        return first
      },
      options,
    )
    d.time.at(d.time.now + 5_000, () => d.send('reply', 'yes'))
    return d
  }
  await withEachKill(make, (d, value) => {
    expect(value).toEqual({ won: 'reply', value: 'yes' })
    expect(d.addresses()).toContain('/race:#0/late/cleanup:#0/step:undo#0')
    expect(d.rows.get('/race:#0/late/sleep:#0')?.kind).toBe('unwound')
    const last = d.ends.findLast((end) => end.kind === 'suspended')
    expect(last).toMatchObject({ to: 'scheduled', wakeAt: d.time.now })
  })
})

test('45: LW49 to LW53: cancelled at any time and killed at any row: nothing acts after it, and the cleanup is whole', async () => {
  for (let at = 0; at <= 140; at += 7)
    for (let killAt = 0; killAt <= 6; killAt += 2) {
      const acts: string[] = []
      const d = driven(
        (d) => async (_: never, w: Work) => {
          const act = (name: string, ms: number) => async () => {
            acts.push(name)
            await d().after(ms)
          }
          let isCharged = false
          try {
            await w.step('reserve', act('reserve', 20))
            await w.sleep(40)
            await w.step('charge', act('charge', 30))
            isCharged = true
            await w.sleep(30)
          } catch (error) {
            await w.cleanup(async (one) => {
              if (isCharged) await one.step('refund', act('refund', 10))
              await one.step('release', act('release', 10))
            })
            throw error
          }
        },
        { killAt, killsAfterCommit: at % 2 === 0 },
      )
      d.time.at(d.time.now + at, () => d.cancel())
      const end = await d.toEnd()
      const rows = [...d.rows.values()].filter(({ no }) => no !== null).toSorted((a, b) => (a.no ?? 0) - (b.no ?? 0))
      const cancelNo = d.rows.get('!cancel')?.no
      if (end.kind === 'done') expect(cancelNo).toBeUndefined()
      else {
        expect(end.kind).toBe('cancelled')
        for (const { address, since, no } of rows)
          if ((since ?? 0) > (cancelNo ?? 0) && no !== cancelNo) expect(address).toContain('/cleanup:#0/')
        expect(d.addresses()).toContain('/cleanup:#0/step:release#0')
        const isCharged = rows.some(({ address, error }) => address === '/step:charge#0' && error === null)
        expect(d.addresses().includes('/cleanup:#0/step:refund#0')).toBe(isCharged)
      }
    }
})

test('46: LW52: a step that succeeds while it is cancelled is known to the body', async () => {
  const d = driven((d) => async (_: never, w: Work) => {
    const charged = await w.step('charge', async () => {
      await d().after(100)
      return 'receipt'
    })
    await w.cleanup((one) => one.step('refund', () => charged))
  })
  d.time.at(d.time.now + 50, () => d.cancel())
  const end = await d.toEnd()
  expect(end).toMatchObject({ kind: 'cancelled', reason: 'cancelled' })
  expect(d.rows.get('/cleanup:#0/step:refund#0')?.value).toBe('"receipt"')
})

test('LW52: a step that throws while it is cancelled is not tried again', async () => {
  let acts = 0
  const d = driven((d) => async (_: never, w: Work) => {
    await w.step('charge', async () => {
      acts += 1
      await d().after(100)
      throw new Error('no')
    })
  })
  d.time.at(d.time.now + 50, () => d.cancel())
  expect(await d.toEnd()).toMatchObject({ kind: 'cancelled', error: undefined })
  expect(acts).toBe(1)
})

test('LW53: unwinding that takes longer than cancelWithin is ended', async () => {
  const d = driven(
    () => async (_: never, w: Work) => {
      try {
        await w.sleep('1d')
      } finally {
        await w.cleanup((one) => one.sleep('1d'))
      }
    },
    {},
    { cancelWithin: '1m' },
  )
  d.time.at(d.time.now + 1_000, () => d.cancel())
  expect(await d.toEnd()).toMatchObject({ kind: 'cancelled' })
  expect(d.time.now).toBe(1_061_000)
})

test('52: LW62: a guarded insert: 0 in old runs, 1 in new ones, also in a loop', async () => {
  const old = driven(() => async (_: never, w: Work) => {
    await w.step('a', () => 1)
    await w.sleep('1h')
    return 'old'
  })
  await old.claim()
  const body: Body = async (_: never, w: Work) => {
    const seen: number[] = []
    for (let i = 0; i < 3; i += 1) {
      seen.push(w.version('audit'))
      if (w.version('audit')) await w.step('audit', () => 1)
      if (i === 0) await w.step('a', () => 1)
      await w.sleep('1h')
    }
    return seen
  }
  const changed = driven(() => body)
  for (const [address, row] of old.rows) changed.rows.set(address, row)
  expect(valueOf(await changed.toEnd())).toEqual([0, 0, 0])
  const fresh = driven(() => body)
  expect(valueOf(await fresh.toEnd())).toEqual([1, 1, 1])
})

test('LW9, LW62: between two answers of one commit a body that runs for the first time reads the latest version and is logged', async () => {
  const d = driven(() => async (_: never, w: Work) => {
    const [version] = await w.all([
      async (one) => {
        await one.step('first', () => 1)
        one.log('between')
        return one.version('audit')
      },
      (one) => one.step('second', () => 1),
    ])
    await w.step('last', () => 1)
    return version
  })
  expect(valueOf(await d.toEnd())).toBe(1)
  expect([...d.rows.values()].map(({ address, note }) => [address, note])).toEqual([
    ['/all:#0/0/step:first#0', expect.stringContaining('beganAt')],
    ['/all:#0/1/step:second#0', null],
    ['/step:last#0', '{"log":["between"],"versions":{"audit":1}}'],
  ])
})

test('53: LW63: restart begins an empty log, and an event between two runs is taken', async () => {
  const go = event<number>('go')
  const seen: number[] = []
  const d = driven(() => async (_: never, w: Work) => {
    if (w.run > 0) seen.push(await w.waitFor(go))
    await w.step('s', () => 1)
    return w.run < 50 ? (w as Work<number>).restart(w.run) : 'end'
  })
  for (let i = 1; i <= 50; i += 1) d.send('go', i)
  expect(valueOf(await d.toEnd())).toBe('end')
  expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
  const unused = driven(() => (_: never, w: Work) => void (w as Work<number>).restart(1))
  await expect(unused.toEnd().then(valueOf)).rejects.toMatchObject({ code: 'E_RESTART_UNUSED' })
})

test('54: LW64: the limit of answers parks, and a higher one continues', async () => {
  let acts = 0
  const body: Body = async (_: never, w: Work) => {
    for (let i = 0; i < 10; i += 1) await w.step('s', () => void (acts += 1))
    return 'end'
  }
  const small = driven(() => body, {}, { steps: 5 })
  expect(await small.toEnd()).toMatchObject({ kind: 'full' })
  expect([acts, small.rows.size]).toEqual([5, 5])
  const raised = driven(() => body, {}, { steps: 50 })
  for (const [address, row] of small.rows) raised.rows.set(address, row)
  expect(valueOf(await raised.toEnd())).toBe('end')
  expect(acts).toBe(10)
})

test('65: LW90: a run that is kept gives what one that replays gives', async () => {
  const random = seeded(65)
  for (let seed = 0; seed < 60; seed += 1) {
    const plan = Array.from(
      { length: 12 },
      () => [Math.floor(random.next() * 3), Math.floor(random.next() * 2_000)] as const,
    )
    const run = async (sticky: boolean): Promise<unknown> => {
      const d = driven(
        (d) => async (_: never, w: Work) => {
          const seen: string[] = []
          const branch = async (name: string, from: number) => {
            for (let i = from; i < 12; i += 3) {
              const [kind, ms] = plan[i] as readonly [number, number]
              if (kind === 0) await w.sleep(ms)
              else await w.step('s', async () => d().after(kind === 1 ? 0 : ms))
              seen.push(name)
            }
          }
          await Promise.all([branch('a', 0), branch('b', 1), branch('c', 2)])
          return seen
        },
        { sticky },
      )
      return valueOf(await d.toEnd())
    }
    expect(await run(true)).toEqual(await run(false))
  }
})

test('LW55, LW56: a drain lets steps end and begins no other', async () => {
  const acts: string[] = []
  const d = driven((d) => async (_: never, w: Work) => {
    for (const name of ['a', 'b', 'c'])
      await w.step(name, async () => {
        acts.push(name)
        await d().after(100)
      })
  })
  d.time.at(d.time.now + 150, () => {
    d.draining = 'stop'
    d.wake()
  })
  expect(await d.claim()).toMatchObject({ kind: 'yielded', why: 'stop' })
  expect(acts).toEqual(['a', 'b'])
  expect(d.addresses()).toEqual(['/step:a#0', '/step:b#0'])
  d.draining = undefined
  await d.toEnd()
  expect(acts).toEqual(['a', 'b', 'c'])
})

test('LW5: bad arguments reject, and no operation exists', async () => {
  const d = driven(() => async (_: never, w: Work) => {
    const wrong: (() => Promise<unknown>)[] = [
      () => w.step('', () => 1),
      () => w.step('x', { retries: 3 } as never, () => 1),
      () => w.step('x', 5 as never),
      () => w.sleep('1 fortnight' as never),
      () => w.sleepUntil('soon'),
      () => w.waitFor('go' as never),
      () => w.race({}),
      () => w.all(5 as never),
      () => w.call(5 as never, 1 as never),
      () => w.transaction('t', 5 as never),
    ]
    const codes: string[] = []
    for (const each of wrong) await each().catch((error: { code: string }) => codes.push(error.code))
    return codes
  })
  expect(valueOf(await d.toEnd())).toEqual(Array(10).fill('E_INVALID_OPTIONS'))
  expect(d.rows.size).toBe(0)
})
