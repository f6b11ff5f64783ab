import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode } from '../scripts/run.mjs'

/** Processes that end while a thread of the store is inside SQLite; `npm run torture -- exits` ends them at random moments. */
const folder = mkdtempSync(join(tmpdir(), 'millrace-exits-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeAll(async () => {
  expect((await build()).code).toBe(0)
})

/** Each starts a long call that holds the write lock: so the main thread can detect that it is in progress. */
const CALLS = {
  'a heartbeat': `
    const { startHeartbeat } = await import(dist + 'store/sqlite/connection/heartbeat.js')
    const beat = 'update beats set beat = (with recursive n (i) as (select 1 union all select i + 1 from n where i < 400000) ' +
      'select count(*) from n) where worker = ?'
    const queries = { beat, markBlocking: 'select 1' }
    void startHeartbeat({ library, path, worker: 'w', everyMs: 60_000, queries, identity: undefined, onLost: () => {} })`,
  'a checkpoint': `
    const { CheckpointThread } = await import(dist + 'store/sqlite/file/checkpoint-thread.js')
    const reader = new library.open(path)
    reader.exec('begin; select * from beats')
    database.exec('insert into beats values (1, 1)')
    const truncate = 'pragma wal_checkpoint(truncate)'
    const thread = new CheckpointThread({ library, path, identity: { parts: [] }, passive: '', truncate })
    // A checkpoint that meets the lock of isInCall() copies what it can and returns at once, so it is made until one waits.
    const next = () => thread.checkpoint('truncate').then(next, next)
    void next()`,
}

const ENDS = {
  'process.exit()': { end: 'process.exit(7)', code: 7, says: /^$/ },
  'an uncaught error': { end: `throw new Error('told to end')`, code: 1, says: /told to end/ },
}

const program = (call: string, end: string): string => `
const dist = ${JSON.stringify(pathToFileURL(join(root, 'dist')).href)} + '/'
const { chooseLibrary } = await import(dist + 'store/sqlite/connection/library.js')
const library = chooseLibrary()
const path = process.argv[2]
const database = new library.open(path)
database.exec('pragma journal_mode = wal; create table beats (worker, beat); pragma busy_timeout = 0')
database.prepare('insert into beats values (?, 0)').run('w')
${call}
const isInCall = () => {
  try {
    database.exec('begin immediate; rollback')
    return false
  } catch {
    return true
  }
}
setInterval(() => {
  if (isInCall()) {
    ${end}
  }
}, 1)
`

describe.each(Object.entries(CALLS))('a process that ends during %s', (name, call) => {
  test.each(Object.entries(ENDS))('by %s ends with its own code and message', async (way, { end, code, says }) => {
    const file = join(folder, `${name}-${way}`.replace(/\W+/g, '-'))
    writeFileSync(`${file}.mjs`, program(call, end))
    // Node 22 warns that its own SQLite is experimental.
    const env = { NODE_NO_WARNINGS: '1' }
    const ended = await runNode([`${file}.mjs`, `${file}.db`], { env, timeoutMs: 30_000 })
    expect(ended.errors).toMatch(says)
    expect(ended.output).not.toContain('ended by SIG')
    expect(ended.code, ended.output).toBe(code)
  })
})
