import assert from 'node:assert/strict'
import { expect, test } from 'vitest'
import { census, running, waiting } from '../../../test/support/small-census.js'
import type { CensusJob } from '../../store/census.js'
import { StatisticsChecker } from './statistics-checks.js'

const counted = (done: number, failed = 0, retried = 0): { readonly attempts: object } => ({
  attempts: [{ queue: 'default', name: 'work', done, failed, retried }],
})

function check(steps: readonly (readonly [jobs: readonly CensusJob[], counts: object])[]): void {
  const checker = new StatisticsChecker()
  for (const [jobs, counts] of steps) checker.check(census(jobs, counts))
}

const ended = (state: CensusJob['state'], attempt = 1): CensusJob => ({ ...running, fence: null, state, attempt })

test('each end under a claim is counted as what it is', () => {
  check([
    [[running], {}],
    [[ended('retrying')], counted(0, 0, 1)],
    [[{ ...running, attempt: 1 }], counted(0, 0, 1)],
    [[ended('done', 2)], counted(1, 0, 1)],
    [[], counted(1, 0, 1)],
  ])
  check([
    [[running], {}],
    [[ended('failed')], counted(0, 1)],
  ])
  check([
    [[running], {}],
    [[ended('cancelled')], counted(0)],
    [[waiting], counted(0)],
  ])
})

test('an end that is not counted, counted as another, or counted without an end, is a broken promise', () => {
  for (const counts of [{}, counted(0, 1), counted(2), counted(1, 1)])
    expect(() =>
      check([
        [[running], {}],
        [[ended('done')], counts],
      ]),
    ).toThrow(/^S1: /)
  expect(() => check([[[waiting], counted(1)]])).toThrow(
    'S1: 1 attempts of default/work are counted as done, and there were 0',
  )
})

test('what a commit hides may have been counted or not', () => {
  for (const counts of [{}, counted(1), counted(0, 1)])
    check([
      [[running], {}],
      [[], counts],
    ])
  // It failed and was retried by a command.
  for (const counts of [{}, counted(0, 1)])
    check([
      [[running], {}],
      [[{ ...waiting, attempt: 1 }], counts],
    ])
  assert.throws(() =>
    check([
      [[running], {}],
      [[{ ...waiting, attempt: 1 }], counted(2)],
    ]),
  )
})
