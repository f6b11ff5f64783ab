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
  expect(decideDuplicate({ state: 'running', claimed: false }, 'move')).toBe('follow')
})

/** What each policy answers, by who has the place: [nobody, ended in its window, waiting, with a worker, with one in its window]. */
const PLACES = [
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
])('%s while %s answers by who has the place', (onDuplicate, whilst, answers) => {
  expect(PLACES.map((place) => decideUniqueSlot(place, { while: whilst, onDuplicate }))).toEqual(answers)
})

test('what a worker has is never replaced or rescheduled, whatever state it shows', () => {
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
