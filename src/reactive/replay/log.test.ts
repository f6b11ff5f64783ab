/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import { ADDRESS_MAX, Scope, formatAddress, hash128 } from './address.js'
import type { LogLimitError } from '../errors.js'
import type { Fault, Spin } from '../index.js'
import {
  createSimulation,
  deferred,
  effect,
  iterate,
  mailbox,
  onCancel,
  read,
  signal,
  spin,
  waitFor,
} from '../index.js'
import { ReplayLog } from './log.js'
import type { SpinCell } from '../spins/spin.js'

const logOf = (each: Spin<unknown>): ReplayLog => (each as unknown as SpinCell).node.log

describe('long loops', () => {
  test('R71 only reads of the current turn count, and its messages are kept', () => {
    const ctx = createSimulation()
    const { box, s } = ctx.enter(() => ({ box: mailbox<string>(), s: signal(1) }))
    const out: unknown[] = []
    const loop = ctx.enter(() =>
      spin(() =>
        iterate(undefined, function* () {
          const m = yield* waitFor(box)
          const x = yield* read(s)
          out.push([m, x])
          return { next: undefined }
        }),
      ),
    )
    ctx.spawn(loop)
    ctx.enter(() => [box.post('a'), box.post('b')])
    ctx.enter(() => s.set(2))
    expect(out).toEqual([
      ['a', 1],
      ['b', 1],
    ])
    ctx.enter(() => box.post('c'))
    expect(out[2]).toEqual(['c', 2])
    let longest = 0
    for (let i = 0; i < 100_000; i++) {
      ctx.enter(() => box.post(String(i)))
      longest = Math.max(longest, logOf(loop).length)
    }
    expect([out.length, longest]).toEqual([100_003, 1])
  })

  test('R71 a change of something read in this turn restarts this turn', () => {
    const ctx = createSimulation()
    const { box, s, gate } = ctx.enter(() => ({ box: mailbox<string>(), s: signal(1), gate: mailbox<number>() }))
    const out: unknown[] = []
    let starts = 0
    ctx.spawn(function* () {
      starts++
      yield* iterate(0, function* (turn) {
        const x = yield* read(s)
        const m = yield* waitFor(box)
        yield* waitFor(gate)
        out.push([turn, m, x])
        return { next: turn + 1 }
      })
    })
    ctx.enter(() => [box.post('a'), gate.post(1), box.post('b')])
    ctx.enter(() => s.set(2)) // parked in the second turn, on the gate, with "b" taken
    ctx.enter(() => gate.post(1))
    expect([out, box.size]).toEqual([
      [
        [0, 'a', 1],
        [1, 'b', 2],
      ],
      0,
    ])
    expect(starts).toBe(2)
  })

  test('R71 a finished loop gives its result to a re-run, and its turns leave no children', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    let turns = 0
    const each = ctx.enter(() =>
      spin(function* () {
        const sum = yield* iterate(0, function* (n) {
          turns++
          yield* waitFor(
            spin(function* () {
              return n
            }),
          )
          return n === 5 ? { done: n } : { next: n + 1 }
        })
        return sum + (yield* read(s))
      }),
    )
    expect(ctx.runSync(each)).toBe(6)
    ctx.enter(() => s.set(2))
    expect([each.get(), turns, ctx.inspect().nodes]).toEqual([7, 6, 2])
  })

  test('R71 what was created before a loop is disposed with the spin, however the spin ends', () => {
    for (const end of ['cancel', 'dispose'] as const) {
      const ctx = createSimulation()
      const { a, box } = ctx.enter(() => ({ a: signal(0), box: mailbox<number>() }))
      const seen: string[] = []
      const note = (where: string) => onCancel(() => void seen.push(`${where} cancelled`))
      const watch = (where: string): void => void effect(() => void seen.push(`${where} ${a.get()}`))
      const loop = ctx.enter(() =>
        spin(function* () {
          yield* note('outer')
          watch('outer')
          yield* iterate(0, function* (n) {
            yield* note('middle')
            watch('middle')
            yield* iterate(0, function* (m) {
              yield* note('inner')
              yield* waitFor(box)
              return { next: m + 1 }
            })
            return { next: n + 1 }
          })
        }),
      )
      ctx.spawn(loop, { onError: () => undefined })
      loop[end]()
      ctx.enter(() => a.set(1))
      expect(seen).toEqual(['outer 0', 'middle 0', 'outer cancelled', 'middle cancelled', 'inner cancelled'])
      expect(ctx.inspect().observers).toBe(0)
    }
  })

  test('R71 a million turns leave no log entries', () => {
    const ctx = createSimulation()
    const loop = ctx.enter(() =>
      spin(() =>
        iterate(0, function* (n) {
          return n === 1_000_000 ? { done: n } : { next: n + 1 }
        }),
      ),
    )
    expect([ctx.runSync(loop), logOf(loop).length]).toEqual([1_000_000, 1])
  })

  test('R72 outside iterate, entries that no re-run needs are dropped at the limit and reported once', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const box = ctx.enter(() => mailbox<number>())
    const out: number[] = []
    const loop = ctx.enter(() =>
      spin(function* () {
        while (true) out.push(yield* waitFor(box))
      }),
    )
    ctx.spawn(loop)
    let longest = 0
    for (let i = 0; i < 50_000; i++) {
      ctx.enter(() => box.post(i))
      longest = Math.max(longest, logOf(loop).length)
    }
    expect(out).toEqual(Array.from({ length: 50_000 }, (_, i) => i))
    expect(longest).toBe(10_000)
    expect(faults.map((fault) => fault.code)).toEqual(['log-overflow'])
  })

  test('R72 after an overflow the body may not observe anything new, so no step runs and no message is taken twice', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ logLimit: 3, onFault: (fault) => faults.push(fault) })
    const { box, first, last } = ctx.enter(() => ({ box: mailbox<number>(), first: signal(1), last: signal(1) }))
    const out: unknown[] = []
    const long = ctx.enter(() =>
      spin(function* () {
        const a = yield* read(first)
        const taken: number[] = []
        for (let i = 0; i < 5; i++) taken.push(yield* waitFor(box))
        out.push([a, taken, yield* read(first)])
        yield* read(last)
      }),
    )
    ctx.spawn(long, { onError: (error) => out.push((error as LogLimitError).code) })
    ctx.enter(() => [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].forEach((m) => box.post(m)))
    ctx.enter(() => last.set(2))
    expect([out, box.size, long.running]).toEqual([[[1, [1, 2, 3, 4, 5], 1], 'E_LOG_LIMIT'], 5, false])
    // A read before the gap is still observed: its change restarts the body there.
    ctx.enter(() => first.set(2))
    expect([out.slice(2), box.size]).toEqual([[[2, [6, 7, 8, 9, 10], 2], 'E_LOG_LIMIT'], 0])
    expect(faults.map((fault) => fault.code)).toEqual(['log-overflow'])
  })

  test('a body that branches on something else than its effects is cut there, and the divergence is reported once', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const { a, b, s } = ctx.enter(() => ({ a: signal('a'), b: signal('b'), s: signal(0) }))
    let runs = 0
    const each = ctx.enter(() =>
      spin(function* () {
        const one = yield* read(runs++ % 2 === 0 ? a : b)
        return `${one}${yield* read(s)}`
      }),
    )
    ctx.runSync(each)
    ctx.enter(() => s.set(1))
    ctx.enter(() => s.set(2))
    expect(each.get()).toBe('a2')
    expect(faults.map((fault) => fault.code)).toEqual(['divergence'])
  })
})

describe('introspection', () => {
  test('R70 counts match a graph built by hand', () => {
    const ctx = createSimulation()
    const { a, b, d } = ctx.enter(() => ({ a: signal(1), b: signal(2), c: signal(3), d: deferred() }))
    const sum = ctx.enter(() =>
      spin(function* () {
        return (yield* read(a)) + (yield* read(b))
      }),
    )
    ctx.spawn(sum)
    ctx.spawn(function* () {
      yield* waitFor(sum)
      yield* waitFor(d)
    })
    ctx.enter(() => a.set(5))
    expect(ctx.inspect()).toEqual({
      state: 'running',
      pending: 0,
      running: 1,
      timers: 0,
      nodes: 5, // 3 signals, 2 spins
      observers: 3, // a and b by the sum, the sum by the other
      waiters: 1,
      offloaded: 0,
      generation: 1,
      stamp: 3, // two results of the sum and one write
      queueIdle: true,
      idle: false,
    })
  })

  test('R70 a trace can be ended, and costs nothing then', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    const seen: unknown[] = []
    const stop = ctx.trace((record) => seen.push(record))
    ctx.enter(() => s.set(1))
    stop()
    ctx.enter(() => s.set(2))
    expect(seen).toEqual([{ type: 'event', event: 'signal-change', addr: '/signal:#0', generation: 1 }])
  })
})

describe('addresses', () => {
  test('kind, key and number under a parent; separators in keys are escaped', () => {
    const scope = new Scope('/spin:outer#0')
    expect([scope.address('step', 'load'), scope.address('step', 'load'), scope.address('step', 'a/b#1')]).toEqual([
      '/spin:outer#0/step:load#0',
      '/spin:outer#0/step:load#1',
      '/spin:outer#0/step:a%2fb%231#0',
    ])
  })

  test('a long parent is replaced by its hash, which differs for similar parents', () => {
    const long = formatAddress('/spin:x#0'.repeat(30), 'step', 'k', 0)
    expect(long).toMatch(/^~[0-9a-f]{32}\/step:k#0$/)
    expect(long.length).toBeLessThanOrEqual(ADDRESS_MAX)
    const hashes = new Set(Array.from({ length: 20_000 }, (_, i) => hash128(`/spin:list#${i}`)))
    expect(hashes.size).toBe(20_000)
    expect(hash128('')).toBe(hash128(''))
  })
})

describe('the replay log', () => {
  test('cutting it drops the later entries, and the body appends new ones', () => {
    const log = new ReplayLog({ limit: 10 })
    const scope = new Scope('/s')
    for (const key of ['a', 'b', 'c']) log.settle(log.nextEntry(scope, 'step', key, undefined), false, key)
    log.cut(1)
    log.rewind()
    scope.reset()
    expect(log.nextEntry(scope, 'step', 'a', undefined).value).toBe('a')
    const regrown = log.nextEntry(scope, 'step', 'z', undefined)
    expect([regrown.isAnswered, log.isCaughtUp]).toEqual([false, true])
    log.settle(regrown, true, 'error')
    expect([log.length, log.at(1)?.addr, log.at(1)?.isError, log.at(2)]).toEqual([2, '/s/step:z#0', true, undefined])
  })
})
