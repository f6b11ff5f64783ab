import { describe, expect, test } from 'vitest'
import { decidePause, isPaused } from './queue-pause.js'

const NOW = 1_000
const at = (until: number) => ({ until })

describe('a queue', () => {
  test.each([
    [undefined, false],
    [at(NOW - 1), false],
    [at(NOW), false],
    [at(NOW + 1), true],
    [at(Infinity), true],
  ])('whose pause is %o is paused: %s', (pause, expected) => {
    expect(isPaused(pause, NOW)).toBe(expected)
  })
})

describe('a request by the app', () => {
  test.each([
    ['pauses what runs', undefined, at(2_000), at(2_000)],
    ['lengthens', at(1_500), at(2_000), at(2_000)],
    ['shortens', at(2_000), at(1_500), at(1_500)],
    ['ends a pause without end', at(Infinity), at(1_500), at(1_500)],
    ['takes the end away', at(1_500), at(Infinity), at(Infinity)],
    ['resumes when its time is now', at(2_000), at(NOW), undefined],
    ['resumes when its time is past', at(Infinity), at(0), undefined],
    ['leaves what runs when its time is past', undefined, at(0), undefined],
  ] as const)('%s', (_, current, requested, expected) => {
    expect(decidePause(current, requested, 'person', NOW)).toEqual(expected)
  })
})

describe('a request by a handler', () => {
  test.each([
    ['pauses what runs', undefined, at(2_000), at(2_000)],
    ['lengthens', at(1_500), at(2_000), at(2_000)],
    ['does not shorten', at(2_000), at(1_500), at(2_000)],
    ['does not end a pause without end', at(Infinity), at(1_500), at(Infinity)],
    ['resumes nothing', at(2_000), at(0), at(2_000)],
    ['leaves what runs when its time is past', undefined, at(0), undefined],
    ['does not bring back a pause that is over', at(500), at(600), undefined],
  ] as const)('%s', (_, current, requested, expected) => {
    expect(decidePause(current, requested, 'handler', NOW)).toEqual(expected)
  })
})
