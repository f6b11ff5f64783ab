import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Backoff } from './retry.js'
import { mergeRetry, RETRY_DEFAULTS, retryDelayMs } from './retry.js'

const HOUR = 3_600_000
const wait = (backoff: Backoff, retry: number, jitter = 0, random = (): number => 0): number =>
  retryDelayMs({ ...RETRY_DEFAULTS, backoff, jitter }, retry, new Error('no'), random)

describe('the wait before a retry', () => {
  test('is one second, doubled each time, and never more than an hour', () => {
    const waits = Array.from({ length: 14 }, (_, i) => wait('exponential', i + 1))
    expect(waits).toEqual([
      1_000,
      2_000,
      4_000,
      8_000,
      16_000,
      32_000,
      64_000,
      128_000,
      256_000,
      512_000,
      1_024_000,
      2_048_000,
      HOUR,
      HOUR,
    ])
  })

  test('stays an hour however many retries there were', () => {
    for (const retry of [100, 1_024, 2_000, 1e9]) expect(wait('exponential', retry)).toBe(HOUR)
  })

  test('is one second each time when fixed', () => {
    expect([1, 2, 50].map((retry) => wait('fixed', retry))).toEqual([1_000, 1_000, 1_000])
  })

  test('follows the configured steps, and the defaults for those left out', () => {
    expect([1, 2, 3, 4].map((n) => wait({ start: '100ms', factor: 3, max: '1s' }, n))).toEqual([100, 300, 900, 1_000])
    expect(wait({ factor: 10 }, 3)).toBe(100_000)
    expect(wait({ start: '2s' }, 2)).toBe(4_000)
    expect(wait({ max: '3s' }, 9)).toBe(3_000)
    expect(wait({ start: 0 }, 9)).toBe(0)
  })

  test('is the return value of a function, called with the number of the retry and the error', () => {
    const seen: unknown[] = []
    const backoff = (retry: number, error: unknown): `${number}s` => {
      seen.push(retry, (error as Error).message)
      return '7s'
    }
    expect(wait(backoff, 3)).toBe(7_000)
    expect(seen).toEqual([3, 'no'])
  })

  test('may be longer than an hour when a function returns it', () => {
    expect(wait(() => '2d', 1)).toBe(48 * HOUR)
  })

  test.each([
    ['throws', (): never => JSON.parse('{') as never],
    ['returns nothing', (): never => undefined as never],
    ['returns nonsense', (): never => 'soon' as never],
    ['returns NaN', (): number => NaN],
    ['returns less than nothing', (): number => -1],
    ['returns Infinity', (): number => Infinity],
    ['returns a promise', (): never => Promise.resolve('1s') as never],
  ])('is the default one when the function %s, since a retry must not be lost', (_, backoff) => {
    expect(wait(backoff, 3)).toBe(4_000)
  })

  test('is noted to be the default one when the function returns a promise, and only then', async () => {
    const notes: string[] = []
    const note = (line: string): void => void notes.push(line)
    const rejected = (): never => Promise.reject(new Error('late')) as never
    const delay = (backoff: Backoff): number =>
      retryDelayMs({ ...RETRY_DEFAULTS, backoff, jitter: 0 }, 1, new Error('no'), () => 0, note)
    expect([delay(() => '7s'), delay('fixed'), delay(rejected)]).toEqual([7_000, 1_000, 1_000])
    expect(notes).toEqual(['retry.backoff returned a promise and must be synchronous: the default wait is taken'])
    // An unhandled rejection would fail the run.
    await new Promise((next) => setImmediate(next))
  })

  test('is the default one where a stored step is no duration', () => {
    expect(wait({ start: 'soon' as never, max: 'late' as never }, 2)).toBe(2_000)
  })

  test('gets jitter on top, up to the configured share', () => {
    expect(wait('fixed', 1, 0.2, () => 0)).toBe(1_000)
    expect(wait('fixed', 1, 0.2, () => 0.5)).toBe(1_100)
    expect(wait('fixed', 1, 1, () => 0.999)).toBe(1_999)
  })

  test('is never shorter than without jitter and never longer than the share allows', () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), share, random, (retry, jitter, drawn) => {
        const least = wait('exponential', retry)
        const got = wait('exponential', retry, jitter, () => drawn)
        expect(got).toBeGreaterThanOrEqual(least)
        expect(got).toBeLessThanOrEqual(Math.round(least * (1 + jitter)))
      }),
    )
  })
})

describe('merged retry policies', () => {
  test('are the defaults when no level sets anything', () => {
    expect(mergeRetry([])).toEqual({ limit: 25, backoff: 'exponential', jitter: 0.2, when: undefined })
    expect(mergeRetry([undefined, {}])).toEqual(RETRY_DEFAULTS)
  })

  test('are merged option by option, the most specific first', () => {
    const when = (): boolean => false
    const levels = [{ limit: 1 }, { limit: 2, jitter: 0 }, { limit: 3, jitter: 1, backoff: 'fixed' as const, when }]
    expect(mergeRetry(levels)).toEqual({ limit: 1, jitter: 0, backoff: 'fixed', when })
  })

  test('accept a limit of 0 and a jitter of 0', () => {
    expect(
      mergeRetry([
        { limit: 0, jitter: 0 },
        { limit: 5, jitter: 0.5 },
      ]),
    ).toMatchObject({ limit: 0, jitter: 0 })
  })

  test('accept Infinity', () => {
    expect(mergeRetry([{ limit: Infinity }, { limit: 5 }]).limit).toBe(Infinity)
  })

  test('ignore undefined', () => {
    expect(
      mergeRetry([
        { limit: undefined, backoff: undefined },
        { limit: 5, backoff: 'fixed' },
      ]),
    ).toMatchObject({
      limit: 5,
      backoff: 'fixed',
    })
  })
})
