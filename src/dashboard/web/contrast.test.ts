import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const tokens = readTokens(readFileSync(new URL('tokens.css', import.meta.url), 'utf8'))

const GROUNDS = ['page', 'surface', 'sunken', 'hover', 'selected']
const STATES = [
  'scheduled',
  'ready',
  'running',
  'retrying',
  'blocked',
  'paused',
  'parked',
  'done',
  'failed',
  'cancelled',
]
const BANNERS = ['banner-bad', 'banner-warn', 'banner-info', 'banner-good']
const FILLS = ['fill-waiting', 'fill-running', 'fill-retrying', 'fill-done', 'fill-failed']

/** Ink, what it may be on, and the least contrast of WCAG 2.2. */
const PAIRS: readonly (readonly [inks: readonly string[], grounds: readonly string[], least: number])[] = [
  [['text', 'text-2', 'text-3'], GROUNDS, 4.5],
  [STATES, GROUNDS, 4.5],
  [['text', ...STATES], BANNERS, 4.5],
  [['on-primary'], ['primary'], 4.5],
  [['on-danger'], ['danger'], 4.5],
  [['edge', 'focus'], GROUNDS, 3],
  [FILLS, ['surface', 'track'], 3],
]

for (const theme of ['light', 'dark'] as const)
  test(`every ink of the ${theme} theme is readable on every ground that it may be on`, () => {
    const weak = PAIRS.flatMap(([inks, grounds, least]) =>
      inks.flatMap((ink) =>
        grounds.flatMap((ground) => {
          const found = contrast(colorOf(ink, theme), colorOf(ground, theme))
          return found >= least ? [] : [`${ink} on ${ground}: ${found.toFixed(2)} < ${least}`]
        }),
      ),
    )
    expect(weak).toEqual([])
  })

test('the formula gives the contrasts that WCAG names', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21, 5)
  expect(contrast('#777777', '#ffffff')).toBeCloseTo(4.48, 2)
})

function colorOf(name: string, theme: 'light' | 'dark'): string {
  const pair = tokens.get(name)
  if (pair === undefined) throw new Error(`tokens.css has no color --${name}`)
  return pair[theme === 'light' ? 0 : 1]
}

function readTokens(css: string): Map<string, readonly [string, string]> {
  const found = css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)
  return new Map([...found].map(([, name, light, dark]) => [name as string, [light as string, dark as string]]))
}

function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return ((high as number) + 0.05) / ((low as number) + 0.05)
}

function luminance(color: string): number {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const value = Number.parseInt(color.slice(i, i + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * (r as number) + 0.7152 * (g as number) + 0.0722 * (b as number)
}
