import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../scripts/run.mjs'
import { useProcesses } from './processes/child.js'

const processes = useProcesses()

/** Reads in another process, each a few moments long, so that of several readers one is always reading. */
const READER = `
import { createRequire } from 'node:module'
const require = createRequire(${JSON.stringify(join(root, 'package.json'))})
const { DatabaseSync } = require('@photostructure/sqlite')
const db = new DatabaseSync(file)
const read = () => {
  try {
    db.exec('begin')
    db.prepare('select count(*) from millrace_live').get()
  } catch {}
  setTimeout(() => {
    try { db.exec('commit') } catch {}
    read()
  }, 20 + Math.random() * 20)
}
read()
say('reading')
`

const MB = 1024 * 1024

test('the WAL stays small while some process is always reading', { timeout: 60_000 }, async () => {
  const writer = processes().run(`
const noop = job('noop', async () => undefined)
const mill = await millrace({ store: file, jobs: [noop], logger: false })
await mill.start()
say('open')
await new Promise((resolve) => setTimeout(resolve, 2000))
const pad = 'x'.repeat(4000)
for (let i = 0; i < 120; i += 1) await mill.enqueueMany(noop, Array.from({ length: 100 }, () => ({ pad })))
say('written')
// Keeps writing a little, as a program does: only a writer restarts the WAL.
setInterval(() => mill.enqueue(noop, {}), 50)
`)
  await writer.receives('open')
  const readers = [0, 1, 2, 3].map(() => processes().run(READER))
  for (const reader of readers) await reader.receives('reading')
  await writer.receives('written', 40_000)
  const walBytes = (): number => statSync(`${processes().file}-wal`).size
  // Close to 50 MB were written; with the automatic checkpoint alone the WAL would have all of it, and keep it.
  await expect.poll(walBytes, { timeout: 15_000, interval: 20 }).toBeLessThan(16 * MB)
  for (const reader of readers) expect(reader.process.exitCode).toBeNull()
})

/** One read transaction that stays open until the process is ended. */
const PINNING_READER = READER.replace(
  /const read = [^]*/,
  `db.exec('begin')\ndb.prepare('select 1 from millrace_live').get()\nsay('reading')\nsetInterval(() => db.isOpen, 1000) // Otherwise the handle would be collected, and its transaction would end.`,
)

test('a reader that stays is reported, and the WAL shrinks when it ends', { timeout: 60_000 }, async () => {
  const writer = processes().run(`
const noop = job('noop', async () => undefined)
const warn = (_, text) => say('warned', { text })
const logger = { debug() {}, info() {}, warn, error: warn }
const mill = await millrace({ store: file, jobs: [noop], logger })
await mill.start()
say('open')
setInterval(() => mill.enqueueMany(noop, Array.from({ length: 50 }, () => ({ pad: 'x'.repeat(8000) }))), 50)
`)
  await writer.receives('open')
  const reader = processes().run(PINNING_READER)
  await reader.receives('reading')
  const { text } = await writer.receives('warned', 40_000)
  expect(text).toMatch(/jobs\.db-wal has grown to \d+ MB: a process keeps a read transaction open/)
  const walBytes = (): number => statSync(`${processes().file}-wal`).size
  expect(walBytes()).toBeGreaterThan(16 * MB)
  await reader.kill()
  await expect.poll(walBytes, { timeout: 15_000, interval: 20 }).toBeLessThan(16 * MB)
  expect(writer.messages.filter(({ what }) => what === 'warned')).toHaveLength(1)
})
