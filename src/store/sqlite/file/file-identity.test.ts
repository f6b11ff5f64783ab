import { expect, test } from 'vitest'
import type { FileIdentity } from './file-identity.js'
import { openSame } from './file-identity.js'

/** The path leads to another file from its n-th check on. */
function replacedAt(n: number): FileIdentity {
  let checks = 0
  const verify = (): void => {
    checks += 1
    if (checks >= n) throw new Error('another file')
  }
  return { verify } as unknown as FileIdentity
}

function opening() {
  const handle = { closed: 0, close: () => (handle.closed += 1) }
  const opened: unknown[] = []
  return { handle, opened, open: () => (opened.push(handle), handle) }
}

test('a connection is given while the path leads to the store’s file', () => {
  const { handle, open } = opening()
  expect(openSame(replacedAt(3), open)).toBe(handle)
  expect(openSame(undefined, open)).toBe(handle)
  expect(handle.closed).toBe(0)
})

test('a connection is not opened by a path that leads to another file, which it would create', () => {
  const { opened, open } = opening()
  expect(() => openSame(replacedAt(1), open)).toThrow('another file')
  expect(opened).toEqual([])
})

test('a connection is closed when the file was replaced while it was opened', () => {
  const { handle, open } = opening()
  expect(() => openSame(replacedAt(2), open)).toThrow('another file')
  expect(handle.closed).toBe(1)
})
