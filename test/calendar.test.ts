import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../scripts/run.mjs'
import { nextTick, parseRule } from '../src/schedule/calendar.js'
import type { Rule } from '../src/schedule/calendar.js'
import { seeded } from '../src/testing/simulation/random.js'
import type { Random } from '../src/testing/simulation/random.js'

/**
 * Our calendar against a table that was made without it, and without croner: test/calendar/table.py explains how, and what a
 * line means. The table holds every tick of six years. From each tick near a change of the clocks, and from a seeded sample of
 * the others, the next must be the table's next, computed from any instant between the two. MILLRACE_CALENDAR=all checks
 * every tick, which takes minutes.
 */
const isWhole = process.env['MILLRACE_CALENDAR'] === 'all'
const SEED = 20_261_115
/** The distance from a change of the clocks within which every tick is checked; a rule that fires often has enough ticks in less. */
const NEAR_MS = 30 * 3_600_000
const NEAR_MAX = 4
const SAMPLES = 5

interface Block {
  readonly zone: string
  readonly toMs: number
  readonly changes: readonly number[]
  readonly lines: readonly Line[]
}

interface Line {
  readonly cron: string
  readonly ticks: readonly number[]
}

const blocks = readTable(readFileSync(join(root, 'test/calendar/table.txt'), 'utf8'))

test('the table has what it should: zones, years and rules', () => {
  expect(new Set(blocks.map(({ zone }) => zone)).size).toBeGreaterThanOrEqual(12)
  expect(blocks.flatMap(({ changes }) => changes).length).toBeGreaterThan(150)
  expect(blocks.every(({ lines }) => lines.length > 40)).toBe(true)
  expect(blocks.flatMap(({ lines }) => lines).reduce((sum, { ticks }) => sum + ticks.length, 0)).toBeGreaterThan(
    5_000_000,
  )
})

test.each(blocks)(
  'every rule fires in $zone when the table says',
  (block) => {
    const random = seeded(SEED)
    const differences = block.lines.flatMap(({ cron, ticks }) => {
      const rule = ruleOf(cron, block.zone)
      return asked(block, ticks, random).flatMap((i) => {
        const tick = ticks[i] as number
        const next = ticks[i + 1]
        // From any instant between a tick and the next, the answer is the same.
        const after = isWhole ? tick : tick + Math.floor(random.next() * ((next ?? tick + 1) - tick))
        const found = nextTick(rule, after, 0)
        const isRight = next === undefined ? found === undefined || found >= block.toMs : found === next
        return isRight ? [] : [`${cron} after ${iso(after)}: ${iso(next)} is right, got ${iso(found)}`]
      })
    })
    expect(differences.slice(0, 20)).toEqual([])
  },
  isWhole ? 3_600_000 : 60_000,
)

/** Which ticks to check. */
function asked({ changes }: Block, ticks: readonly number[], random: Random): readonly number[] {
  if (isWhole) return ticks.map((_, i) => i)
  const chosen = new Set(Array.from({ length: SAMPLES }, () => Math.floor(random.next() * ticks.length)))
  for (const change of changes) {
    const first = firstIndexFrom(ticks, change)
    for (let i = first - NEAR_MAX; i < first + NEAR_MAX; i++)
      if (Math.abs((ticks[i] ?? Infinity) - change) < NEAR_MS) chosen.add(i)
  }
  return ticks.length === 0 ? [] : [...chosen]
}

/** The index of the first tick at or after an instant. */
function firstIndexFrom(ticks: readonly number[], atMs: number): number {
  let [low, high] = [0, ticks.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ticks[middle] as number) < atMs) low = middle + 1
    else high = middle
  }
  return low
}

function ruleOf(cron: string, zone: string): Rule {
  const parsed = parseRule(cron, zone)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return parsed.rule
}

function readTable(text: string): Block[] {
  const found: (Omit<Block, 'lines'> & { lines: Line[] })[] = []
  for (const line of text.trimEnd().split('\n')) {
    const parts = line.split('|')
    if (parts.length === 5) {
      const [zone = '', , to, changes = ''] = parts
      const minutes = changes.split(' ').filter((each) => each !== '')
      const changesMs = minutes.map((each) => Number.parseInt(each, 16) * 60_000)
      found.push({ zone, toMs: Number(to) * 1000, changes: changesMs, lines: [] })
    } else found.at(-1)?.lines.push({ cron: parts[0] ?? '', ticks: readTicks(parts[1] ?? '', parts[2] ?? '') })
  }
  return found
}

function readTicks(first: string, gaps: string): number[] {
  if (first === '') return []
  let last = Number(first) * 1000
  const ticks = [last]
  const add = (words: string): void => {
    for (const word of words.split(' ')) {
      const [gap, times = '1'] = word.split('x')
      const gapMs = Number(gap) * 1000
      for (let left = Number(times); left > 0; left--) ticks.push((last += gapMs))
    }
  }
  for (const [, group, times, words] of gaps.matchAll(/\[([^\]]*)\]x(\d+)|([^ [\]]+)/g)) {
    if (words !== undefined) add(words)
    else for (let i = 0; i < Number(times); i++) add(group ?? '')
  }
  return ticks
}

const iso = (ms: number | undefined): string => (ms === undefined ? 'none' : new Date(ms).toISOString())
