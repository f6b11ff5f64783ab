import { describe, expect, test } from 'vitest'
import { defaultCodec } from '../../codec/codec.js'
import { appendLog } from '../../job/attempt/attempt-log.js'
import type { JobRow } from '../../store/store.js'
import { toRecord } from './records.js'

const row = (change: Partial<JobRow> = {}): JobRow => ({
  ref: 1,
  id: '00000000-0000-7000-8000-000000000000',
  name: 'mail',
  queue: 'default',
  priority: 0,
  key: null,
  group: null,
  payload: '{"to":"ada"}',
  options: null,
  after: [],
  createdAt: 1_000,
  state: 'done',
  claimed: false,
  streak: 0,
  dueAt: 1_000,
  attempt: 1,
  retries: 0,
  crashes: 0,
  startedAt: 5_000,
  settledAt: 6_000,
  expiresAt: null,
  worker: 'w',
  result: '"sent"',
  error: null,
  reason: null,
  log: null,
  progress: null,
  ...change,
})
const read = (change: Partial<JobRow> = {}) => toRecord(row(change), defaultCodec)

describe('a record', () => {
  test('tells a clean run from the row alone, which wrote no line of its own', () => {
    expect(read().attempts).toEqual([{ startedAt: new Date(5_000), endedAt: new Date(6_000), worker: 'w' }])
  })

  test('tells failed attempts before the clean one', () => {
    const error = { name: 'Error', message: 'no' }
    const log = appendLog(null, { startedAt: 2_000, endedAt: 3_000, worker: 'v', error })
    expect(read({ log, attempt: 2 }).attempts.map((a) => a.error?.message)).toEqual(['no', undefined])
  })

  test('tells a run once when it wrote a line because it logged', () => {
    const log = appendLog(null, { startedAt: 5_000, endedAt: 6_000, worker: 'w', log: ['hello'] })
    expect(read({ log }).attempts).toEqual([
      { startedAt: new Date(5_000), endedAt: new Date(6_000), worker: 'w', log: ['hello'] },
    ])
  })

  // The line of the command bears the same millisecond as the start, and is taken for the run's own.
  test.each(['retried', 'edited'])('tells the run that began in the millisecond in which it was %s', (exit) => {
    const log = appendLog(null, { startedAt: 5_000, endedAt: 5_000, worker: '', exit })
    expect(read({ log }).attempts.map((a) => [a.exit, a.worker])).toEqual([
      [exit, ''],
      [undefined, 'w'],
    ])
  })

  test('tells the run that began in the millisecond in which the one before failed', () => {
    const error = { name: 'Error', message: 'no' }
    const log = appendLog(null, { startedAt: 5_000, endedAt: 5_000, worker: 'w', error })
    expect(read({ log, attempt: 2 }).attempts).toHaveLength(2)
  })

  test('of a payload that does not decode says why and gives the text', () => {
    const found = read({ payload: '{"$":"Martian"}' })
    expect(found.payload).toBeUndefined()
    expect(found.reason).toMatch(/^the payload does not decode: /)
    expect(found.raw).toBe('{"$":"Martian"}')
  })

  test('says the reason it was given before the one it finds', () => {
    expect(read({ payload: 'x', reason: 'parked' }).reason).toBe('parked')
  })

  test('of a result or a meta that does not decode is still a record', () => {
    const options = JSON.stringify({ meta: { text: 'x' }, title: 't', labels: ['l'] })
    expect(read({ result: 'x', options })).toMatchObject({
      result: undefined,
      meta: undefined,
      title: 't',
      labels: ['l'],
    })
  })

  test('of a job that waits has no attempts and no end', () => {
    const found = read({ state: 'ready', startedAt: null, settledAt: null, worker: null, result: null, attempt: 0 })
    expect(found).toMatchObject({ attempts: [], startedAt: undefined, settledAt: undefined, result: undefined })
  })
})
