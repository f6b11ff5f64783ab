import { afterEach, expect, test, vi } from 'vitest'
import { findChromium } from '../../scripts/find-chromium.mjs'

afterEach(() => vi.unstubAllEnvs())

test('a Chromium that was chosen is used, and no other when it does not start', async () => {
  vi.stubEnv('MILLRACE_CHROMIUM', process.execPath) // any program that tells its version
  expect(await findChromium()).toEqual({ path: process.execPath, env: {} })
  vi.stubEnv('MILLRACE_CHROMIUM', '/nowhere/chromium')
  expect(await findChromium()).toEqual({
    reason: expect.stringMatching(/^the program that MILLRACE_CHROMIUM names does not start: .*nowhere/),
  })
})

test('the tests can be run without a browser', async () => {
  vi.stubEnv('MILLRACE_CHROMIUM', 'none')
  expect(await findChromium()).toEqual({ reason: 'MILLRACE_CHROMIUM is none' })
})
