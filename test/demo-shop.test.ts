import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root } from '../scripts/run.mjs'
import { millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** `npm run demo`: the shop, with a short history. */
const ended: (() => Promise<unknown> | void)[] = []

beforeAll(async () => {
  const built = await build()
  if (built.code !== 0) throw new Error(`the package does not build:\n${built.output}`)
})
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

test.each(['sqlite', 'postgres'])(
  'the shop has every state within seconds, and Ctrl-C stops it in order, on %s',
  async (kind) => {
    const store = kind === 'sqlite' ? freshFile() : await database()
    const shop = start(['--jobs', '3000', '--store', store])
    await shop.ready
    const mill = await millrace({ store, logger: false })
    ended.push(() => mill.close())
    // A second later all of it has come to its state, on an idle machine.
    await expect
      .poll(() => oddStates(mill), { timeout: 30_000 })
      .toEqual({
        crasher: 'parked',
        'old-order': 'parked',
        renew: 'parked',
        'no-such-address': 'failed',
        'deep-tree': 'failed',
        markup: 'failed',
        migrate: 'failed',
        reindex: 'paused',
        refund: 'blocked',
        onboard: 'scheduled',
        'close-month': 'done',
        'legacy-sync': 'ready',
      })
    expect((await mill.workers()).rows.map(({ host }) => host).toSorted()).toEqual(['web-1', 'web-2', 'web-3', 'web-4'])
    expect((await mill.group('import-nov').progress()).total).toBe(640)
    expect((await mill.count({ job: 'ship', state: 'blocked' })).count).toBe(119)
    expect((await mill.schedules.ticks('sync-stock')).map(({ outcome }) => outcome)).toEqual(
      expect.arrayContaining(['ran', 'skipped']),
    )
    const kept = await mill.count({ createdBefore: new Date(Date.now() - 3_600_000) })
    expect(kept.count).toBeGreaterThan(2_000)
    const { mail } = await mill.stats.processingTimes({ days: 7, queue: 'mail' })
    expect(mail?.count).toBeGreaterThan(1_000)
    shop.process.kill('SIGINT')
    expect(await shop.exited, shop.output()).toBe(0)
  },
)

test('the shop that stands still is the same at each start', async () => {
  const seen = []
  for (let round = 0; round < 2; round += 1) {
    const store = freshFile()
    const shop = start(['--still', '--jobs', '2000', '--store', store])
    await shop.ready
    const mill = await millrace({ store, logger: false })
    const counts = await Promise.all(
      (['done', 'failed', 'parked', 'blocked', 'paused'] as const).map(
        async (state) => (await mill.count({ state })).count,
      ),
    )
    const [newest] = await mill.findPage({ job: 'weekly-report', state: 'done' }, { limit: 1 }).then(({ rows }) => rows)
    seen.push({ counts: counts.slice(1), newest: newest?.id })
    await mill.close()
    shop.process.kill('SIGTERM')
    expect(await shop.exited, shop.output()).toBe(0)
  }
  expect(seen[1]).toEqual(seen[0])
})

/** The state of the only job of each of these names, or of all of them where they share one. */
async function oddStates(mill: Mill): Promise<Record<string, string>> {
  const names = [
    'crasher',
    'old-order',
    'renew',
    'no-such-address',
    'deep-tree',
    'markup',
    'migrate',
    'refund',
    'onboard',
    'close-month',
    'legacy-sync',
  ]
  const states = await Promise.all(
    names.map(async (job) => {
      const { rows } = await mill.findPage({ job }, { limit: 10 })
      return [job, [...new Set(rows.map(({ state }) => state))].join(' ')] as const
    }),
  )
  const { rows } = await mill.findPage({ key: 'reindex' }, { limit: 1 })
  return { ...Object.fromEntries(states), reindex: rows[0]?.state ?? '' }
}

function freshFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-demo-'))
  ended.push(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'shop.db')
}

async function database(): Promise<string> {
  const { url, drop } = await freshDatabase()
  ended.push(drop)
  return url
}

interface Shop {
  readonly process: ChildProcess
  readonly ready: Promise<void>
  readonly exited: Promise<number | null>
  readonly output: () => string
}

function start(args: readonly string[]): Shop {
  const child = fork(join(root, 'examples', 'demo', 'demo.js'), args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => (output += data.toString()))
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const ready = new Promise<void>((resolve, reject) => {
    child.on('message', (message) => (message as { kind?: string }).kind === 'ready' && resolve())
    child.once('exit', (code) => reject(new Error(`the shop ended with ${code}: ${output}`)))
  })
  ended.push(async () => {
    if (child.exitCode === null) child.kill('SIGTERM')
    await exited
  })
  return { process: child, ready, exited, output: () => output }
}
