import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Hint } from '../store/store.js'
import { evenPace, ObservedReads } from './observed-reads.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Reads that give the number of the read, with the subjects of each. */
function bench(): {
  reads: ObservedReads<string>
  asked: (readonly string[])[]
  failures: unknown[]
  hint: () => void
  hints: () => number
  fail: (next: Error) => void
} {
  const listeners = new Set<(hint: Hint) => void>()
  const [asked, failures]: [(readonly string[])[], unknown[]] = [[], []]
  let failing: Error | undefined
  const parts = {
    changes: {
      onHint: (callback: (hint: Hint) => void) => {
        listeners.add(callback)
        return () => void listeners.delete(callback)
      },
    },
    timers: {
      after: (ms: number, callback: () => void) => {
        const timer = setTimeout(callback, ms)
        return () => clearTimeout(timer)
      },
      soon: (callback: () => void) => void setTimeout(callback, 0),
    },
    monotonic: () => Date.now(),
    failed: (error: unknown) => void failures.push(error),
  }
  const read = async (subjects: readonly string[]): Promise<readonly string[]> => {
    asked.push(subjects)
    if (failing !== undefined) throw failing
    return subjects.map((subject) => `${subject} ${asked.length}`)
  }
  return {
    reads: new ObservedReads<string>(parts, evenPace(100, 250), read),
    asked,
    failures,
    hint: () => {
      for (const listener of listeners) listener({ ready: true, dueInMs: null, settled: true, requested: false })
    },
    hints: () => listeners.size,
    fail: (next) => void (failing = next),
  }
}

describe('What is observed', () => {
  test('is read once for all observers, and nothing is read without one', async () => {
    const { reads, asked, hint, hints } = bench()
    hint()
    await vi.advanceTimersByTimeAsync(1_000)
    expect([asked, hints()]).toEqual([[], 0])
    const told: string[] = []
    const ends = ['a', 'a', 'b'].map((subject) => reads.observe(subject, (value) => void told.push(value)))
    await vi.advanceTimersByTimeAsync(0)
    expect([asked, told]).toEqual([[['a', 'b']], ['a 1', 'a 1', 'b 1']])
    for (const end of ends) end()
    await vi.advanceTimersByTimeAsync(10_000)
    expect([asked.length, hints(), vi.getTimerCount()]).toEqual([1, 0, 0])
  })

  test('is read 100 ms apart, however many hints come, and every 250 ms without any', async () => {
    const { reads, asked, hint } = bench()
    for (let i = 0; i < 1_000; i += 1) reads.observe(`job ${i}`, () => undefined)
    await vi.advanceTimersByTimeAsync(0)
    expect(asked.map(({ length }) => length)).toEqual([1_000])
    for (let ms = 0; ms < 1_000; ms += 1) {
      hint()
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(asked.length).toBe(11)
    // The last hint is answered by one more read.
    await vi.advanceTimersByTimeAsync(100)
    const before = asked.length
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked.length).toBe(before + 4)
  })

  test('is read again after a failure, and keeps what it told', async () => {
    const { reads, failures, fail } = bench()
    const told: string[] = []
    reads.observe('a', (value) => void told.push(value))
    await vi.advanceTimersByTimeAsync(0)
    fail(new Error('no connection'))
    await vi.advanceTimersByTimeAsync(500)
    expect([told, failures.length]).toEqual([['a 1'], 2])
  })

  test('the first read for an observer that comes later keeps the pace', async () => {
    const { reads, asked } = bench()
    reads.observe('a', () => undefined)
    await vi.advanceTimersByTimeAsync(10)
    const told: string[] = []
    reads.observe('b', (value) => void told.push(value))
    await vi.advanceTimersByTimeAsync(89)
    expect(told).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect([told, asked.at(-1)]).toEqual([['b 2'], ['a', 'b']])
  })
})
