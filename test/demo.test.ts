import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode } from '../scripts/run.mjs'

/** `npm run demo -- --once`, as somebody sees it who has just cloned the repository. */
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

test('it ends by itself within half a minute, and well', () => {
  expect(demo.code, demo.output).toBe(0)
  expect(demo.errors).toBe('')
  expect(demo.output).toContain('Nothing was lost.')
})

test('e-mails are sent, and a hopeless one is given up at once', () => {
  expect(demo.output.match(/✓ sent to \S+@example\.com/g)).toHaveLength(9)
  expect(demo.output).toContain('✗ given up at once, as its handler asked: nowhere is no address')
})

test('the flaky API is tried again until it works', () => {
  expect(demo.output.match(/↻ order \d+: 503/g)).toHaveLength(3)
  expect(demo.output).toMatch(/✓ order 102: charged on attempt 3/)
})

test('the delayed job comes no earlier than it was asked for, and one is called off', () => {
  const seconds = Number(/reminded (\d+\.\d+) s later/.exec(demo.output)?.[1])
  expect(seconds).toBeGreaterThanOrEqual(1.5)
  expect(demo.output).toContain('its timer is called off: true')
})

test('a worker is killed with jobs in hand, and another process ends them uncharged', () => {
  const [, killed, photos] = /✗ process (\d+) killed while it had (.*) in hand/.exec(demo.output) ?? []
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

test('there are no colours where nobody looks', () => {
  expect(demo.output).not.toContain('\u001b')
})
