import { expect, test } from 'vitest'
import type { JobRecord } from '../../../job/record.js'
import { timelineOf } from './timeline.js'

const at = (ms: number): Date => new Date(ms)
const retrying = {
  state: 'retrying',
  createdAt: at(0),
  dueAt: at(300),
  startedAt: at(100),
  attempts: [{ startedAt: at(100), endedAt: at(200), worker: 'w' }],
} as unknown as JobRecord
const kindsOf = (now: number, why?: 'probing' | 'time') =>
  timelineOf(retrying, now, why)
    .slice(-2)
    .map(({ kind, from, to }) => [kind, from, to])

test('a retry that a probing queue holds is held from its due time on, and backs off before', () => {
  expect(kindsOf(500, 'probing')).toEqual([
    ['back-off', 200, 300],
    ['held', 300, null],
  ])
  expect(kindsOf(250, 'probing')).toEqual([
    ['back-off', 200, null],
    ['future', 300, null],
  ])
  expect(kindsOf(500, 'time').at(-1)).toEqual(['back-off', 200, null])
})
