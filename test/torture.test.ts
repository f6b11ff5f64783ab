import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { bundle } from '../scripts/bundle.mjs'
import { root, runNode } from '../scripts/run.mjs'
import { formatCensus, takeCensus } from '../scripts/torture/census.mjs'
import { judgeErrands } from '../scripts/torture/errands-judge.mjs'
import { Verdict } from '../scripts/torture/verdict.mjs'

/**
 * Short torture runs: the same script as by hand, as a process of its own. The large figures are in docs/guides/torture.md.
 * Each is judged by its exit code, which is 0 only when every promise held and the run proved something.
 */
beforeAll(bundle)

const torture = (...args: string[]): ReturnType<typeof runNode> =>
  runNode([join(root, 'scripts', 'torture.mjs'), ...args], { timeoutMs: 300_000 })

describe('torture', () => {
  test('8 kills lose nothing', { timeout: 300_000 }, async () => {
    const { code, output } = await torture('kill', '--cycles', '8', '--seed', '20')
    expect(output).toMatch(/^ {2}LOST +0$/m)
    expect(output).toMatch(/^ {2}IN TWO PLACES +0$/m)
    expect(output).toContain('8 kills')
    expect(output).toMatch(/^✓ a job and the work of its transaction are one: [1-9]\d* works$/m)
    expect(output).toMatch(/^\d+ passed, 0 failed$/m)
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  })

  test('3 power cuts lose nothing when flushed, and something when not', { timeout: 300_000 }, async (context) => {
    const { code, output } = await torture('power', '--cuts', '3', '--seed', '5')
    if (output.includes('1 skipped')) context.skip(reasonOf(output))
    const [full, fast] = output.split(`census, durability 'process'`)
    expect(full).toMatch(/^ {2}LOST +0$/m)
    expect(fast).toMatch(/^ {2}LOST +[1-9]/m)
    expect(output).toMatch(/^\d+ passed, 0 failed$/m)
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  })

  test('failing writes and flushes lose nothing', { timeout: 300_000 }, async (context) => {
    const { code, output } = await torture('io', '--faults', '3', '--seed', '4')
    if (output.includes('1 skipped')) context.skip(reasonOf(output))
    expect(output).toMatch(/^ {2}LOST +0$/m)
    expect(output).toMatch(/^[1-3] of 3 runs were struck/m)
    expect(output).toMatch(/^what callers got: .*E_STORE/m)
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  })

  test('5 kills of schedulers miss no tick and double none', { timeout: 300_000 }, async () => {
    const { code, output } = await torture('ticks', '--cycles', '5', '--seed', '10')
    expect(output).toMatch(/^✓ no tick was missed: none$/m)
    expect(output).toMatch(/^✓ no tick was doubled: no two jobs are of one tick: none$/m)
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  })

  test(
    'handlers that end, crash or fill their process cost their own attempts only',
    { timeout: 300_000 },
    async () => {
      const { code, output } = await torture('poisons', '--executor', 'process', '--quick', '1')
      expect(output).toMatch(/^✓ in processes: at most 0 crashes of the worker: 0$/m)
      expect(output).toMatch(/^✓ in processes: each poison ended as it must: 6 kinds$/m)
      expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
    },
  )

  test('5 kills of processes that run workflows lose no step and record none twice', { timeout: 300_000 }, async () => {
    const { code, output } = await torture('workflows', '--kills', '5', '--processes', '2', '--seed', '5')
    expect(output).toMatch(/^✓ every operation is recorded once: none$/m)
    expect(output).toMatch(/^✓ bookings and their steps are one commit: none$/m)
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  })

  test('6 processes that end at random moments all end with the expected code', { timeout: 300_000 }, async () => {
    const { code, output } = await torture('exits', '--exits', '6', '--seed', '12')
    expect(output).toMatch(/^✓ every process ended in its planned way: 6 processes/m)
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  })

  test('an unknown kind or option is refused before anything starts', async () => {
    expect(await torture('burn')).toMatchObject({ code: 2 })
    const { code, output } = await torture('kill', '--cycles', '0', '--cuts', '3')
    expect(code).toBe(2)
    expect(output).toContain('--cycles must be a whole number of 1 or more, got 0')
    expect(output).toContain('--cuts is not an option of kill')
    const other = await torture('kill', '--store', 'mysql', '--url', 'postgres://localhost/app')
    expect(other.code).toBe(2)
    expect(other.output).toContain('--store must be sqlite or postgres, got mysql')
    expect(other.output).toContain('--url is for --store postgres')
  })
})

/** A judge that cannot fail proves nothing. */
describe('the census', () => {
  const done = { hasBody: 1, live: null, history: 'done' }
  const once = new Map([['a', 1]])

  test('finds the one acknowledged job that is not in the store', () => {
    const census = takeCensus({ acknowledged: new Set(['a', 'b']), places: [{ id: 'a', ...done }], starts: once })
    expect(census.of('LOST')).toEqual(['b'])
    expect(census.of('acknowledged, done once')).toEqual(['a'])
    expect(formatCensus(census)).toMatch(/LOST +1 {2}b$/m)
  })

  test('counts a job that no query finds as lost', () => {
    const places = [
      { id: 'body only', hasBody: 1, live: null, history: null },
      { id: 'place only', hasBody: 0, live: 'ready', history: null },
    ]
    const census = takeCensus({ acknowledged: new Set(), places, starts: new Map() })
    expect(census.of('LOST')).toEqual(['body only', 'place only'])
  })

  test('puts every job into exactly one bucket', () => {
    const places = [
      { id: 'once', ...done },
      { id: 'again', ...done },
      { id: 'waiting', hasBody: 1, live: 'ready', history: null },
      { id: 'failed', hasBody: 1, live: null, history: 'failed' },
      { id: 'parked', hasBody: 1, live: 'parked', history: null },
      { id: 'both', hasBody: 1, live: 'running', history: 'done' },
      { id: 'unheard', ...done },
    ]
    const acknowledged = new Set(['once', 'again', 'waiting', 'failed', 'parked', 'both', 'gone'])
    const census = takeCensus({ acknowledged, places, starts: new Map([['again', 2]]) })
    expect([...census.buckets.values()]).toEqual([
      ['once'],
      ['again'],
      ['waiting'],
      ['failed'],
      ['parked'],
      ['unheard'],
      ['gone'],
      ['both'],
    ])
    expect(census.total).toBe(8)
  })

  test('a broken promise is exit 1, and a run that proves nothing is exit 2', () => {
    const verdict = new Verdict()
    verdict.none('nothing is lost', [])
    expect(verdict.exitCode).toBe(0)
    verdict.void('no job was hit')
    expect(verdict.exitCode).toBe(2)
    verdict.none('nothing is lost', ['b'])
    expect(verdict.exitCode).toBe(1)
  })
})

function reasonOf(output: string): string {
  return /^skipped: (.*)$/m.exec(output)?.[1] ?? 'no reason was given'
}

describe('the judge of errands', () => {
  const ms = (value: number): bigint => BigInt(value) * 1_000_000n
  const ledger = {
    calledOff: new Set(['off']),
    cancelled: new Map([['off', ms(1_000)]]),
    undone: new Set(['undone']),
    pauses: [{ queue: 'q', at: ms(1_000) }],
    resumes: [
      { queue: 'q', at: ms(500) },
      { queue: 'q', at: ms(5_000) },
      { queue: 'q', at: ms(3_000) },
    ],
  }
  const place = (id: string, history: string | null, reason: string | null = null): object => ({
    id,
    live: null,
    history,
    reason,
  })
  const off = place('off', 'cancelled', 'cancel() was called')
  const eye = {
    counts: () => ({ works: 1, orders: 1, soles: 1 }),
    workAstray: () => [],
    ordersAstray: () => [],
    twice: () => [],
  }
  const judge = async (change: object): Promise<number> => {
    const verdict = new Verdict()
    await judgeErrands(verdict, { diaries: [{ begins: [] }], ledger, places: [off], eye, ...change })
    return verdict.exitCode
  }
  const begun = (id: string, at: number, queue = 'default'): object => ({
    diaries: [{ begins: [{ id, at: ms(at), queue }] }],
  })

  test('accepts a run without a broken promise', async () => {
    expect(await judge({})).toBe(0)
    expect(await judge({ places: [place('off', 'done'), place('b', 'cancelled', 'replaced by c')] })).toBe(0)
    for (const at of [1_200, 3_000, 9_000]) expect(await judge(begun('a', at, 'q'))).toBe(0)
    expect(await judge(begun('off', 900))).toBe(0)
  })

  test('reports each broken promise', async () => {
    expect(await judge(begun('off', 1_600))).toBe(1)
    expect(await judge(begun('a', 2_900, 'q'))).toBe(1)
    expect(await judge({ places: [place('off', 'failed')] })).toBe(1)
    expect(await judge({ places: [off, place('b', 'cancelled', 'cancel() was called')] })).toBe(1)
    expect(await judge({ places: [off, place('undone', 'done')] })).toBe(1)
    expect(await judge({ eye: { ...eye, workAstray: () => [{ id: 'a', times: 2 }] } })).toBe(1)
    expect(await judge({ eye: { ...eye, ordersAstray: () => [{ id: 'a' }] } })).toBe(1)
    expect(await judge({ eye: { ...eye, twice: () => [{ id: 'a' }] } })).toBe(1)
  })

  test('calls a run void in which some errand never occurred', async () => {
    expect(await judge({ eye: { ...eye, counts: () => ({ works: 0, orders: 1, soles: 1 }) } })).toBe(2)
  })
})
