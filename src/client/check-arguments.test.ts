import { describe, expect, test } from 'vitest'
import type { Problem } from '../errors.js'
import { canBeId, checkCountFilter, checkEdit, checkFilter, checkId, checkResultOptions } from './check-arguments.js'

const ID = '01990000-0000-7000-8000-000000000000'
const texts = (problems: readonly Problem[]): string[] =>
  problems.map(({ path, message }) => `${path} ${message}`.trim())

describe('an edit', () => {
  test.each<[unknown, RegExp | undefined]>([
    [{}, undefined],
    [{ payload: { any: 1 }, title: 'x', priority: 1, in: '1h' }, undefined],
    [{ after: [ID], onParentFailure: 'run' }, undefined],
    [5, /^change must be an object, got 5$/],
    [{ onParentFailure: 'run' }, /^onParentFailure applies to the jobs in after; give both$/],
    [{ key: 'k' }, /^key cannot be edited; enqueue another job$/],
    [{ group: 'g' }, /^group cannot be edited/],
    [{ unique: {} }, /^unique cannot be edited/],
    [{ expires: '1h' }, /^expires cannot be edited/],
    [{ tx: {} }, /^tx cannot be given to an edit, which commits by itself$/],
    [{ paylod: 1 }, /^paylod is not an option; did you mean "payload"\?$/],
    [{ priority: 0.5 }, /^priority must be a whole number from -1000000 to 1000000, got 0\.5$/],
    [{ at: new Date(200 * 365 * 86_400_000) }, /^at /],
  ])('is checked: %#', (change, message) => {
    const problems = texts(checkEdit(change, 0))
    if (message === undefined) expect(problems).toEqual([])
    else expect(problems).toEqual([expect.stringMatching(message)])
  })

  test('has both problems of a duplicate policy: it is fixed, and it has no key', () => {
    expect(texts(checkEdit({ onDuplicate: 'reject' }, 0))).toEqual([
      'onDuplicate needs a key to be a duplicate of',
      'onDuplicate cannot be edited; enqueue another job',
    ])
  })
})

describe('a filter', () => {
  test.each<[unknown, RegExp | undefined]>([
    [{}, undefined],
    [{ job: ['a', {}], queue: ['q', 'r'], state: ['ready', 'done'], label: 'l', key: 'k', group: 'g' }, undefined],
    [{ createdAfter: new Date(0), createdBefore: '2026-11-01T00:00:00Z', order: 'oldest', limit: 0 }, undefined],
    [{ order: 'newest', limit: Infinity }, undefined],
    [{ job: '' }, /^job must have 1 to 200 characters/],
    [{ queue: ['q', ''] }, /^queue must have 1 to 200 characters/],
    [{ state: 'redy' }, /^state must be one of scheduled, ready, .*, got "redy"; did you mean "ready"\?$/],
    [{ state: ['ready', 5] }, /^state must be one of .*, got 5$/],
    [{ createdAfter: 'yesterday' }, /^createdAfter must be an instant/],
    [{ createdBefore: 5 }, /^createdBefore must be an instant/],
    [{ order: 'random' }, /^order must be "newest" or "oldest", got "random"$/],
    [{ limit: -1 }, /^limit must be a whole number of 0 or more, got -1$/],
    [{ text: 5 }, /^text must be/],
    ['mail', /^must be an object, got "mail"; did you mean \{ job: "mail" \}\?$/],
    [5, /^must be an object, got 5$/],
  ])('is checked: %#', (filter, message) => {
    const problems = texts(checkFilter(filter))
    if (message === undefined) expect(problems).toEqual([])
    else expect(problems).toEqual([expect.stringMatching(message)])
  })

  test('of a count has neither an order nor a limit', () => {
    expect(texts(checkCountFilter({ queue: 'q', state: 'ready' }))).toEqual([])
    expect(texts(checkCountFilter({ order: 'newest', limit: 1 })).map((each) => each.split(' ')[0])).toEqual([
      'order',
      'limit',
    ])
    expect(texts(checkCountFilter({ text: 'x' }))).toEqual([expect.stringContaining('is not yet part')])
  })
})

test.each<[unknown, RegExp | undefined]>([
  [{}, undefined],
  [{ timeout: '5s' }, undefined],
  [{ timeout: Infinity }, undefined],
  [{ timeout: 'soon' }, /^timeout must be a duration/],
  ['5s', /^must be an object, got "5s"; did you mean \{ timeout: "5s" \}\?$/],
  ['soon', /^must be an object, got "soon"$/],
])('the options of a result are checked: %#', (options, message) => {
  const problems = texts(checkResultOptions(options))
  if (message === undefined) expect(problems).toEqual([])
  else expect(problems).toEqual([expect.stringMatching(message)])
})

test('an id of a job is a UUID; other text is the id of no job, and anything else a mistake', () => {
  expect([canBeId(ID), canBeId('nope'), checkId(ID)]).toEqual([true, false, ID])
  expect(() => canBeId(5)).toThrow(/must be a job's id \(a UUID\), got 5$/)
  expect(() => checkId('nope')).toThrow(/must be a job's id \(a UUID\), got "nope"$/)
  expect(() => checkId(null)).toThrow(/got null$/)
  expect(() => checkId({})).toThrow(/got an Object$/)
  expect(() => checkId({ id: ID })).toThrow(/got an Object; pass handle\.id$/)
})
