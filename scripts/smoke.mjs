import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { job, millrace } from '../dist/index.js'

/**
 * Runs one job through the built package on a real file, on the Node that starts this, and prints which SQLite library
 * it used. The library is read from the process, not from a version table.
 */
const folder = mkdtempSync(join(tmpdir(), 'millrace-smoke-'))
const hello = job('hello', (name) => Promise.resolve(`hello ${name}`))
const mill = await millrace({ store: join(folder, 'app.db'), jobs: { hello } })
try {
  const handle = await mill.enqueue(hello, 'smoke')
  await mill.start()
  const result = await handle.result({ timeout: '10s' })
  if (result !== 'hello smoke') throw new Error(`expected "hello smoke", got ${JSON.stringify(result)}`)
  console.log(JSON.stringify({ sqlite: await libraryInUse() }))
} finally {
  await mill.stop()
  rmSync(folder, { recursive: true, force: true })
}

async function libraryInUse() {
  const shared = process.report
    .getReport()
    .sharedObjects.find((path) => /[\\/]@photostructure[\\/]sqlite[\\/]/.test(path))
  const name = shared === undefined ? 'node:sqlite' : '@photostructure/sqlite'
  const { DatabaseSync } = shared === undefined ? process.getBuiltinModule('node:sqlite') : await import(name)
  const database = new DatabaseSync(':memory:')
  const { version } = database.prepare('select sqlite_version() as version').get()
  database.close()
  return `${name} ${version}`
}
