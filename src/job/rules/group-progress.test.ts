import { expect, test } from 'vitest'
import { progressOf } from './group-progress.js'

const counts = [
  { queue: 'mail', state: 'done', members: 7 },
  { queue: 'mail', state: 'parked', members: 2 },
  { queue: 'sms', state: 'running', members: 1 },
  { queue: '__proto__', state: 'failed', members: 3 },
] as const

test('counts are summed in total and by queue', () => {
  const progress = progressOf({ sealedAt: 1, completedAt: null, counts }, undefined)
  expect(progress).toMatchObject({ total: 13, done: 7, failed: 3, running: 1, parked: 2, ready: 0, unfinished: 3 })
  expect([progress.sealed, progress.completedAt]).toEqual([true, undefined])
  expect(Object.keys(progress.queues)).toEqual(['__proto__', 'mail', 'sms'])
  expect(progress.queues['mail']).toMatchObject({ total: 9, unfinished: 2 })
})

test('with a queue, only members of that queue are counted', () => {
  const progress = progressOf({ sealedAt: null, completedAt: null, counts }, 'sms')
  expect([progress.total, Object.keys(progress.queues)]).toEqual([1, ['sms']])
  expect(progressOf({ sealedAt: null, completedAt: 5, counts }, 'none')).toMatchObject({
    total: 0,
    sealed: false,
    completedAt: new Date(5),
    queues: {},
  })
})
