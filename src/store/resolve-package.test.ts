import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resolvePackage } from './resolve-package.js'

test('an installed package resolves to a file, and a missing one to undefined', () => {
  const file = resolvePackage('pg')
  expect(file !== undefined && existsSync(file)).toBe(true)
  expect(resolvePackage('no-such-package-anywhere')).toBeUndefined()
})
