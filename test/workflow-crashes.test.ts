import { describe, expect, test } from 'vitest'
import { useProcesses } from './processes/child.js'
import { onPostgres } from './support/fresh-store.js'

/** Workflows in processes that are killed. The numbers are those of the acceptance tests of long work. */
const processes = useProcesses()

/** Rounds of kill -9 at random moments. */
const KILLS = 4

const APP = `
const { workflow } = front
const wait = (ms) => new Promise((next) => setTimeout(next, ms))
const make = (booked) => workflow('order', async (n, w) => {
  const seen = []
  const branch = async (mark) => {
    for (let i = 0; i < 4; i += 1)
      seen.push(await w.step('load', async (s) => { say('act', { n, id: s.id }); await wait(5 + ((n * 7 + mark * 13 + i * 5) % 20)); return mark }))
  }
  await Promise.all([branch(0), branch(1), branch(2)])
  await w.sleep(30)
  for (let i = 0; i < 3; i += 1) await w.transaction('book', (tx) => booked(tx, n, i))
  const error = await w.step('bad', { retry: { limit: 0 } }, () => { throw Object.assign(new TypeError('bad'), { code: 'E_OWN' }) }).catch((caught) => caught)
  return { seen: seen.toSorted(), error: [error.code, error.cause.name, error.cause.code, error.cause.message] }
})
`

describe('Workflows of a worker that is killed with -9 again and again', () => {
  test.skipIf(onPostgres)(
    '4, 26, 28, 38: LW8, LW27, LW29, LW42: each branch gets its own values, and rows of transactions come once',
    { timeout: 120_000 },
    async () => {
      const program = `${APP}
      const order = make((tx, n, i) => { tx.exec('create table if not exists bookings (n, i)'); tx.prepare('insert into bookings values (?, ?)').run(n, i) })
      const mill = await millrace({ store: file, jobs: [order], logger: false, poll: '50ms', lease: '1s', crashBudget: 100 })
      `
      const first = processes().run(`${program}
      await mill.enqueueMany(order, Array.from({ length: 10 }, (_, n) => n)); say('enqueued'); await mill.close()`)
      await first.receives('enqueued')
      await first.exited
      for (let kill = 0; kill < KILLS; kill += 1) {
        const victim = processes().run(`${program} await mill.start(); say('up')`)
        await victim.receives('up')
        await new Promise((next) => setTimeout(next, 40 + kill * 35))
        await victim.kill()
      }
      const last = processes().run(`${program} await mill.start()
      const results = []
      for await (const found of mill.find({ order: 'oldest' })) results.push(await mill.handle(found.id).result({ timeout: '60s' }))
      let rows = []
      const read = job('read', (_, ctx) => ctx.transaction((tx) => tx.prepare('select n, i from bookings order by n, i').all().map((r) => [r.n, r.i])))
      mill.register(read)
      rows = await (await mill.enqueue(read)).result({ timeout: '20s' })
      say('end', { results, rows }); await mill.close()`)
      const { results, rows } = (await last.receives('end', 90_000)) as unknown as {
        results: { seen: number[]; error: string[] }[]
        rows: [number, number][]
      }
      expect(results).toHaveLength(10)
      for (const { seen, error } of results) {
        expect(seen).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
        expect(error).toEqual(['E_STEP_FAILED', 'TypeError', 'E_OWN', 'bad'])
      }
      expect(rows).toEqual(Array.from({ length: 30 }, (_, k) => [Math.floor(k / 3), k % 3]))
      expect(await last.exited).toBe(0)
    },
  )
})
