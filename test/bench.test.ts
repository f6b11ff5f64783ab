import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { median, percent, percentile, ratio, summarise } from '../bench/figures.mjs'
import { formatGate, isMet } from '../bench/gates.mjs'
import { readOptions } from '../bench/options.mjs'
import { payloadOf } from '../bench/payloads.mjs'
import { KAIRO, SHAPES } from '../bench/reactive/graph-shapes.mjs'
import { inRounds } from '../bench/rounds.mjs'
import { formatTable, showNumber, showSummary } from '../bench/table.mjs'
import { root, runNode } from '../scripts/run.mjs'
import type { Signal } from '../src/reactive/index.js'
import { batch, computed, createSimulation, effect, signal } from '../src/reactive/index.js'

/** The parts of the benchmark that compute its figures. The measurements themselves need contestants from the registry. */
describe('figures', () => {
  test('the median is the middle value, or the mean of the two middle values', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([10, 1, 2, 3])).toBe(2.5)
  })

  test('a failed round is left out, and without any round there is no figure', () => {
    expect(summarise([5, undefined, 1])).toEqual({ median: 3, min: 1, max: 5, rounds: 2 })
    expect(summarise([undefined])).toBeUndefined()
  })

  test('a quotient is taken round by round, so that a slow round cancels', () => {
    expect(ratio([100, 10, 100], [50, 5, 50])).toEqual({ median: 2, min: 2, max: 2, rounds: 3 })
    expect(ratio([100, 10], [50, undefined])).toEqual({ median: 2, min: 2, max: 2, rounds: 1 })
    expect(percent(ratio([1], [4]))).toEqual({ median: 25, min: 25, max: 25, rounds: 1 })
  })

  test('a percentile is one of the values', () => {
    const values = Array.from({ length: 100 }, (_, i) => 100 - i)
    expect([50, 99, 100].map((percentage) => percentile(values, percentage))).toEqual([50, 99, 100])
    expect(percentile([7], 99)).toBe(7)
  })

  test('payloads have the size they claim', () => {
    for (const bytes of [20, 4096])
      for (const index of [0, 1, 899_999, 900_000]) expect(JSON.stringify(payloadOf(bytes, index))).toHaveLength(bytes)
  })
})

describe('rounds', () => {
  test('every case runs once a round, none always first, none always after the same one', async () => {
    const order: string[] = []
    const cases = [{ key: 'a' }, { key: 'b' }, { key: 'c' }]
    const rounds = await inRounds({ scenario: 'x', cases, rounds: 3, tell: () => {} }, async ({ key }) => {
      order.push(key)
      return { ms: order.length }
    })
    expect(order.join('')).toBe('abccbabca')
    expect(rounds.values('a', (result: { ms: number }) => result.ms)).toEqual([1, 6, 9])
  })

  test('a measurement that fails is reported and fails the run, and the others continue', async () => {
    const told: string[] = []
    const cases = [{ key: 'good' }, { key: 'bad' }]
    const plan = { scenario: 'x', cases, rounds: 2, tell: (line: string) => told.push(line) }
    const rounds = await inRounds(plan, async ({ key }) => {
      if (key === 'bad') throw new Error('a job was lost')
      return { ms: 1 }
    })
    expect(rounds.broken).toEqual(['x 1/2 bad: a job was lost', 'x 2/2 bad: a job was lost'])
    expect(told.filter((line) => line.includes('BROKEN'))).toHaveLength(2)
    expect(rounds.summary('bad', (result: { ms: number }) => result.ms)).toBeUndefined()
    expect(rounds.summary('good', (result: { ms: number }) => result.ms)?.rounds).toBe(2)
  })
})

describe('gates and tables', () => {
  const measured = { median: 7, min: 5, max: 9, rounds: 5 }

  test('the median decides, for gates with a lower and with an upper bound', () => {
    expect(isMet({ name: '', unit: '', measured, least: 7 })).toBe(true)
    expect(isMet({ name: '', unit: '', measured, least: 7.1 })).toBe(false)
    expect(isMet({ name: '', unit: '', measured, most: 7 })).toBe(true)
    expect(isMet({ name: '', unit: '', measured, most: 6.9 })).toBe(false)
    expect(isMet({ name: '', unit: '', measured: undefined, most: 6.9 })).toBeUndefined()
  })

  test('a gate is one line with the required and the measured value', () => {
    const gate = { name: 'drain', unit: '×', measured, least: 6, goal: 10 }
    expect(formatGate(gate)).toBe('met      drain: asked ≥ 6 ×, goal 10; measured 7 (5–9)')
    expect(formatGate({ ...gate, goal: 6.5 })).toContain('goal 6.50 reached')
    expect(formatGate({ name: 'cpu', unit: 'µs', measured, most: 6 })).toMatch(/^missed {3}cpu: asked ≤ 6 µs/)
    expect(formatGate({ name: 'cpu', unit: 'µs', measured: undefined, most: 6 })).toMatch(/^unknown {2}cpu/)
  })

  test('numbers have as many digits as are significant', () => {
    expect([123_456.7, 12.34, 0.456, 6].map(showNumber)).toEqual(['123,457', '12.3', '0.46', '6'])
    expect(showSummary(undefined)).toBe('–')
  })

  test('columns are aligned', () => {
    expect(
      formatTable(
        ['', 'jobs/s'],
        [
          ['bare', '200,000'],
          ['millrace', '9'],
        ],
      ).split('\n'),
    ).toEqual(['           jobs/s', '────────  ───────', 'bare      200,000', 'millrace        9'])
  })
})

describe('graph shapes', () => {
  test.each(Object.keys(SHAPES))('%s has the expected values and numbers of runs in millrace/reactive', (name) => {
    const read = (cell: Signal<unknown>): unknown => cell.get()
    const write = (cell: Signal<unknown>, value: unknown): void => void cell.set(value)
    createSimulation().enter(() => {
      const turn = SHAPES[name]?.({ signal, computed, effect, batch, read, write })
      for (let i = 0; i < 2; i++) turn?.(i)
    })
  })

  test('a library that skips a change has no figure', () => {
    const read = (cell: Signal<unknown>): unknown => cell.get()
    const library = { signal, computed, effect, batch, read, write: () => undefined }
    createSimulation().enter(() => {
      for (const name of Object.keys(KAIRO)) {
        if (name === 'avoidable') continue // Its last value never changes.
        expect(() => KAIRO[name]?.(library)(0), name).toThrow(/expected/)
      }
    })
  })
})

describe('options', () => {
  test('given options override quick, and quick overrides the defaults', () => {
    const { options } = readOptions(['sqlite', '--rounds', '7', '--quick', '--only', 'drain,crowd'])
    expect(options).toMatchObject({ rounds: 7, jobs: 5_000, only: ['drain', 'crowd'], concurrency: 10 })
  })

  test('each kind has scenarios of its own', () => {
    expect(readOptions(['postgres', '--only', 'drain,horizon']).options).toMatchObject({ rounds: 5, processes: 4 })
    expect(() => readOptions(['postgres', '--only', 'crowd'])).toThrow(
      /must name some of drain, .*horizon.*; got crowd/,
    )
    expect(() => readOptions(['sqlite', '--only', 'horizon'])).toThrow(/got horizon/)
  })

  test('all problems are reported at once, with exit code 2 and before anything is built', async () => {
    const args = ['sqlite', '--rounds', '0', '--speed', '9', '--only', 'drain,fly', '--jobs']
    const { code, output } = await runNode([join(root, 'scripts', 'bench.mjs'), ...args])
    expect(code).toBe(2)
    expect(output).toContain('--rounds must be a whole number from 1 to 100, got 0')
    expect(output).toContain('--speed is not an option of sqlite')
    expect(output).toMatch(/--only must name some of drain, .*; got fly/)
    expect(output).toContain('--jobs needs a value, got nothing')
    expect(output).toContain('npm run bench -- sqlite')
  })

  test('an unknown kind is refused', async () => {
    const { code, output } = await runNode([join(root, 'scripts', 'bench.mjs'), 'redis'])
    expect(code).toBe(2)
    expect(output).toContain('kind must be one of sqlite, postgres, crowd, reactive, got redis')
  })
})
