import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkSearch, completeSearch, durationOf, instantOf, parseSearch, printSearch, SEARCH_MAX } from '../search.js'
import type { Term, Value } from '../search.js'

/** Without the places in the text. */
function meaning(terms: readonly Term[]): unknown {
  return terms.map(({ from: _from, to: _to, values, ...term }) => ({
    ...term,
    values: values.map(({ from: _f, to: _t, ...value }: Value) => value),
  }))
}

function termsOf(text: string): readonly Term[] {
  const parsed = parseSearch(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.problem.text}`)
  return parsed.terms
}

test('whatever text reads as a search prints as a search that means the same', () => {
  const piece = fc.constantFrom(
    'state',
    'payload',
    '.',
    ':',
    '"',
    '\\',
    '-',
    ' ',
    ',',
    '*',
    '>',
    '=',
    '[0]',
    'a',
    'é',
    '🙂',
    '\t',
    '[',
    ']',
    '1',
  )
  const text = fc.oneof(
    fc.string({ maxLength: 60, unit: 'grapheme' }),
    fc.array(piece, { maxLength: 30 }).map((all) => all.join('')),
  )
  let read = 0
  fc.assert(
    fc.property(text, (given) => {
      const parsed = parseSearch(given)
      if (!parsed.ok) return
      read += 1
      const printed = printSearch(parsed.terms)
      expect(meaning(termsOf(printed))).toEqual(meaning(parsed.terms))
      expect(printSearch(termsOf(printed))).toBe(printed)
    }),
    { numRuns: 3_000 },
  )
  expect(read).toBeGreaterThan(300)
})

test('a term has a qualifier, a path, a comparison and values', () => {
  expect(meaning(termsOf('-payload.items[0]."odd key":>=5 state:failed,done card\\"s'))).toEqual([
    {
      negated: true,
      name: 'payload',
      path: ['items', 0, 'odd key'],
      operator: '>=',
      values: [{ text: '5', quoted: false, prefix: false }],
    },
    {
      negated: false,
      name: 'state',
      path: [],
      operator: undefined,
      values: [
        { text: 'failed', quoted: false, prefix: false },
        { text: 'done', quoted: false, prefix: false },
      ],
    },
    {
      negated: false,
      name: undefined,
      path: [],
      operator: undefined,
      values: [{ text: 'card"s', quoted: false, prefix: false }],
    },
  ])
  expect(meaning(termsOf('job:send-* "a b"'))).toMatchObject([
    { name: 'job', values: [{ text: 'send-', prefix: true }] },
    { name: undefined, values: [{ text: 'a b', quoted: true }] },
  ])
})

test.each([
  ['stat:failed', 'There is no qualifier stat.', 'Did you mean state?', 0, 4],
  ['job:x state:fail', 'No state fail.', /^Did you mean failed\? There are: scheduled, ready/, 12, 16],
  ['since:1mo', '1mo is no time.', /such as since:30d/, 6, 9],
  ['payload:1', 'payload needs a path.', /payload\.user\.id:42/, 0, 7],
  ['queue.a:1', 'queue has no path.', /queue:mail/, 0, 5],
  ['queue:>1', 'queue cannot be compared.', /queue:mail/, 0, 8],
  ['attempt:>x', 'x is no number.', /attempt:>3/, 9, 10],
  ['took:fast', 'fast is no duration.', /took:>30s/, 5, 9],
  ['payload.a:>x', 'x is no number and no date, so it cannot be compared.', null, 11, 12],
])('%s: %s', (text, message, hint, from, to) => {
  const found = checkSearch(termsOf(text))
  expect(found).toMatchObject({ text: message, from, to })
  if (hint === null) expect(found?.hint).toBeNull()
  else expect(found?.hint).toMatch(hint)
})

test.each([
  ['payload.a:"x', 'This quote is not closed.', 10],
  ['state:', 'A value is missing here.', 6],
  ['state:a,', 'A value is missing here.', 8],
  ['- a', 'A term follows the minus.', 0],
  ['state:"a"b', 'A space follows the closing quote.', 9],
])('%s does not read: %s', (text, message, from) => {
  expect(parseSearch(text)).toMatchObject({ ok: false, problem: { text: message, from } })
})

test('a search is bounded in its characters, terms, steps and values', () => {
  expect(parseSearch('a'.repeat(SEARCH_MAX)).ok).toBe(true)
  expect(parseSearch('a'.repeat(SEARCH_MAX + 1))).toMatchObject({
    ok: false,
    problem: { text: /at most 1000 characters/ },
  })
  expect(parseSearch('a '.repeat(30)).ok).toBe(true)
  expect(parseSearch('a '.repeat(31))).toMatchObject({ ok: false, problem: { text: /at most 30 terms/ } })
  expect(parseSearch(`payload${'.a'.repeat(8)}:1`).ok).toBe(true)
  expect(parseSearch(`payload${'.a'.repeat(9)}:1`)).toMatchObject({ ok: false, problem: { text: /at most 8 steps/ } })
  expect(parseSearch(`state:${'a,'.repeat(49)}a`).ok).toBe(true)
  expect(parseSearch(`state:${'a,'.repeat(50)}a`)).toMatchObject({ ok: false, problem: { text: /at most 50 values/ } })
})

test('times are durations back from now, dates, times of day and names', () => {
  const now = new Date(2026, 10, 18, 15, 0).getTime()
  expect(durationOf('1h30m')).toBe(5_400_000)
  expect(durationOf('1mo')).toBeUndefined()
  expect(instantOf('1h', { now })).toBe(now - 3_600_000)
  expect(instantOf('14:02', { now })).toBe(new Date(2026, 10, 18, 14, 2).getTime())
  expect(instantOf('16:00', { now })).toBe(new Date(2026, 10, 17, 16, 0).getTime())
  expect(instantOf('24:00', { now })).toBeUndefined()
  expect(instantOf('yesterday', { now })).toBe(new Date(2026, 10, 17).getTime())
  expect(instantOf('2026-11-15', { now })).toBe(new Date(2026, 10, 15).getTime())
  expect(instantOf('2026-11-15T10:00Z', { now })).toBe(Date.UTC(2026, 10, 15, 10))
  expect(instantOf('deploy', { now, deployedAt: 5 })).toBe(5)
  expect(instantOf('deploy', { now })).toBeUndefined()
})

test('completion gives qualifiers, then known values, and replaces the term at the caret', () => {
  const known = { values: { queue: ['mail', 'a b'] }, paths: { payload: ['user.id', '[0]'] } }
  expect(completeSearch('', 0, known).options[0]).toMatchObject({ insert: 'state:', label: 'state:failed' })
  expect(completeSearch('state:failed qu', 15, known)).toMatchObject({
    from: 13,
    to: 15,
    options: [{ insert: 'queue:' }],
  })
  expect(completeSearch('queue:', 6, known).options.map(({ insert }) => insert)).toEqual([
    'queue:mail ',
    'queue:"a b" ',
  ])
  expect(completeSearch('-state:failed,do', 16, known).options).toMatchObject([{ insert: '-state:failed,done ' }])
  expect(completeSearch('payload.u', 9, known).options).toMatchObject([{ insert: 'payload.user.id:' }])
  expect(completeSearch('constructor:', 12, known).options).toEqual([])
})
