import { describe, expect, test } from 'vitest'
import { decideOverlap, isOverlapping, OPEN_MAX, openAfter } from './overlap.js'
import { STATES } from './states.js'

const POLICIES = ['allow', 'skip', 'wait', 'cancel'] as const

describe('a tick with an unfinished earlier job', () => {
  test.each(POLICIES)('%s: runs when there is none', (overlap) => {
    expect(decideOverlap(overlap, 0)).toBe('run')
  })

  test('follows its policy', () => {
    expect(POLICIES.map((overlap) => decideOverlap(overlap, 2))).toEqual(['run', 'skip', 'wait', 'cancel'])
  })

  test('ignores finished, parked and pruned jobs', () => {
    expect(STATES.filter((state) => !isOverlapping(state))).toEqual(['parked', 'done', 'failed', 'cancelled'])
    expect(isOverlapping(undefined)).toBe(false)
  })
})

describe('the jobs that the next tick must regard', () => {
  test('grow up to a bound where jobs may overlap', () => {
    const full = Array.from({ length: OPEN_MAX }, (_, i) => `${i}`)
    expect(openAfter('run', full, 'new')).toEqual([...full.slice(1), 'new'])
  })

  test('are only the newest job where it waits for the others, or has cancelled them', () => {
    expect(openAfter('wait', ['a', 'b'], 'c')).toEqual(['c'])
    expect(openAfter('cancel', ['a', 'b'], 'c')).toEqual(['c'])
  })
})
