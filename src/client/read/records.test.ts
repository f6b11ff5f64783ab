import { describe, expect, test } from 'vitest'
import { defaultCodec } from '../../codec/codec.js'
import { appendLog } from '../../job/attempt/attempt-log.js'
import type { JobRow } from '../../store/store.js'
import { toRecord } from './records.js'

const row = (change: Partial<JobRow> = {}): JobRow => ({
  ref: 1,
  id: '00000000-0000-7000-8000-000000000000',
  shape: null,
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
  test('has the fields of the row, and undefined where the row has nothing', () => {
    const shown = read()
    expect(shown).toStrictEqual({
      id: '00000000-0000-7000-8000-000000000000',
      job: 'mail',
      title: undefined,
      queue: 'default',
      state: 'done',
      payload: { to: 'ada' },
      result: 'sent',
      error: undefined,
      reason: undefined,
      attempt: 1,
      crashes: 0,
      priority: 0,
      labels: [],
      key: undefined,
      after: [],
      calledBy: undefined,
      group: undefined,
      meta: undefined,
      captured: {},
      progress: undefined,
      tick: undefined,
      createdAt: new Date(1_000),
      dueAt: new Date(1_000),
      startedAt: new Date(5_000),
      settledAt: new Date(6_000),
      expiresAt: undefined,
      attempts: shown.attempts,
    })
  })

  test('has what was given at the enqueue, and what the job reported', () => {
    const text = (value: unknown): { text: string } => ({ text: JSON.stringify(value) })
    const options = { title: 'For Ada', labels: ['a'], meta: text(7), captured: { tenant: text('t') } }
    const tick = { schedule: 'daily', at: 900 }
    const shown = read({
      options: JSON.stringify({ ...options, tick }),
      key: 'k',
      group: 'g',
      reason: 'why',
      error: '{"name":"Error","message":"no"}',
      progress: '{"done":1}',
      expiresAt: 9_000,
    })
    expect(shown).toMatchObject({ title: 'For Ada', labels: ['a'], meta: 7, captured: { tenant: 't' }, key: 'k' })
    expect(shown).toMatchObject({ group: 'g', reason: 'why', error: { message: 'no' }, progress: { done: 1 } })
    expect([shown.tick, shown.expiresAt]).toEqual([{ schedule: 'daily', at: new Date(900) }, new Date(9_000)])
  })

  test('of a job that has no result, did not begin or did not end says so', () => {
    const shown = read({ state: 'ready', result: null, startedAt: null, settledAt: null, worker: null })
    expect([shown.result, shown.startedAt, shown.settledAt, shown.attempts]).toEqual([
      undefined,
      undefined,
      undefined,
      [],
    ])
    const [done] = read({ worker: null }).attempts
    expect(done).toEqual({ startedAt: new Date(5_000), endedAt: new Date(6_000), worker: '' })
    for (const gap of [{ startedAt: null }, { settledAt: null }]) expect(read(gap).attempts).toEqual([])
  })

  test('has no time before an earlier one where the clock was set back', () => {
    const shown = read({ createdAt: 7_000, startedAt: 5_000, settledAt: 4_000 })
    expect([shown.startedAt, shown.settledAt]).toEqual([new Date(7_000), new Date(7_000)])
    const later = read({ startedAt: 8_000, settledAt: 4_000 })
    expect([later.startedAt, later.settledAt]).toEqual([new Date(8_000), new Date(8_000)])
    expect(read({ startedAt: null, settledAt: 500 }).settledAt).toEqual(new Date(1_000))
  })

  test('keeps what does not decode as it is stored, with why', () => {
    const shown = read({ payload: '{', result: '{', options: JSON.stringify({ meta: { text: '{' } }) })
    expect(shown).toMatchObject({ payload: undefined, result: undefined, meta: undefined, raw: '{' })
    expect(shown.reason).toMatch(/^the payload does not decode: ./)
    expect(read({ payload: '{', reason: 'parked' }).reason).toBe('parked')
    const throwing = {
      ...defaultCodec,
      decode: (): never => {
        throw 'no error' // oxlint-disable-line no-throw-literal -- a codec of a user may throw anything
      },
    }
    expect(toRecord(row(), throwing).reason).toBe('the payload does not decode: no error')
  })

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
