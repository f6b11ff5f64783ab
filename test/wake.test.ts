import { mkdirSync, rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { urlInBundle } from '../scripts/bundle.mjs'
import { useProcesses } from './processes/child.js'
import type { Child, Message } from './processes/child.js'
import { onPostgres, UNFLUSHED } from './support/fresh-store.js'

/**
 * X13 on real processes: a commit of one wakes the others. Every poll here is a minute, so only a notification explains what starts
 * sooner; times are bounded generously, because the machine may be busy with other tests.
 */
const processes = useProcesses()

const SOON_MS = 20_000
const LIBRARY = urlInBundle('store/sqlite/connection/library.js')
const NO_WATCH = `
  const fs = (await import('node:fs')).default
  fs.watch = () => { throw Object.assign(new Error('ENOSPC: no watches left'), { code: 'ENOSPC' }) }
  ;(await import('node:module')).syncBuiltinESMExports()`

const worker = (options = '', before = ''): string => `${before}
  const work = job('work', async (p) => { say('ran', { n: p.n }); return p.n * 2 })
  const mill = await millrace({ store: file, jobs: { work }, poll: '60s', ${options}
    logger: { debug() {}, info() {}, error: (_, m) => say('error', { m }), warn: (_, m) => say('warned', { m }) } })
  await mill.start(); say('up')`

const producer = (does: string, options = ''): string => `
  const work = job('work', async () => {})
  const mill = await millrace({ store: file, jobs: { work }, poll: '60s', logger: false, ${options} })
  ${does}
  say('did')`

async function started(program: string): Promise<Child> {
  const child = processes().run(program)
  await child.receives('up')
  return child
}

/** Far sooner than the poll. */
const expectSoon = (child: Child, what: string): Promise<Message> => child.receives(what, SOON_MS)

describe('what one process commits', () => {
  test('is started by an idle worker of another at once', async () => {
    const idle = await started(worker())
    processes().run(producer(`await mill.enqueue(work, { n: 1 })`))
    expect(await expectSoon(idle, 'ran')).toMatchObject({ n: 1 })
  })

  test('is started again and again, also after a long quiet', { timeout: 60_000 }, async () => {
    const idle = await started(worker())
    const other = processes().run(
      producer(`
      for (let n = 0; n < 20; n += 1) {
        const handle = await mill.enqueue(work, { n })
        say('result', { result: await handle.result({ timeout: '4s' }) })
        await new Promise((next) => setTimeout(next, n === 10 ? 3_000 : 20 * n))
      }`),
    )
    await other.receives('did', 50_000)
    expect(other.messages.filter((said) => said.what === 'result').map((said) => said['result'])).toEqual(
      Array.from({ length: 20 }, (_, n) => n * 2),
    )
    expect(idle.messages.filter((said) => said.what === 'ran')).toHaveLength(20)
  })

  test('is promoted in time by another, though it is due sooner than any job known there', async () => {
    const idle = await started(worker())
    processes().run(
      producer(`await mill.schedule(work, { n: 1 }, '50s'); await mill.schedule(work, { n: 2 }, '300ms')`),
    )
    expect(await expectSoon(idle, 'ran')).toMatchObject({ n: 2 })
  })

  test.skipIf(onPostgres)('on a connection of another program is found by its write to the WAL', async () => {
    const idle = await started(worker())
    // A copy of what the engine writes, by a plain connection that sends no notification.
    const other = processes().run(`
      const { chooseLibrary } = await import(${JSON.stringify(LIBRARY)})
      const { open } = chooseLibrary()
      const db = new open(file)
      db.exec("insert into millrace_lanes (queue, name) values ('default', 'work') on conflict do nothing")
      db.exec(\`begin immediate;
        insert into millrace_jobs (id, lane, priority, payload, created_at)
          select '0198a000-0000-7000-8000-000000000001', lane, 0, '{"n":7}', unixepoch() * 1000 from millrace_lanes where name = 'work';
        insert into millrace_live (seq, lane, state, sort, due_at)
          select seq, lane, 'ready', 0, 0 from millrace_jobs;
        commit\`)
      say('did')`)
    await other.receives('did')
    expect(await expectSoon(idle, 'ran')).toMatchObject({ n: 7 })
  })
})

// On PostgreSQL: test/postgres-wake.test.ts.
describe.skipIf(onPostgres)('a notification that is lost', () => {
  test('because the wake file was removed costs nothing: the file is created again, or the commit is found by the WAL', async () => {
    const idle = await started(worker())
    rmSync(`${processes().file}-wake`)
    processes().run(producer(`await mill.enqueue(work, { n: 1 })`))
    expect(await expectSoon(idle, 'ran')).toMatchObject({ n: 1 })
  })

  test('because something else has the wake file’s name costs nothing either', async () => {
    mkdirSync(`${processes().file}-wake`)
    const idle = await started(worker())
    processes().run(producer(`await mill.enqueue(work, { n: 1 })`))
    expect(await expectSoon(idle, 'ran')).toMatchObject({ n: 1 })
    expect(idle.messages.map((said) => said.what)).not.toContain('error')
  })

  test('because nothing can be watched costs one poll at most, and is logged once', async () => {
    const deaf = await started(worker(`poll: '500ms',`, NO_WATCH))
    expect(await deaf.receives('warned')).toMatchObject({
      m: expect.stringMatching(/cannot be watched.*no watches left/),
    })
    for (let n = 0; n < 3; n += 1) {
      const other = processes().run(producer(`await mill.enqueue(work, { n: ${n} }); await mill.close()`))
      await other.receives('did')
    }
    await expect.poll(() => deaf.messages.filter((said) => said.what === 'ran').length, { timeout: 10_000 }).toBe(3)
    expect(deaf.messages.filter((said) => said.what === 'warned')).toHaveLength(1)
  })
})

test('a mill that was started and closed lets the process end', async () => {
  const child = processes().run(`${worker()}; await mill.close(); say('closed')`)
  await child.receives('closed')
  expect(await child.exited).toBe(0)
})

test('a mill that only enqueues and waited for a result lets the process end without being closed', async () => {
  await started(worker())
  const child = processes().run(
    producer(`say('result', { result: await (await mill.enqueue(work, { n: 21 })).result() })`),
  )
  expect(await child.receives('result')).toMatchObject({ result: 42 })
  expect(await child.exited).toBe(0)
})

test(
  'eight processes that enqueue to and work on one store lose nothing, run nothing twice and get no error',
  { timeout: 120_000 },
  async () => {
    const program = (who: number): string => `
      const ran = [], troubles = []
      const note = (fields, m) => m.endsWith(${JSON.stringify(UNFLUSHED)}) || troubles.push(m + ' ' + JSON.stringify(fields))
      const work = job('work', async (p) => { ran.push(p.n) })
      const mill = await millrace({ store: file, jobs: { work }, logger: { debug() {}, info() {}, warn: note, error: note } })
      await mill.start()
      let sent = 0
      const end = Date.now() + 3_000
      while (Date.now() < end) {
        await Promise.all([mill.enqueue(work, { n: '${who}-' + sent++ }), mill.enqueue(work, { n: '${who}-' + sent++ })])
        if (sent % 10 === 0) await mill.enqueueMany(work, Array.from({ length: 10 }, () => ({ n: '${who}-' + sent++ })))
        await new Promise((next) => setTimeout(next, Math.random() * 20))
      }
      for (;;) {
        let left = 0
        for await (const _ of mill.find({ state: ['ready', 'running', 'retrying', 'scheduled'], limit: 1 })) left += 1
        if (left === 0) break
        await new Promise((next) => setTimeout(next, 100))
      }
      await mill.close()
      say('ended', { ran, sent, troubles })`
    const children = Array.from({ length: 8 }, (_, who) => processes().run(program(who)))
    const ends = (await Promise.all(children.map((child) => child.receives('ended', 100_000)))) as unknown as {
      ran: string[]
      sent: number
      troubles: string[]
    }[]
    expect(ends.flatMap((end) => end.troubles)).toEqual([])
    const expected = ends.flatMap((end, who) => Array.from({ length: end.sent }, (_, n) => `${who}-${n}`))
    expect(ends.flatMap((end) => end.ran).sort()).toEqual(expected.sort())
    expect(await Promise.all(children.map((child) => child.exited))).toEqual(Array(8).fill(0))
  },
)
