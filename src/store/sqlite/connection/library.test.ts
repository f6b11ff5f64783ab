import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import type { SqliteConstructor } from './driver.js'
import { chooseLibrary, isBundled, isOlder, libraryOf, noLibrary, SAFE_VERSION } from './library.js'

const require = createRequire(import.meta.url)

test.each([
  ['3.51.2', '3.51.3', true],
  ['3.51.3', '3.51.3', false],
  ['3.51.4', '3.51.3', false],
  ['3.9.0', '3.51.3', true],
  ['3.100.0', '3.51.3', false],
  ['4.0.0', '3.51.3', false],
  ['3.52', '3.51.3', false],
  ['3.51', '3.51.3', true],
  ['3', '3.51.3', true],
])('version %s is older than %s: %s', (version, than, older) => {
  expect(isOlder(version, than)).toBe(older)
})

test('the chosen library is new enough to share a file', () => {
  const database = new (chooseLibrary().open)(':memory:')
  const { v } = database.prepare('select sqlite_version() as v').get() as { v: string }
  expect(isOlder(v, SAFE_VERSION)).toBe(false)
  database.close()
})

// The export of @photostructure/sqlite wraps the class of its handles, so `handle.constructor` is another function.
test('the library of a handle has a name if it is one that Millrace loads', () => {
  const chosen = chooseLibrary()
  const database = new chosen.open(':memory:')
  expect(libraryOf(database)).toEqual(chosen)
  database.close()
})

test('the library of another handle is its constructor, without a name for a thread', () => {
  const Libsql = require('libsql') as SqliteConstructor
  const database = new Libsql(':memory:')
  expect(libraryOf(database)).toEqual({ open: Libsql, module: undefined })
  database.close()
})

test('the file of this package is in no bundle, and a file of another name is', () => {
  expect(isBundled(new URL('./library.ts', import.meta.url).href)).toBe(false)
  expect(isBundled(new URL('./driver.ts', import.meta.url).href)).toBe(true)
  expect(isBundled('file:///not/here/store/sqlite/connection/library.js')).toBe(true)
  expect(isBundled(undefined)).toBe(true)
})

describe('without a library the error names', () => {
  const failure = new Error('wrong ELF class')

  test('a package that is not installed', () => {
    const text = noLibrary({ path: undefined, failure }, false)
    expect(text).toContain('is not installed; run `npm install @photostructure/sqlite@1`')
    expect(text).not.toContain('bundle')
  })

  test('a bundle that cannot reach the package', () => {
    const text = noLibrary({ path: undefined, failure }, true)
    expect(text).toContain('no SQLite library can be loaded from here')
    expect(text).toContain('mark @photostructure/sqlite as external')
    expect(text).not.toContain('is not installed')
  })

  test.each([true, false])('a package that cannot be loaded, with why, bundled: %s', (bundled) => {
    const text = noLibrary({ path: '/app/node_modules/@photostructure/sqlite/index.js', failure }, bundled)
    expect(text).toContain(
      'is at /app/node_modules/@photostructure/sqlite/index.js but cannot be loaded: wrong ELF class',
    )
    expect(text).toContain(bundled ? 'as external' : `a binary for ${process.platform}-${process.arch}`)
  })
})
