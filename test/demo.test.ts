import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode } from '../scripts/run.mjs'

/** `npm run demo -- --once`, as in a fresh clone of the repository. */
const DEMO_MAX_MS = 30_000
let demo: Awaited<ReturnType<typeof runNode>>

beforeAll(async () => {
  const built = await build()
  if (built.code !== 0) throw new Error(`the package does not build:\n${built.output}`)
  const env = { FORCE_COLOR: undefined, NODE_ENV: undefined, NODE_OPTIONS: undefined, MILLRACE_STORE: undefined }
  demo = await runNode([join(root, 'examples', 'demo', 'demo.js'), '--once'], {
    env: { ...env, NODE_NO_WARNINGS: '1' },
    timeoutMs: DEMO_MAX_MS,
  })
})

test('npm run demo builds and starts it', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: { demo: string } }
  expect(scripts.demo).toMatch(/build.* && node examples\/demo\/demo\.js$/)
})

test('it exits by itself within half a minute, with code 0', () => {
  expect(demo.code, demo.output).toBe(0)
  expect(demo.errors).toBe('')
  expect(demo.output).toContain('Nothing was lost.')
})

test('e-mails are sent, and one with a wrong address is aborted at once', () => {
  expect(demo.output.match(/✓ sent to \S+@example\.com/g)).toHaveLength(9)
  expect(demo.output).toContain('✗ failed at once, since its handler threw Abort: nowhere is no address')
})

test('the flaky API is retried until it works', () => {
  expect(demo.output.match(/↻ order \d+: 503/g)).toHaveLength(3)
  expect(demo.output).toMatch(/✓ order 102: charged on attempt 3/)
})

test('the delayed job runs no earlier than its due time, and another one is cancelled', () => {
  const seconds = Number(/reminded (\d+\.\d+) s later/.exec(demo.output)?.[1])
  expect(seconds).toBeGreaterThanOrEqual(1.5)
  expect(demo.output).toContain('its timer is cancelled: true')
})

test('a worker is killed with jobs in flight, and another process ends them uncharged', () => {
  const [, killed, photos] = /✗ process (\d+) killed while it had (.*) in flight/.exec(demo.output) ?? []
  const orphans = photos?.split(', ') ?? []
  expect(orphans.length).toBeGreaterThan(0)
  for (const photo of orphans) {
    const [, by] = new RegExp(`✓ ${photo} resized by process (\\d+), attempt 1`).exec(demo.output) ?? []
    expect(by, photo).toBeDefined()
    expect(by).not.toBe(killed)
  }
})

test('the census finds every job in exactly one bucket', () => {
  expect(demo.output).toContain('20 enqueued = 18 done + 1 cancelled + 1 failed')
})

test('there are no colours when the output is not a terminal', () => {
  expect(demo.output).not.toContain('\u001b')
})
