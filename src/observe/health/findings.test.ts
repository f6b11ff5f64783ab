import { expect, test } from 'vitest'
import type { WorkerListed } from '../../store/observing/lists.js'
import { findingsOf } from './findings.js'
import type { HealthFacts } from './findings.js'

const NOW = 1_800_000_000_000
const worker: WorkerListed = {
  id: 'w1',
  host: 'web-1',
  pid: 7,
  startedAt: NOW - 60_000,
  beatAt: NOW - 1_000,
  leaseMs: 15_000,
  diedAt: null,
  blockedBy: null,
  about: { slots: 10, names: ['send'] },
  running: [],
}
const fine: HealthFacts = {
  storeNow: NOW,
  ownNow: NOW,
  workers: [worker],
  dead: [],
  ready: [{ job: 'send', since: NOW }],
  failing: [],
  slowAfterMs: 300_000,
  ofStore: [],
  warnings: [],
}
const kinds = (change: Partial<HealthFacts>): string[] => findingsOf({ ...fine, ...change }).map(({ kind }) => kind)

test('nothing is found where nothing is wrong', () => {
  expect(findingsOf(fine)).toEqual([])
  expect(findingsOf({ ...fine, workers: [], ready: [] })).toEqual([])
})

test('each fault is found by its own sign, and says what it does and what mends it', () => {
  expect(kinds({ workers: [] })).toEqual(['no-worker'])
  expect(kinds({ workers: [worker, { ...worker, id: 'w2', beatAt: NOW - 15_001 }] })).toEqual(['silent-worker'])
  expect(kinds({ ready: [{ job: 'sned', since: NOW }] })).toEqual(['unknown-name'])
  expect(kinds({ ready: [{ job: 'sned', since: NOW }], workers: [{ ...worker, about: { slots: 1 } }] })).toEqual([])
  expect(kinds({ workers: [{ ...worker, blockedBy: 'id' }] })).toEqual(['blocked-loop'])
  expect(kinds({ workers: [{ ...worker, about: { slots: 1, names: ['send'], loopDelayMs: 1_000 } }] })).toEqual([
    'blocked-loop',
  ])
  const loops = [
    { ...worker, blockedBy: 'id' },
    { ...worker, about: { slots: 1, names: ['send'], loopDelayMs: 2_000 } },
  ]
  expect(findingsOf({ ...fine, workers: loops }).map(({ text }) => text)).toEqual([
    'The event loop of worker w1 on web-1 is blocked by job id.',
    'The event loop of worker w1 on web-1 is up to 2 s late.',
  ])
  const slow = { job: 'send', queue: 'default', count: 2, since: NOW - 300_001 }
  expect(kinds({ workers: [{ ...worker, running: [slow] }] })).toEqual(['slow-handler'])
  expect([kinds({ ownNow: NOW + 5_000 }), kinds({ ownNow: NOW + 5_001 }), kinds({ ownNow: NOW - 5_001 })]).toEqual([
    [],
    ['clock'],
    ['clock'],
  ])
  expect(kinds({ warnings: ['fsync is off'] })).toEqual(['setting'])
  const failing = { id: 'id', job: 'send', queue: 'default', state: 'failed', since: NOW - 1_000_000 } as const
  expect(kinds({ failing: [failing] })).toEqual(['failing-jobs'])
  const all = findingsOf({ ...fine, workers: [], ownNow: 0, warnings: ['x'], failing: [failing] })
  for (const { text, effect, mend } of all) expect([text, effect, mend].every((each) => each.length > 0)).toBe(true)
  expect(all.find(({ kind }) => kind === 'failing-jobs')?.text).toBe(
    'Jobs have been in error for too long: send; the oldest is send id, failed.',
  )
})
