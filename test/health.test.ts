import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Abort, healthHandler, prometheusHandler, job, millrace } from '../src/index.js'
import type { HealthReport, Mill } from '../src/index.js'
import { freshStore, passingStore } from './support/fresh-store.js'
import { rawTables } from './support/raw-tables.js'
import { testing } from './support/testing.js'

/** S3 through the public API. */

const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})
const broken = job('broken', {
  run: async (_: undefined, ctx) => {
    if (ctx.attempt < 3) throw new Abort('card declined')
  },
})

test('it is null before the first check, healthy in the grace, unhealthy when an error lasts, and recovers', async () => {
  const seen: string[] = []
  const note = (what: string) => (report: HealthReport) => void seen.push(`${what}: ${report.healthy}`)
  const t = await testing({
    jobs: [broken],
    allowedErrorTime: '15m',
    startGrace: '10m',
    onSystemError: note('error'),
    onSystemRecovery: note('recovery'),
  })
  const { mill } = t
  const { fetch } = healthHandler(mill)
  const status = async (method = 'GET'): Promise<number> =>
    (await fetch(new Request('http://localhost/health', { method }))).status
  expect(mill.healthy()).toBeNull()
  const { id } = await mill.enqueue(broken)
  await expect(t.consume()).rejects.toThrow('card declined')
  await t.advance('9m')
  expect([(await mill.health()).healthy, mill.healthy(), await status()]).toEqual([true, true, 200])
  await t.advance('5m')
  expect((await mill.health()).healthy).toBe(true)
  await t.advance('2m')
  const report = await mill.health()
  expect(report).toMatchObject({ healthy: false, workers: expect.any(Number) })
  expect(report.findings.find(({ kind }) => kind === 'failing-jobs')?.text).toBe(
    `Jobs have been in error for too long: broken; the oldest is broken ${id}, failed.`,
  )
  expect([mill.healthy(), await status(), await status('HEAD'), await status('POST')]).toEqual([false, 503, 503, 405])
  expect(seen).toEqual(['error: false'])
  await mill.delete(id)
  expect([(await mill.health()).healthy, await status()]).toEqual([true, 200])
  expect(seen).toEqual(['error: false', 'recovery: true'])
  const again = await mill.enqueue(broken)
  await expect(t.consume()).rejects.toThrow('card declined')
  expect((await again.get())?.state).toBe('failed')
  await t.close()
})

test('tables of another version are a finding', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-health-'))
  const store = freshStore(folder)
  const mill = await millrace({ store, logger: false })
  const found = async (): Promise<readonly string[]> =>
    (await mill.health()).findings.flatMap(({ kind, text }) => (kind === 'migrations' ? [text] : []))
  expect(await found()).toEqual([])
  const moved = (by: number): Promise<void> =>
    rawTables(store).run(
      (table) =>
        `update ${table('migrations')} set version = version + ${by} where version = (select max(version) from ${table('migrations')})`,
    )
  await moved(100)
  expect(await found()).toEqual([expect.stringMatching(/schema version 10\d, and this process knows version \d/)])
  await moved(-100)
  expect(await found()).toEqual([])
  await mill.close()
  rmSync(folder, { recursive: true, force: true })
})

test('never unhealthy in the grace, though an error lasts', async () => {
  const t = await testing({ jobs: [broken], allowedErrorTime: '1m', startGrace: '1h' })
  await t.mill.enqueue(broken)
  await expect(t.consume()).rejects.toThrow()
  await t.advance('59m')
  const report = await t.mill.health()
  expect(report.healthy).toBe(true)
  expect(report.findings.map(({ kind }) => kind)).toContain('failing-jobs')
  await t.advance('2m')
  expect((await t.mill.health()).healthy).toBe(false)
  await t.close()
})

test('without a callback it is one line in the log, and a callback that throws stops nothing', async () => {
  const lines: string[] = []
  const write = (...args: unknown[]): void => void lines.push(args.map(String).join(' '))
  const logger = { debug: () => undefined, info: write, warn: write, error: write }
  const options = { jobs: [broken], logger, allowedErrorTime: '1m', startGrace: 0 } as const
  const t = await testing(options)
  const { id } = await t.mill.enqueue(broken)
  await expect(t.consume()).rejects.toThrow()
  await t.advance('2m')
  await t.mill.health()
  await t.mill.health()
  expect(lines.filter((line) => line.includes('unhealthy: Jobs have been in error'))).toHaveLength(1)
  await t.mill.delete(id)
  await t.mill.health()
  expect(lines.filter((line) => /healthy again, after/.test(line))).toHaveLength(1)
  await t.close()
})

test('a ready job without a worker, and a store that is closed, are findings', async () => {
  const mill = await millrace({ store: passingStore(), logger: false, jobs: [broken] })
  mills.push(mill)
  await mill.enqueue(broken)
  const report = await mill.health()
  expect(report.findings.map(({ kind }) => kind)).toContain('no-worker')
  expect(report.store).toMatchObject({
    engine: expect.stringMatching(/SQLite|PostgreSQL/),
    latencyMs: expect.any(Number),
  })
  await mill.close()
  const closed = await mill.health()
  expect(closed).toMatchObject({ healthy: true, store: { latencyMs: undefined } })
  expect(closed.findings.map(({ kind }) => kind)).toEqual(['store'])
})

test('a handler without a mill is refused, with what came instead', () => {
  expect(() => healthHandler(undefined as never)).toThrow(/healthHandler\(\).*mill must be a mill, got undefined/s)
  expect(() => healthHandler(Promise.resolve() as never)).toThrow(/got a Promise.*; await millrace\(\) first/s)
  expect(() => prometheusHandler(Promise.resolve())).toThrow(/prometheusHandler\(\).*; await millrace\(\) first/s)
})
