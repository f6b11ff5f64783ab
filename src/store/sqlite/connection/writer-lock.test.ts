import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { lockWriter } from './writer-lock.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-writer-lock-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const fresh = (): string => join(folder, `${(files += 1)}.db`)

let other: ChildProcess | undefined
afterEach(() => other?.kill('SIGKILL'))
async function anotherProcess(): Promise<number> {
  other = spawn(process.execPath, ['-e', 'process.stdout.write("up"); setInterval(() => {}, 1000)'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise<void>((next) => other?.stdout?.once('data', () => next()))
  return other.pid as number
}

test('the lock is a file beside the database with this process’s id, for its owner only', () => {
  const path = fresh()
  const release = lockWriter(path, '3.45.1')
  expect(readFileSync(`${path}-writer`, 'utf8')).toBe(String(process.pid))
  expect(statSync(`${path}-writer`).mode & 0o777).toBe(0o600)
  release()
  expect(existsSync(`${path}-writer`)).toBe(false)
  release()
})

test('a lock of a live process is refused, with its id and the version', async () => {
  const path = fresh()
  const pid = await anotherProcess()
  writeFileSync(`${path}-writer`, String(pid))
  expect(() => lockWriter(path, '3.45.1')).toThrow(`process ${pid} already writes this file, and SQLite 3.45.1`)
  expect(readFileSync(`${path}-writer`, 'utf8')).toBe(String(pid))
})

test('a lock of a process that has exited is taken over', async () => {
  const path = fresh()
  const pid = await anotherProcess()
  writeFileSync(`${path}-writer`, String(pid))
  other?.kill('SIGKILL')
  await new Promise<void>((next) => other?.once('exit', () => next()))
  const release = lockWriter(path, '3.45.1')
  expect(readFileSync(`${path}-writer`, 'utf8')).toBe(String(process.pid))
  release()
})

test.each(['', 'nonsense', '-1', '0', '1.5'])('a lock that contains %j has no holder and is taken over', (text) => {
  const path = fresh()
  writeFileSync(`${path}-writer`, text)
  const release = lockWriter(path, '3.45.1')
  expect(readFileSync(`${path}-writer`, 'utf8')).toBe(String(process.pid))
  release()
})

test('a lock of this process is shared, since two mills here use one library', () => {
  const path = fresh()
  const [first, second] = [lockWriter(path, '3.45.1'), lockWriter(path, '3.45.1')]
  second()
  first()
  expect(existsSync(`${path}-writer`)).toBe(false)
})

// The second holder took the file over, and the first one's release removed it.
test('a lock that two stores of this process share stays until both have released it', () => {
  const path = fresh()
  const [first, second] = [lockWriter(path, '3.45.1'), lockWriter(path, '3.45.1')]
  first()
  const held = existsSync(`${path}-writer`)
  second()
  expect(held).toBe(true)
})
