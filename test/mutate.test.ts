import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { runCampaign } from '../scripts/mutate/campaign.mjs'
import { instrument } from '../scripts/mutate/instrument.mjs'
import { scoreOf, survivorLine } from '../scripts/mutate/report.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, '.cache', `mutate-test-${process.pid}`)
afterAll(() => rmSync(cache, { recursive: true, force: true }))

const FIXTURE = 'test/mutate/fixture/ticket.ts'
const EQUIVALENT = {
  file: FIXTURE,
  source: 'return one > other ? one : other',
  original: 'one > other',
  mutated: 'one >= other',
  reason: 'Where they are equal, either is the larger.',
}

interface Mutant {
  readonly operator: string
  readonly original: string
  readonly mutated: string
}
interface Result {
  readonly mutant: Mutant
  readonly status: string
  readonly tests: number
  readonly by?: string
}

/** Every mutant of a text, as `original → mutated`. */
function mutantsOf(text: string, path = 'src/a.ts'): string[] {
  const { mutants } = instrument(path, text) as unknown as { readonly mutants: readonly Mutant[] }
  return mutants.map(({ original, mutated }) => `${original} → ${mutated}`)
}

test('a campaign reports the survivor, finds the others, and leaves out what is listed as equivalent', async () => {
  const path = 'test/mutate/fixture/ticket.test.ts'
  const gone = { ...EQUIVALENT, mutated: 'one < other' }
  const problems: string[] = []
  const { results, equivalents, stale } = (await runCampaign({
    root,
    cache,
    entries: [{ key: path, path }],
    env: {},
    isMutated: (each: string) => each === FIXTURE,
    isChosen: () => true,
    equivalent: [EQUIVALENT, gone],
    budgetMs: 4_000,
    stuckMs: 2_000,
    onMeasured: () => {},
    onProblems: (found: readonly string[]) => void problems.push(...found),
  })) as unknown as { results: readonly Result[]; equivalents: number; stale: readonly unknown[] }
  expect(problems).toEqual([])
  const survivors = results.filter(({ status }) => status !== 'killed')
  expect(survivors.map((each) => survivorLine(each))).toEqual([
    `${FIXTURE}:11:10 method removed: given.filter((name) => name !== 'nameless') → given (1 tests pass)`,
  ])
  const killerOf = (mutated: string): string | undefined => results.find((each) => each.mutant.mutated === mutated)?.by
  expect(killerOf('18 + 1')).toBe(`${path}#1`)
  expect(killerOf('age <= ADULT_FROM')).toBe(`${path}#1`)
  expect(results.filter(({ by }) => by === 'stuck').map(({ mutant }) => mutant.original)).toEqual(['at++'])
  expect([equivalents, stale]).toEqual([1, [gone]])
  expect(scoreOf(results)).toBeCloseTo((100 * (results.length - 1)) / results.length)
})

describe('a mutant', () => {
  test.each([
    ['if (a < b) f()', ['a < b → a <= b', 'a < b → true', 'a < b → false']],
    ['const x = a === b', ['a === b → a !== b']],
    ['const x = a && b && c', ['a && b && c → b && c', 'a && b && c → a && c', 'a && b && c → a && b']],
    [`const x = ['a', 'b']`, [`'a' → (dropped)`, `'b' → (dropped)`]],
    ['const x = a ?? b', ['a ?? b → a', 'a ?? b → b']],
    ['const x = a?.b.c()', ['a?.b.c() → a.b.c()']],
    ['const x = a?.[0]', ['a?.[0] → a[0]', '0 → 0 + 1']],
    ['const x = list.filter(f).map(g)', ['list.filter(f) → list']],
    ['const x = list.some(f)', ['list.some(f) → list.every(f)']],
    ['f()', ['f() → ']],
    ['for (const x of xs) { f(x); g(x) }', ['loop → break', 'f(x); → ', 'g(x) → ']],
    ['function f(): boolean { return g() }', ['g() → true', 'g() → false']],
    ['function f() { if (a) return; g() }', ['a → true', 'a → false', 'g() → ']],
    [`const x = { state: 'done' }`, [`'done' → ''`]],
    ['const x = { ...given, own }', ['given → {}']],
    ['const x = !a', ['!a → a']],
    ['const x = /^a$/.test(b)', ['/^a$/ → /a$/', '/^a$/ → /^a/']],
    ['const x = a * 2', ['a * 2 → a / 2', '2 → 2 + 1']],
  ])('of %s', (text, expected) => {
    expect(mutantsOf(text)).toEqual(expected)
  })

  test.each([
    ['a type', `type A = 'a' | 1; interface B { c: true }; function f<T extends 'a'>(x: 'b'): asserts x is 'b'`],
    ['an import', `import { a } from './a.js'; export { b } from './b.js'`],
    ['the message of an error', `class A { b = new MillError('E_A', count === 1 ? 'one' : \`many \${count + 1}\`) }`],
    ['a text for people', 'const x = `has ${n === 1 ? "a job" : "jobs"} in it`'],
    ['a tuned time', 'const POLL_MS = 5_000'],
  ])('never changes %s', (_, text) => {
    expect(mutantsOf(text)).toEqual([])
  })

  test('of a statement changes a bound, a clause, a limit or an order', () => {
    const text = ['const q = `', 'select a from jobs', 'where b < ? and c = 1', 'order by a desc', 'limit ?`'].join(
      '\n',
    )
    expect(mutantsOf(text, 'src/store/a.ts')).toEqual([
      'where b < ? and c = 1 → where b <= ? and c = 1',
      'order by a desc → order by a asc',
      'limit ?` → limit ? + 1`',
      'limit ?` → limit ? - 1`',
      'where b < ? and c = 1 → where b < ?',
    ])
  })
})
