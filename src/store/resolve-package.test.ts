import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resolvePackage } from './resolve-package.js'

test('a package that is installed is found as a file, and another is not found', () => {
  const file = resolvePackage('pg')
  expect(file !== undefined && existsSync(file)).toBe(true)
  expect(resolvePackage('no-such-package-anywhere')).toBeUndefined()
})
