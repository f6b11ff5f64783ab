import { expect, test } from 'vitest'
import { boundsAreNamed, boundsAreTested } from './bounds.js'
import { plant, toSource } from './source.js'

function tested(sources: Readonly<Record<string, string>>, cases: Readonly<Record<string, string>>): string[] {
  const others = Object.entries(cases).map(([path, text]) => toSource(path, text))
  return boundsAreTested(plant(sources, { others })).map(({ file, line, what }) => `${file}:${line} ${what}`)
}

const CASE = 'test/bounds/a.ts'
const UNTESTED = 'test/bounds/untested.ts'

test('a bound with a case of its value, and one with a reason, are accepted', () => {
  const sources = {
    'src/a.ts': 'export const PAGE = 1_024\nconst WAIT_MS = 2 * 500',
    'src/b.ts': `const NOT_A_NUMBER = 'x'`,
  }
  const cases = { [CASE]: `{ of: 'src/a.ts#PAGE', at: 1_024, }`, [UNTESTED]: `['src/a.ts#WAIT_MS']` }
  expect(tested(sources, cases)).toEqual([])
})

test('a bound without a case is found', () => {
  expect(tested({ 'src/a.ts': '\nconst PAGE = 10' }, {})).toEqual([
    `src/a.ts:2 PAGE has no case in test/bounds/ and no reason in test/bounds/untested.ts`,
  ])
})

test('a case with another value, of no constant, or beside a reason is refused', () => {
  const cases = {
    [CASE]: `{ of: 'src/a.ts#PAGE', at: 11, }\n{ of: 'src/a.ts#GONE', at: 1, }`,
    [UNTESTED]: `['src/a.ts#PAGE']`,
  }
  expect(tested({ 'src/a.ts': 'const PAGE = 10' }, cases)).toEqual([
    `test/bounds/a.ts:2 src/a.ts#GONE is no number of src`,
    `test/bounds/untested.ts:1 src/a.ts#PAGE has a case`,
    `test/bounds/a.ts:1 src/a.ts#PAGE is 10, and its case is at 11`,
  ])
})

test('the value of a constant is computed from others, also of a later file', () => {
  const sources = { 'src/a.ts': 'const LONG_MS = 2 * DAY_MS - 1', 'src/b.ts': 'const DAY_MS = 24 * 3_600' }
  const cases = { [CASE]: `{ of: 'src/a.ts#LONG_MS', at: 172_800, }`, [UNTESTED]: `['src/b.ts#DAY_MS']` }
  expect(tested(sources, cases)).toEqual([`test/bounds/a.ts:1 src/a.ts#LONG_MS is 172799, and its case is at 172800`])
})

test.each([
  ['if (list.length > 20) cut()', 1],
  ['if (seen.size >= 100) seen.clear()', 1],
  ['text.slice(0, 60)', 1],
  ['isCount(1, 1_000)', 1],
  ['list.length > 2 || list.slice(0, 5) || iso.slice(11, 23) || list.length > MAX', 0],
])('%j has %i limits without a name', (text, count) => {
  expect(boundsAreNamed(plant({ 'src/a.ts': text }))).toHaveLength(count)
})
