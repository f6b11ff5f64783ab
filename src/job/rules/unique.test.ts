import { expect, test } from 'vitest'
import type { DuplicateVerdict, OnDuplicate, UniqueSlotVerdict, UniquePolicy } from './unique.js'
import { decideDuplicate, decideUniqueSlot } from './unique.js'
import { STATES } from './states.js'

const waiting = { state: 'scheduled', claimed: false } as const
const running = { state: 'running', claimed: true } as const
const held = { state: 'ready', claimed: true } as const

test.each<[OnDuplicate, DuplicateVerdict, DuplicateVerdict]>([
  ['return', 'return', 'return'],
  ['reject', 'reject', 'reject'],
  ['replace', 'replace', 'reject'],
  ['move', 'move', 'follow'],
])('%s decides %s while the holder waits, and %s once a worker has claimed it', (policy, whileWaiting, onceClaimed) => {
  expect(decideDuplicate(waiting, policy)).toBe(whileWaiting)
  expect(decideDuplicate(running, policy)).toBe(onceClaimed)
  expect(decideDuplicate(held, policy)).toBe(onceClaimed)
})

test('a claimed job is never replaced or moved, in any state', () => {
  for (const state of STATES)
    for (const policy of ['replace', 'move'] as const)
      expect(decideDuplicate({ state, claimed: true }, policy)).not.toBeOneOf(['replace', 'move'])
})

test('a running job is never replaced or moved, even without a known claim', () => {
  expect(decideDuplicate({ state: 'running', claimed: false }, 'replace')).toBe('reject')
  expect(decideDuplicate({ state: 'running', claimed: false }, 'move')).toBe('follow')
})

/** The verdict of each policy by the slot's state: [free, ended within its window, waiting, claimed, claimed within its window]. */
const SLOTS = [
  { holder: null, windowRuns: false },
  { holder: null, windowRuns: true },
  { holder: waiting, windowRuns: false },
  { holder: running, windowRuns: false },
  { holder: held, windowRuns: false },
  { holder: running, windowRuns: true },
  { holder: waiting, windowRuns: true },
] as const

test.each<[UniquePolicy, 'unfinished' | 'waiting', readonly UniqueSlotVerdict[]]>([
  ['ignore', 'unfinished', ['free', 'ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'ignore']],
  ['reject', 'unfinished', ['free', 'reject', 'reject', 'reject', 'reject', 'reject', 'reject']],
  ['replace', 'unfinished', ['free', 'reject', 'replace', 'reject', 'reject', 'reject', 'replace']],
  ['reschedule', 'unfinished', ['free', 'free', 'reschedule', 'reject', 'reject', 'reject', 'reschedule']],
  ['ignore', 'waiting', ['free', 'ignore', 'ignore', 'free', 'free', 'ignore', 'ignore']],
  ['reject', 'waiting', ['free', 'reject', 'reject', 'free', 'free', 'reject', 'reject']],
  ['replace', 'waiting', ['free', 'reject', 'replace', 'free', 'free', 'reject', 'replace']],
  ['reschedule', 'waiting', ['free', 'free', 'reschedule', 'free', 'free', 'free', 'reschedule']],
])('%s while %s decides by the state of the slot', (onDuplicate, whilst, verdicts) => {
  expect(SLOTS.map((slot) => decideUniqueSlot(slot, { while: whilst, onDuplicate }))).toEqual(verdicts)
})

test('a claimed job is never replaced or rescheduled, in any state', () => {
  for (const state of STATES)
    for (const onDuplicate of ['replace', 'reschedule'] as const)
      for (const whilst of ['unfinished', 'waiting'] as const)
        for (const windowRuns of [true, false]) {
          const verdict = decideUniqueSlot(
            { holder: { state, claimed: true }, windowRuns },
            { while: whilst, onDuplicate },
          )
          expect(verdict).toBeOneOf(['free', 'reject'])
        }
})
