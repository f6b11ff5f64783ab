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
  test('shows an attempt without a log entry by the times of the row', () => {
    expect(read().attempts).toEqual([{ startedAt: new Date(5_000), endedAt: new Date(6_000), worker: 'w' }])
  })

  test('lists failed attempts before the successful one', () => {
    const error = { name: 'Error', message: 'no' }
    const log = appendLog(null, { startedAt: 2_000, endedAt: 3_000, worker: 'v', error })
    expect(read({ log, attempt: 2 }).attempts.map((a) => a.error?.message)).toEqual(['no', undefined])
  })

  test('lists an attempt once when it has a log entry', () => {
    const log = appendLog(null, { startedAt: 5_000, endedAt: 6_000, worker: 'w', log: ['hello'] })
    expect(read({ log }).attempts).toEqual([
      { startedAt: new Date(5_000), endedAt: new Date(6_000), worker: 'w', log: ['hello'] },
    ])
  })

  // The entry of the command has the start time of the attempt, and must not be taken for the attempt's own entry.
  test.each(['retried', 'edited'])(
    'lists the attempt that began in the millisecond in which the job was %s',
    (exit) => {
      const log = appendLog(null, { startedAt: 5_000, endedAt: 5_000, worker: '', exit })
      expect(read({ log }).attempts.map((a) => [a.exit, a.worker])).toEqual([
        [exit, ''],
        [undefined, 'w'],
      ])
    },
  )

  test('lists the attempt that began in the millisecond in which the previous one failed', () => {
    const error = { name: 'Error', message: 'no' }
    const log = appendLog(null, { startedAt: 5_000, endedAt: 5_000, worker: 'w', error })
    expect(read({ log, attempt: 2 }).attempts).toHaveLength(2)
  })

  test('of a job whose payload does not decode has the reason and the stored text', () => {
    const found = read({ payload: '{"$":"Martian"}' })
    expect(found.payload).toBeUndefined()
    expect(found.reason).toMatch(/^the payload does not decode: /)
    expect(found.raw).toBe('{"$":"Martian"}')
  })

  test('prefers the stored reason to the decode error', () => {
    expect(read({ payload: 'x', reason: 'parked' }).reason).toBe('parked')
  })

  test('has no result and no meta when those do not decode', () => {
    const options = JSON.stringify({ meta: { text: 'x' }, title: 't', labels: ['l'] })
    expect(read({ result: 'x', options })).toMatchObject({
      result: undefined,
      meta: undefined,
      title: 't',
      labels: ['l'],
    })
  })

  test('of a waiting job has no attempts and no end', () => {
    const found = read({ state: 'ready', startedAt: null, settledAt: null, worker: null, result: null, attempt: 0 })
    expect(found).toMatchObject({ attempts: [], startedAt: undefined, settledAt: undefined, result: undefined })
  })
})
