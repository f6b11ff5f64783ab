import { existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Ballast, BALLAST_BYTES } from './ballast.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-ballast-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('ballast reserves space beside the database, readable by its owner only, and releases it', () => {
  const path = join(folder, 'a.db')
  const ballast = new Ballast(path)
  expect(ballast.isTaken()).toBe(false)
  expect(ballast.take()).toBe(true)
  const { size, blocks, mode } = statSync(`${path}-ballast`)
  expect(size).toBe(BALLAST_BYTES)
  // A sparse file would have the same length and reserve nothing.
  expect(blocks * 512).toBeGreaterThanOrEqual(BALLAST_BYTES)
  expect(mode & 0o777).toBe(0o600)
  expect(ballast.isTaken()).toBe(true)
  ballast.release()
  expect(existsSync(`${path}-ballast`)).toBe(false)
  expect(ballast.isTaken()).toBe(false)
})

test('a second take and a second release have no effect', () => {
  const ballast = new Ballast(join(folder, 'b.db'))
  ballast.release()
  expect([ballast.take(), ballast.take()]).toEqual([true, true])
  ballast.release()
  ballast.release()
  expect(ballast.isTaken()).toBe(false)
})

test('truncated ballast does not count, and is written again', () => {
  const path = join(folder, 'c.db')
  const ballast = new Ballast(path)
  ballast.take()
  truncateSync(`${path}-ballast`, 1_000)
  expect(ballast.isTaken()).toBe(false)
  expect(ballast.take()).toBe(true)
  expect(statSync(`${path}-ballast`).size).toBe(BALLAST_BYTES)
})

test('without space it returns false and leaves no file', () => {
  const path = join(folder, 'nowhere', 'd.db')
  expect(new Ballast(path).take()).toBe(false)
  mkdirSync(join(folder, 'nowhere'))
  expect(existsSync(`${path}-ballast`)).toBe(false)
  expect(new Ballast(path).take()).toBe(true)
})

const FULL = '/dev/full'
test.skipIf(!existsSync(FULL))('ballast that does not fit is refused, and leaves nothing behind', () => {
  const path = join(folder, 'full.db')
  symlinkSync(FULL, `${path}-ballast`)
  const ballast = new Ballast(path)
  expect(ballast.take()).toBe(false)
  expect(lstatSync(`${path}-ballast`, { throwIfNoEntry: false })).toBeUndefined()
})
