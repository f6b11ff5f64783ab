import { spawn } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { urlInBundle } from '../scripts/bundle.mjs'
import { useProcesses } from './processes/child.js'

/** E4 and E5 on real processes: kill -9 around the commit of a caller's transaction, many writers, a library too new for its Node. */
const processes = useProcesses()

/** The library that the engine chooses, so that the app's connection and the engine's use the same one. */
const library = urlInBundle('store/sqlite/connection/library.js')
const business = `
const { chooseLibrary } = await import(${JSON.stringify(library)})
const db = new (chooseLibrary().open)(file)
db.exec('pragma busy_timeout = 60000')
for (;;)
  try {
    db.exec('pragma journal_mode = wal; create table if not exists ledger (n integer)')
    break
  } catch (error) {
    // Other processes create or recover the file at this moment: busy_timeout does not wait for that.
    if (!error.message.includes('locked')) throw error
  }
const rows = () => db.prepare('select count(*) as n from ledger').get().n
`

const settling = `
let runs = 0
const work = job('work', async (p, ctx) => {
  runs += 1
  say('ran')
  db.exec('begin immediate')
  db.exec('insert into ledger values (1)')
  ctx.settleIn(db, 'kept')
  if (hangs === 'before') { say('hanging'); await new Promise(() => {}) }
  db.exec('commit')
  if (hangs === 'after') { say('hanging'); await new Promise(() => {}) }
})
const mill = await millrace({ store: sqlite(db), jobs: { work }, logger: false, lease: '1s', poll: '100ms' })
`

describe('kill -9 of a job that settles in a transaction', () => {
  test('after its commit leaves it done, and it does not run again', { timeout: 60_000 }, async () => {
    const first = processes().run(`${business} const hangs = 'after'; ${settling}
      say('id', { id: (await mill.enqueue(work, {})).id })
      await mill.start()`)
    const { id } = await first.receives('id')
    await first.receives('hanging')
    await first.kill()
    const second = processes().run(`${business} const hangs = 'no'; ${settling}
      await mill.start()
      say('result', { result: await mill.handle(${JSON.stringify(id)}).result() })
      // A second job shows that the dead worker's lease was freed, and its settled job was not changed.
      await (await mill.enqueue(work, {})).result({ timeout: '20s' })
      await new Promise((next) => setTimeout(next, 3_000))
      say('end', { rows: rows(), runs })
      await mill.close(); db.close()`)
    expect(await second.receives('result')).toMatchObject({ result: 'kept' })
    expect(await second.receives('end')).toMatchObject({ rows: 2, runs: 1 })
    expect(await second.exited).toBe(0)
  })

  test(
    'before its commit leaves neither its work nor its settlement, and it runs again',
    { timeout: 60_000 },
    async () => {
      const first = processes().run(`${business} const hangs = 'before'; ${settling}
      say('id', { id: (await mill.enqueue(work, {})).id })
      await mill.start()`)
      const { id } = await first.receives('id')
      await first.receives('hanging')
      await first.kill()
      const second = processes().run(`${business} const hangs = 'no'; ${settling}
      say('before', { rows: rows(), state: (await mill.get(${JSON.stringify(id)})).state })
      await mill.start()
      say('result', { result: await mill.handle(${JSON.stringify(id)}).result({ timeout: '40s' }), rows: rows(), runs })
      await mill.close(); db.close()`)
      expect(await second.receives('before')).toMatchObject({ rows: 0, state: 'running' })
      expect(await second.receives('result', 50_000)).toMatchObject({ result: 'kept', rows: 1, runs: 1 })
      expect(await second.exited).toBe(0)
    },
  )
})

test('a handler that closes its tx does not lock the file for other processes', { timeout: 60_000 }, async () => {
  const first = processes().run(`
    const work = job('work', { run: (p, ctx) => ctx.transaction((tx) => { tx.exec('create table t (x)'); tx.close() }), retry: { limit: 0 } })
    const mill = await millrace({ store: file, jobs: { work }, logger: false })
    await mill.start()
    const error = await (await mill.enqueue(work, {})).result({ timeout: '20s' }).catch((thrown) => thrown)
    say('failed', { message: error.message })
    setInterval(() => {}, 1_000)`)
  expect(await first.receives('failed')).toMatchObject({
    message: expect.stringContaining('cannot be closed') as string,
  })
  const second = processes().run(`
    const mill = await millrace({ store: file, logger: false })
    say('written', { isNew: (await mill.enqueue(job('other', () => 1), {})).isNew })
    await mill.close()`)
  expect(await second.receives('written')).toMatchObject({ isNew: true })
  expect(await second.exited).toBe(0)
  await first.kill()
})

test('kill -9 of many enqueuers leaves as many jobs as rows', { timeout: 90_000 }, async () => {
  const program = (n: number): string => `${business}
    const mail = job('mail', () => 1)
    const mill = await millrace({ store: sqlite(db), jobs: { mail }, logger: false })
    for (let i = 0; ; i += 1) {
      db.exec('begin immediate')
      db.exec('insert into ledger values (${n})')
      mill.enqueue(mail, { i }, { tx: db, queue: 'q' + (i % 7) })
      db.exec(i % 5 === 4 ? 'rollback' : 'commit')
      if (i === 50) say('going')
      // SQLite does not queue waiting writers: without a pause one of three can starve.
      await new Promise((next) => setTimeout(next, 1))
    }`
  for (let round = 0; round < 3; round += 1) {
    const children = [0, 1, 2].map((n) => processes().run(program(n)))
    await Promise.all(children.map((each) => each.receives('going')))
    for (const each of children) await each.kill()
  }
  const look = processes().run(`${business}
    const mill = await millrace({ store: sqlite(db), logger: false })
    let jobs = 0
    for await (const found of mill.find()) jobs += found.state === 'ready' ? 1 : 1_000_000
    say('counted', { jobs, rows: rows() })
    await mill.close(); db.close()`)
  const { jobs, rows } = (await look.receives('counted')) as unknown as { jobs: number; rows: number }
  expect(jobs).toBe(rows)
  expect(rows).toBeGreaterThan(3 * 3 * 40)
})

test('better-sqlite3 13 opens on Node 22.14 and newer, and on an older one ends the process before Millrace is called', async () => {
  const program = `const Database = require('better-sqlite3'); console.log('loaded'); new Database(':memory:'); console.log('opened')`
  const child = spawn(process.execPath, ['-e', program], {
    cwd: `${import.meta.dirname}/..`,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  child.stdout.on('data', (data: Buffer) => (said += data.toString()))
  const code = await new Promise((resolve) => child.once('close', resolve))
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isNewEnough = major > 22 || (major === 22 && minor >= 14)
  expect([said.split('\n').includes('opened'), code === 0]).toEqual([isNewEnough, isNewEnough])
  // Millrace cannot check a handle that is never created; the guide says so, and this test fails when that changes.
  expect(said).toContain('loaded')
})
