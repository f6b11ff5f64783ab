import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import { NotifyConnection } from './notify-connection.js'
import { targetOf } from '../connection/target.js'

let database: Awaited<ReturnType<typeof freshDatabase>>
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

/** A world that records the pending timers which keep the process alive. */
function counted() {
  const { timers, ...world } = systemWorld()
  const pending = new Set<number>()
  let made = 0
  const after: typeof timers.after = (ms, callback, options) => {
    const number = (made += 1)
    const forget = (): unknown => pending.delete(number)
    if (options?.idle !== true) pending.add(number)
    const cancel = timers.after(ms, () => (forget(), callback()), options)
    return () => (forget(), cancel())
  }
  return { world: { ...world, timers: { ...timers, after } }, pending }
}

// The heartbeat thread of a worker listens. When it stops, this connection starts to listen, and a mill that closes
// stops it in the middle of that.
test('a connection that is stopped while it connects leaves no timer that keeps the process alive', async () => {
  const target = await targetOf(database.url)
  for (let wait = 0; wait < 40; wait += 1) {
    const { world, pending } = counted()
    const listener = new NotifyConnection(target, world, 'listen nothing', () => undefined)
    listener.on()
    for (let turn = 0; turn < wait; turn += 1) await new Promise((next) => setImmediate(next))
    await listener.off()
    await expect.poll(() => [...pending], { timeout: 2_000 }).toEqual([])
  }
})

// A mill that is not started begins to listen for every result that it awaits.
test('a wrong server is reported once, however often the connection is started', async () => {
  const target = await targetOf(database.url)
  const [reports, made]: [string[], unknown[]] = [[], []]
  const counting = { ...target, makeClient: () => (made.push(1), target.makeClient()) }
  const direct = { check: async () => 'leads elsewhere', report: (wrong: string) => void reports.push(wrong) }
  const listener = new NotifyConnection(counting, systemWorld(), 'listen nothing', () => undefined, direct)
  for (let times = 0; times < 3; times += 1) {
    listener.on()
    await listener.ready
  }
  expect([reports, made.length]).toEqual([['leads elsewhere'], 1])
})
