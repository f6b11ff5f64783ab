import { expect, test } from 'vitest'
import type { JobRecord } from '../../../../job/record.js'
import { REDACTED } from '../../../../job/secrets/redact.js'
import { differencesOf, factsOf } from './differences.js'
import type { Facts } from './differences.js'

const jobs = (n: number, factsAt: (i: number) => Record<string, string>): Facts[] =>
  Array.from({ length: n }, (_, i) => new Map(Object.entries(factsAt(i)).map(([name, value]) => [name, [value]])))

test('a value that 30 points more of the failed jobs have is a difference, and one of 29 is not', () => {
  const failed = jobs(100, (i) => ({ country: i < 50 ? 'NO' : 'SE', size: i < 49 ? 'L' : 'M' }))
  const done = jobs(100, (i) => ({ country: i < 20 ? 'NO' : 'SE', size: i < 20 ? 'L' : 'M' }))
  expect(differencesOf(failed, done)).toEqual([{ what: 'country', value: 'NO', failedPercent: 50, donePercent: 20 }])
})

test('nothing is compared with fewer than 20 jobs of a side', () => {
  const of = (n: number): Facts[] => jobs(n, () => ({ queue: 'mail' }))
  expect(differencesOf(of(19), of(20))).toBeNull()
  expect(differencesOf(of(20), of(19))).toBeNull()
  expect(differencesOf(of(20), of(20))).toEqual([])
})

test('what has more than 50 values, or a hidden one, is left out', () => {
  const done = jobs(100, () => ({ other: 'x' }))
  const ids = (values: number): Facts[] => jobs(100, (i) => ({ id: i < 50 ? '0' : String(1 + (i % (values - 1))) }))
  expect(differencesOf(ids(50), done)).toMatchObject([{ what: 'id', value: '0' }])
  expect(new Set(ids(51).map((facts) => facts.get('id')?.[0])).size).toBe(51)
  expect(differencesOf(ids(51), done)).toEqual([])
  const hidden = jobs(60, (i) => ({ card: i === 0 ? REDACTED : '42' }))
  expect(differencesOf(hidden, done)).toEqual([])
})

test('a job is compared by its queue, worker, labels, attempt, hour and the plain values of its payload', () => {
  const record = {
    queue: 'mail',
    labels: ['vip', 'no'],
    attempt: 2,
    attempts: [{ startedAt: new Date('2026-03-01T14:30:00Z'), endedAt: new Date(), worker: 'w1' }],
  } as unknown as JobRecord
  const payload = { user: { country: 'NO', age: 40 }, list: [1], when: new Date(0), gone: null }
  const workers = new Map([['w1', { host: 'app-1', version: 'v2' }]])
  expect(Object.fromEntries(factsOf(record, payload, workers))).toEqual({
    queue: ['mail'],
    worker: ['w1'],
    host: ['app-1'],
    version: ['v2'],
    label: ['vip', 'no'],
    attempt: ['2'],
    'hour (UTC)': ['14:00'],
    'payload.user.country': ['NO'],
    'payload.user.age': ['40'],
    'payload.gone': ['null'],
  })
  expect([...factsOf(record, undefined, workers).keys()].filter((name) => name.startsWith('payload'))).toEqual([])
})
