import { describe, expect, test } from 'vitest'
import { appendLog, readLog } from './attempt-log.js'
import type { AttemptEntry } from '../rules/decide.js'

const entry = (n: number, change: Partial<AttemptEntry> = {}): AttemptEntry => ({
  startedAt: n,
  endedAt: n + 1,
  worker: 'w',
  ...change,
})

function logOf(count: number): AttemptEntry[] {
  let log: string | null = null
  for (let n = 1; n <= count; n += 1) log = appendLog(log, entry(n))
  return readLog(log)
}

describe('the log of attempts', () => {
  test('is empty when nothing was written', () => {
    expect(readLog(null)).toEqual([])
  })

  test('keeps every attempt, in order, up to 25', () => {
    expect(logOf(25).map((e) => e.startedAt)).toEqual(Array.from({ length: 25 }, (_, i) => i + 1))
  })

  test('keeps the first five and the latest twenty of many', () => {
    const kept = logOf(1_000).map((e) => e.startedAt)
    expect(kept).toEqual([1, 2, 3, 4, 5, ...Array.from({ length: 20 }, (_, i) => 981 + i)])
  })

  test('keeps an error, an exit and the lines, with NUL and lone surrogates', () => {
    const full = entry(1, {
      error: { name: 'Error', message: 'a\u0000\udfff' },
      exit: 'crashed',
      log: ['one', 'two \ud800'],
    })
    const text = appendLog(null, full)
    expect(text).not.toContain('\u0000')
    expect(readLog(text)).toEqual([full])
  })

  test('does not change its argument', () => {
    const before = appendLog(null, entry(1))
    const copy = String(before)
    appendLog(before, entry(2))
    expect(before).toBe(copy)
  })
})
