import { expect, test } from 'vitest'
import { urlInBundle } from '../scripts/bundle.mjs'
import { freshDatabase } from './postgres/shared-postgres.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'

/** A process killed with -9 when a parent's end is on disk and its children are not released yet. */
const processes = useProcesses()

/** The library that the engine chooses, so that the handler's connection and the engine's use the same one. */
const library = urlInBundle('store/sqlite/connection/library.js')
const db = `
const { chooseLibrary } = await import(${JSON.stringify(library)})
const db = new (chooseLibrary().open)(file)
db.exec('pragma journal_mode = wal')
const store = sqlite(db)`

/** `dies` ends the job, and then the process, before anything else can happen. */
const program = (dies: string, more: string): string => `
const extract = job('extract', async (p, ctx) => { ${dies}; return p.n })
const load = job('load', async (p, ctx) => say('loaded', { got: await ctx.results(extract) }))
const mill = await millrace({ store, jobs: [extract, load], logger: false, poll: '30s', lease: '1s' })
${more}
await mill.start()`

const write = `await mill.flow((f) => void f.add(load, {}, { after: [f.add(extract, { n: 7 })] }))`
const look = `
const states = []
for await (const { job, state } of mill.find()) states.push(job + ' ' + state)
say('found', { states })`

async function goesOn(second: Child, found: readonly string[]): Promise<void> {
  expect((await second.receives('found'))['states']).toEqual(expect.arrayContaining([...found]))
  expect((await second.receives('loaded', 25_000))['got']).toEqual([7])
  await second.kill()
}

test('on SQLite leaves a to-do that the next start processes', { timeout: 90_000 }, async () => {
  const dies = `db.exec('begin immediate'); ctx.settleIn(db, p.n); db.exec('commit'); process.kill(process.pid, 'SIGKILL')`
  const first = processes().run(`${db}\n${program(dies, write)}`)
  expect(await first.exited).toBe('SIGKILL')
  await goesOn(processes().run(`${db}\n${program('', look)}`), ['load blocked', 'extract done'])
})

test('on PostgreSQL too', { timeout: 90_000 }, async () => {
  const database = await freshDatabase()
  try {
    const [url, pg] = [`${database.url}?schema=link_crash`, JSON.stringify(import.meta.resolve('pg'))]
    const dies = `
      const client = new (await import(${pg})).default.Client(${JSON.stringify(database.url)})
      await client.connect()
      await client.query('begin')
      await ctx.settleIn(client, p.n)
      await client.query('commit')
      process.kill(process.pid, 'SIGKILL')`
    const first = processes().run(`const store = file\n${program(dies, write)}`, url)
    expect(await first.exited).toBe('SIGKILL')
    // Its own process may have processed the commit in the last moment.
    await goesOn(processes().run(`const store = file\n${program('', look)}`, url), ['extract done'])
  } finally {
    await database.drop()
  }
})
