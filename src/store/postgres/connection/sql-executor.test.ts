import { describe, expect, test } from 'vitest'
import { numberOf, numberOrNull } from '../../rows/columns.js'
import { sqlStateOf, withGivenNames } from './sql-executor.js'

describe('a bigint column', () => {
  test.each([7, '7', 7n])('is the same number as %o', (value) => expect(numberOf(value)).toBe(7))

  test('may be negative, and as large as is safe', () => {
    expect(numberOf('-9007199254740991')).toBe(-Number.MAX_SAFE_INTEGER)
    expect(numberOf(9_007_199_254_740_991n)).toBe(Number.MAX_SAFE_INTEGER)
  })

  test.each(['9007199254740992', 9_007_199_254_740_992n, '1.5', '', ' ', 'x', '0x7', 1.5, NaN, null, undefined])(
    'that is %o is no number',
    (value) => expect(() => numberOf(value)).toThrow(RangeError),
  )

  test('may be null for numberOrNull', () => {
    expect([numberOrNull(null), numberOrNull(undefined), numberOrNull('0')]).toEqual([null, null, 0])
  })
})

describe('a column', () => {
  test('that was not renamed leaves the rows unchanged', () => {
    const rows = [{ started_at: 1 }]
    expect(withGivenNames(rows)).toBe(rows)
    expect(withGivenNames([])).toEqual([])
  })

  test.each(['startedAt', 'StartedAt', 'started-at'])('that is returned as %s also has its snake_case name', (name) => {
    expect(withGivenNames([{ [name]: 1, id: 2 }])).toEqual([expect.objectContaining({ started_at: 1, id: 2 })])
  })

  test('with a camelCase name of its own keeps it, also after a rename', () => {
    expect(withGivenNames([{ resultBytes: 1 }])).toEqual([expect.objectContaining({ resultBytes: 1 })])
    expect(withGivenNames([{ ResultBytes: 1 }])).toEqual([expect.objectContaining({ resultBytes: 1 })])
  })
})

test('two columns whose names differ only in case style keep their own values', () => {
  expect(withGivenNames([{ started_at: null, startedAt: 2 }])).toEqual([{ started_at: null, startedAt: 2 }])
})

describe('the SQLSTATE of an error', () => {
  const error = (fields: object): Error => Object.assign(new Error('no'), fields)

  test('is its code, in whichever property a library stores it', () => {
    expect(sqlStateOf(error({ code: '25P02' }))).toBe('25P02')
    expect(sqlStateOf(new Error('no', { cause: error({ code: '23505' }) }))).toBe('23505')
    expect(sqlStateOf(error({ code: '23505', driverError: error({ code: '23505' }) }))).toBe('23505')
    const adapter = new Error('no', { cause: { originalCode: '40001', kind: 'postgres' } })
    expect(sqlStateOf(error({ code: 'P2010', meta: { driverAdapterError: adapter } }))).toBe('40001')
  })

  test.each(['EPIPE', 'P2010', 'ECONNRESET', 'CONNECTION_ENDED', 'ABCDE', '235050', 'x23505', 5, undefined])(
    'is not %o',
    (code) => {
      expect(sqlStateOf(error({ code }))).toBeUndefined()
    },
  )

  test('is undefined for a value that is no error, and for an error that is its own cause', () => {
    expect([sqlStateOf(undefined), sqlStateOf('25P02'), sqlStateOf(null)]).toEqual([undefined, undefined, undefined])
    const own = new Error('no')
    own.cause = own
    expect(sqlStateOf(own)).toBeUndefined()
  })
})
