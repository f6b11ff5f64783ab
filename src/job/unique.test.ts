import { expect, test } from 'vitest'
import type { DuplicateVerdict, OnDuplicate } from './unique.js'
import { decideDuplicate } from './unique.js'
import { STATES } from './states.js'

const waiting = { state: 'scheduled', claimed: false } as const
const running = { state: 'running', claimed: true } as const
const held = { state: 'ready', claimed: true } as const

test.each<[OnDuplicate, DuplicateVerdict, DuplicateVerdict]>([
  ['return', 'return', 'return'],
  ['reject', 'reject', 'reject'],
  ['replace', 'replace', 'reject'],
  ['move', 'move', 'return'],
])('%s answers %s while the holder waits, and %s once a worker has it', (asked, whileWaiting, onceTaken) => {
  expect(decideDuplicate(waiting, asked)).toBe(whileWaiting)
  expect(decideDuplicate(running, asked)).toBe(onceTaken)
  expect(decideDuplicate(held, asked)).toBe(onceTaken)
})

test('a claimed job is never replaced or moved, whatever state it shows', () => {
  for (const state of STATES)
    for (const asked of ['replace', 'move'] as const)
      expect(decideDuplicate({ state, claimed: true }, asked)).not.toBeOneOf(['replace', 'move'])
})

test('a running job is never replaced or moved, even if its claim were not known', () => {
  expect(decideDuplicate({ state: 'running', claimed: false }, 'replace')).toBe('reject')
  expect(decideDuplicate({ state: 'running', claimed: false }, 'move')).toBe('return')
})
