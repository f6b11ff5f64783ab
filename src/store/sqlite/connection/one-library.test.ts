import { createRequire } from 'node:module'
import { linkSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { StoreError } from '../../../errors.js'
import { systemWorld } from '../../../world/world.js'
import type { SqliteConstructor } from './driver.js'
import { chooseLibrary } from './library.js'
import { holdFile } from './one-library.js'
import { openFile } from './open.js'

const require = createRequire(import.meta.url)
const Libsql = require('libsql') as SqliteConstructor
const { DatabaseSync } = require('@photostructure/sqlite') as { DatabaseSync: SqliteConstructor }

const folder = mkdtempSync(join(tmpdir(), 'millrace-one-library-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
function fresh(): string {
  const path = join(folder, `${(files += 1)}.db`)
  writeFileSync(path, '')
  return path
}

const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(StoreError)
    return (error as StoreError).code
  }
  return 'none'
}

describe('a file', () => {
  test('may be held by one library any number of times', () => {
    const path = fresh()
    const releases = [holdFile(path, Libsql), holdFile(path, Libsql), holdFile(path, Libsql)]
    for (const release of releases) release()
  })

  test('held by one library is refused to another, naming the first', () => {
    const path = fresh()
    const release = holdFile(path, Libsql)
    expect(codeOf(() => holdFile(path, DatabaseSync))).toBe('E_TWO_LIBRARIES')
    expect(() => holdFile(path, DatabaseSync)).toThrow(Libsql.name)
    release()
  })

  test('is free for another library once its last holder has released it, and not before', () => {
    const path = fresh()
    const [first, second] = [holdFile(path, Libsql), holdFile(path, Libsql)]
    first()
    first()
    expect(codeOf(() => holdFile(path, DatabaseSync))).toBe('E_TWO_LIBRARIES')
    second()
    const release = holdFile(path, DatabaseSync)
    expect(codeOf(() => holdFile(path, Libsql))).toBe('E_TWO_LIBRARIES')
    release()
  })

  test('is recognised by any of its names', () => {
    const path = fresh()
    symlinkSync(path, `${path}-link`)
    linkSync(path, `${path}-second`)
    const release = holdFile(path, Libsql)
    for (const name of [
      `${path}-link`,
      `${path}-second`,
      join(folder, '.', '..', folder.split('/').at(-1) as string, `${files}.db`),
    ])
      expect(codeOf(() => holdFile(name, DatabaseSync))).toBe('E_TWO_LIBRARIES')
    release()
  })

  test('is not confused with another file in the folder', () => {
    const [a, b] = [holdFile(fresh(), Libsql), holdFile(fresh(), DatabaseSync)]
    a()
    b()
  })
})

describe('a store', () => {
  const open = (target: string | object) => openFile({ target, durability: 'power' }, true, systemWorld())

  test('opened with two libraries in one process is refused, and accepted when the first has closed', async () => {
    const path = join(folder, 'store.db')
    const handle = new Libsql(path)
    const first = await open(handle)
    await expect(open(path)).rejects.toMatchObject({ code: 'E_TWO_LIBRARIES' })
    first.close()
    handle.close()
    const second = await open(path)
    second.close()
  })

  test('opened twice with the same library is accepted', async () => {
    const path = join(folder, 'twice.db')
    const [a, b] = [await open(path), await open(path)]
    a.close()
    expect(b.database.prepare('select 1 as one').get()).toMatchObject({ one: 1 })
    b.close()
  })

  // The export of @photostructure/sqlite wraps the class of its handles, so the two look like two libraries.
  test('opened by path and by a handle of the same library is accepted', async () => {
    const path = join(folder, 'path-and-handle.db')
    const byPath = await open(path)
    const handle = new (chooseLibrary().open)(path)
    try {
      ;(await open(handle)).close()
    } finally {
      handle.close()
      byPath.close()
    }
  })

  test('in memory is never the same as another', async () => {
    const handle = new Libsql(':memory:')
    const [a, b] = [await open(handle), await open(':memory:')]
    expect([a.path, b.path]).toEqual([':memory:', ':memory:'])
    a.close()
    b.close()
    handle.close()
  })
})
