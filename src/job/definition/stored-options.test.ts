import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { StoredOptions } from './stored-options.js'
import { NO_OPTIONS, readOptions, withSlotOf, withTickOf, writeOptions } from './stored-options.js'

const roundTrip = (options: StoredOptions): StoredOptions => readOptions(writeOptions(options))

describe('the stored options', () => {
  test('are null when no option is set', () => {
    expect(writeOptions({})).toBeNull()
    expect(writeOptions({ title: undefined, labels: undefined, meta: undefined })).toBeNull()
    expect(readOptions(null)).toBe(NO_OPTIONS)
  })

  test('are read as they were written', () => {
    const options: StoredOptions = {
      title: 'Mail',
      labels: ['a', 'b'],
      retry: { limit: 3, backoff: { start: '1s', factor: 2, max: '1h' }, jitter: 0.5 },
      timeout: 5_000,
      meta: { text: '{"a":1}' },
    }
    expect(roundTrip(options)).toEqual(options)
  })

  test('keep a retry limit of Infinity and of 0', () => {
    expect(roundTrip({ retry: { limit: Infinity } }).retry?.limit).toBe(Infinity)
    expect(roundTrip({ retry: { limit: 0 } }).retry?.limit).toBe(0)
  })

  test('distinguish no limit from no timeout option', () => {
    expect(roundTrip({ timeout: null, title: 'x' }).timeout).toBeNull()
    expect(roundTrip({ title: 'x' }).timeout).toBeUndefined()
  })

  test('read the text ∞ as a number only in a limit', () => {
    const options: StoredOptions = { title: '∞', labels: ['∞'], meta: { text: '"∞"' } }
    expect(roundTrip(options)).toEqual(options)
  })

  test('escape NUL and lone surrogates', () => {
    const title = 'a\u0000b\ud800c'
    const written = writeOptions({ title }) as string
    expect(written).not.toContain('\u0000')
    expect((written as string & { isWellFormed(): boolean }).isWellFormed()).toBe(true)
    expect(readOptions(written).title).toBe(title)
  })

  test('of a moved job are new, except its tick, and its unique slot when it is rescheduled', () => {
    const unique = (key: string): StoredOptions['unique'] => ({ key, while: 'unfinished' })
    const before = writeOptions({ title: 'old', unique: unique('a'), tick: { schedule: 's', at: 1 } })
    const after = writeOptions({ title: 'new', unique: unique('b'), tick: { schedule: 's', at: 2 } })
    const moved = { title: 'new', unique: unique('b'), tick: { schedule: 's', at: 1 } }
    expect(readOptions(withTickOf(before, after))).toEqual(moved)
    expect(readOptions(withSlotOf(before, after))).toEqual({ ...moved, unique: unique('a') })
    expect(readOptions(withTickOf(null, after)).tick).toBeUndefined()
    expect(readOptions(withSlotOf(null, after)).tick).toBeUndefined()
  })

  test('round-trip for arbitrary options', () => {
    const options = fc.record(
      {
        title: fc.string({ unit: 'binary' }),
        labels: fc.array(fc.string({ unit: 'binary' })),
        retry: fc.record(
          { limit: fc.oneof(fc.nat(), fc.constant(Infinity)), jitter: fc.constantFrom(0, 0.5, 1) },
          { requiredKeys: [] },
        ),
        timeout: fc.oneof(fc.nat(), fc.constant(null)),
        meta: fc.oneof(fc.record({ text: fc.string({ unit: 'binary' }) }), fc.record({ base64: fc.base64String() })),
      },
      { requiredKeys: ['title'] },
    )
    fc.assert(
      fc.property(options, (given) => {
        expect(roundTrip(given)).toEqual(given)
      }),
    )
  })
})
