import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import type { SqliteConstructor } from './driver.js'
import { chooseLibrary, isOlder, libraryOf, SAFE_VERSION } from './library.js'

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

test('the library chosen here is new enough to share a file', () => {
  const database = new (chooseLibrary().open)(':memory:')
  const { v } = database.prepare('select sqlite_version() as v').get() as { v: string }
  expect(isOlder(v, SAFE_VERSION)).toBe(false)
  database.close()
})

// What @photostructure/sqlite exports wraps the class of its handles, so `handle.constructor` is another function.
test('the library behind a handle is known by name where it is one of ours', () => {
  const chosen = chooseLibrary()
  const database = new chosen.open(':memory:')
  expect(libraryOf(database)).toEqual(chosen)
  database.close()
})

test('the library behind another handle is its constructor, and has no name for a thread', () => {
  const Libsql = require('libsql') as SqliteConstructor
  const database = new Libsql(':memory:')
  expect(libraryOf(database)).toEqual({ open: Libsql, module: undefined })
  database.close()
})
