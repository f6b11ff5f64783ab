import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Ballast, BALLAST_BYTES } from './ballast.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-ballast-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('ballast takes real room beside the database, for its owner only, and gives it back', () => {
  const path = join(folder, 'a.db')
  const ballast = new Ballast(path)
  expect(ballast.isTaken()).toBe(false)
  expect(ballast.take()).toBe(true)
  const { size, blocks, mode } = statSync(`${path}-ballast`)
  expect(size).toBe(BALLAST_BYTES)
  // A sparse file would be as long and reserve nothing.
  expect(blocks * 512).toBeGreaterThanOrEqual(BALLAST_BYTES)
  expect(mode & 0o777).toBe(0o600)
  expect(ballast.isTaken()).toBe(true)
  ballast.release()
  expect(existsSync(`${path}-ballast`)).toBe(false)
  expect(ballast.isTaken()).toBe(false)
})

test('taking it twice is taking it once, and releasing what is not there is nothing', () => {
  const ballast = new Ballast(join(folder, 'b.db'))
  ballast.release()
  expect([ballast.take(), ballast.take()]).toEqual([true, true])
  ballast.release()
  ballast.release()
  expect(ballast.isTaken()).toBe(false)
})

test('ballast that was cut short does not count, and is taken anew', () => {
  const path = join(folder, 'c.db')
  const ballast = new Ballast(path)
  ballast.take()
  truncateSync(`${path}-ballast`, 1_000)
  expect(ballast.isTaken()).toBe(false)
  expect(ballast.take()).toBe(true)
  expect(statSync(`${path}-ballast`).size).toBe(BALLAST_BYTES)
})

test('where there is no room it says so and leaves nothing in the way', () => {
  const path = join(folder, 'nowhere', 'd.db')
  expect(new Ballast(path).take()).toBe(false)
  mkdirSync(join(folder, 'nowhere'))
  expect(existsSync(`${path}-ballast`)).toBe(false)
  expect(new Ballast(path).take()).toBe(true)
})
