import { describe, expect, test } from 'vitest'
import { refuseUnfit, warningsOf } from './fitness.js'

/** The answer of a server that fits. */
const FIT = {
  version: '18.4',
  number: 180_004,
  replica: false,
  readonly: 'off',
  commit: 'on',
  fsync: 'on',
  process: 7,
  encoding: 'UTF8',
  database: 'app',
}

describe('a server', () => {
  test('of any version from 14 on that accepts writes fits', () => {
    for (const number of [140_000, 149_999, 180_004, 190_000])
      expect(() => refuseUnfit({ ...FIT, number }, 'x')).not.toThrow()
  })

  test.each([
    [
      'that is too old',
      { version: '13.22', number: 130_022 },
      'E_STORE_VERSION',
      /x is PostgreSQL 13\.22 and .* 14 or/,
    ],
    ['that is a replica', { replica: true, readonly: 'on' }, 'E_STORE_READ_ONLY', /x is a replica .* the primary/],
    ['that is read-only', { readonly: 'on' }, 'E_STORE_READ_ONLY', /x is read-only \(default_transaction_read_only/],
    ['that stores any bytes', { encoding: 'SQL_ASCII' }, 'E_STORE_ENCODING', /x: the database "app" is in SQL_ASCII/],
  ])('%s is refused, and the error names it', (_, said, code, message) => {
    const refusal = (): void => refuseUnfit({ ...FIT, ...said }, 'x')
    expect(refusal).toThrow(expect.objectContaining({ code }))
    expect(refusal).toThrow(message)
  })

  test.each([
    ['nothing', {}, []],
    ['synchronous_commit', { commit: 'off' }, [/^x: synchronous_commit is off/]],
    ['fsync', { fsync: 'off' }, [/^x: fsync is off/]],
    ['both', { commit: 'off', fsync: 'off' }, [/synchronous_commit/, /fsync/]],
    ['nothing when a commit waits for a replica too', { commit: 'remote_apply' }, []],
    ['nothing when a commit waits for its own disk', { commit: 'local' }, []],
  ])('warns of %s', (_, said, warnings) => {
    expect(warningsOf({ ...FIT, ...said }, 'x')).toEqual(warnings.map((each) => expect.stringMatching(each)))
  })
})
