import { describe, expect, test } from 'vitest'
import { decideOverlap, isOverlapping, OPEN_MAX, openAfter } from './overlap.js'
import { STATES } from './states.js'

const POLICIES = ['allow', 'skip', 'wait', 'cancel'] as const

describe('a tick that meets an unfinished job', () => {
  test.each(POLICIES)('%s: runs when there is none', (overlap) => {
    expect(decideOverlap(overlap, 0)).toBe('run')
  })

  test('is answered as its policy says', () => {
    expect(POLICIES.map((overlap) => decideOverlap(overlap, 2))).toEqual(['run', 'skip', 'wait', 'cancel'])
  })

  test('ended, parked and forgotten jobs are in nobody’s way', () => {
    expect(STATES.filter((state) => !isOverlapping(state))).toEqual(['parked', 'done', 'failed', 'cancelled'])
    expect(isOverlapping(undefined)).toBe(false)
  })
})

describe('the jobs that the next tick looks at', () => {
  test('grow where jobs run beside each other, to a bound', () => {
    const full = Array.from({ length: OPEN_MAX }, (_, i) => `${i}`)
    expect(openAfter('run', full, 'new')).toEqual([...full.slice(1), 'new'])
  })

  test('are the newest alone where it waits for the others, or has called them off', () => {
    expect(openAfter('wait', ['a', 'b'], 'c')).toEqual(['c'])
    expect(openAfter('cancel', ['a', 'b'], 'c')).toEqual(['c'])
  })
})
