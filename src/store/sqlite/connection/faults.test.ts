import { describe, expect, test } from 'vitest'
import { ClosedError, StoreError, StoreFullError } from '../../../errors.js'
import { SQLITE } from './driver.js'
import { handleClosed, translate, translateOpening, translateSystem } from './faults.js'

const failed = (fields: object, message = 'it failed'): Error => Object.assign(new Error(message), fields)

describe('an error of SQLite', () => {
  test.each([
    [SQLITE.busy, 'E_STORE_BUSY', /locked for a minute; nothing was written/],
    [SQLITE.locked, 'E_STORE_BUSY', /locked for a minute/],
    [SQLITE.notADatabase, 'E_NOT_A_DATABASE', /is not an SQLite database; it was left untouched/],
    [SQLITE.cannotOpen, 'E_CANNOT_OPEN', /cannot be opened: it failed\. Does its folder exist/],
    [SQLITE.readOnly, 'E_READ_ONLY', /cannot be written: it failed/],
    [SQLITE.corrupt, 'E_STORE_CORRUPT', /is damaged: it failed.*integrity_check/],
    [SQLITE.ioError, 'E_STORE_IO', /the disk failed: it failed\. It was rolled back/],
    [1, 'E_STORE', /^a\.db: it failed$/],
  ])('with result code %i is %s', (errcode, code, message) => {
    const cause = failed({ code: 'ERR_SQLITE_ERROR', errcode })
    const translated = translate(cause, 'a.db') as StoreError
    expect(translated).toBeInstanceOf(StoreError)
    expect(translated).toMatchObject({ code, cause, message: expect.stringMatching(message) })
  })

  test('that the disk is full has its own type, and while opening promises no retry', () => {
    const full = translate(failed({ code: 'ERR_SQLITE_ERROR', errcode: SQLITE.full }), 'a.db')
    expect(full).toBeInstanceOf(StoreFullError)
    const opening = translateOpening(full, 'a.db') as StoreFullError
    expect(opening).toBeInstanceOf(StoreFullError)
    expect(opening.message).not.toBe((full as StoreFullError).message)
    expect(opening.cause).toBe((full as StoreFullError).cause)
    const other = new StoreError('E_STORE', 'no')
    expect(translateOpening(other, 'a.db')).toBe(other)
  })

  test('passes through where it is not of SQLite, or is of Millrace already', () => {
    const [plain, closed] = [new TypeError('x'), new ClosedError()]
    expect([translate(plain, 'a.db'), translate(closed, 'a.db')]).toEqual([plain, closed])
    expect(translate(closed, 'a.db')).toBe(closed)
  })
})

describe('an error of the file system', () => {
  test.each([
    ['EACCES', 'E_CANNOT_OPEN', 'may not enter a folder'],
    ['EPERM', 'E_CANNOT_OPEN', 'does not allow it'],
    ['EROFS', 'E_READ_ONLY', 'mounted read-only'],
    ['ELOOP', 'E_CANNOT_OPEN', 'in a circle'],
    ['ENAMETOOLONG', 'E_CANNOT_OPEN', 'too long'],
    ['ENOTDIR', 'E_CANNOT_OPEN', 'is a file'],
    ['EISDIR', 'E_CANNOT_OPEN', 'is a folder'],
    ['ENOENT', 'E_CANNOT_OPEN', 'does not exist'],
    ['EMFILE', 'E_CANNOT_OPEN', 'this process has too many files open'],
    ['ENFILE', 'E_CANNOT_OPEN', 'the system has too many files open'],
    ['EBUSY', 'E_STORE_IO', 'the file system failed: it failed'],
    ['EIO', 'E_STORE_IO', 'the file system failed'],
    ['E2BIG', 'E_STORE_IO', 'the file system failed'],
  ])('%s is %s', (system, code, text) => {
    const cause = failed({ code: system })
    const translated = translateSystem(cause, 'a.db')
    expect(translated).toBeInstanceOf(StoreError)
    expect(translated).toMatchObject({ code, cause, message: expect.stringContaining(text) })
    expect((translated as Error).message).toMatch(/^a\.db/)
  })

  test.each(['ENOSPC', 'EDQUOT'])('%s says that the disk is full', (code) => {
    expect(translateSystem(failed({ code }), 'a.db')).toBeInstanceOf(StoreFullError)
  })

  test.each([
    ['an error without a code', new Error('plain')],
    ['a code that is a number', failed({ code: 5 })],
    ['a code of Node', failed({ code: 'ERR_INVALID_ARG' })],
    ['a code within a text', failed({ code: 'x EIO' })],
    ['a code in lower case', failed({ code: 'Eio' })],
    ['an error of Millrace', new ClosedError()],
    ['no error', undefined],
  ])('is not seen in %s', (_, error) => {
    expect(translateSystem(error, 'a.db')).toBe(error)
  })

  test('names a long path by its two ends', () => {
    const message = (length: number): string => {
      const path = `/${'a'.repeat(length - 2)}z`
      return (translateSystem(failed({ code: 'EISDIR' }), path) as Error).message.split(' ')[0] as string
    }
    expect(message(300)).toBe(`/${'a'.repeat(298)}z`)
    expect(message(301)).toBe(`/${'a'.repeat(139)}…${'a'.repeat(139)}z`)
  })
})

test('a closed handle is reported as such, unless Millrace has said what happened', () => {
  const [cause, closed] = [new Error('database is not open'), new ClosedError()]
  expect(handleClosed(':memory:', cause)).toMatchObject({ code: 'E_STORE_CLOSED', cause })
  expect(handleClosed(':memory:', closed)).toBe(closed)
})
