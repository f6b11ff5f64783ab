// A nightly report that waits for other jobs: each night one import per shop, then one report of all of them.
import { job } from 'millrace'
import { testing } from 'millrace/testing'

const SHOPS = ['oslo', 'bergen', 'tromsø']
const ORDERS = { oslo: 12, bergen: 7, tromsø: 3 }
let bergenIsDown = true

// `unique`: if the process dies after some enqueues, the next attempt gets the handles of the same jobs.
const importOrders = job('import-orders', {
  run: async ({ shop }) => {
    if (shop === 'bergen' && bergenIsDown) throw new Error('bergen does not answer')
    return { shop, orders: ORDERS[shop] }
  },
  retry: { limit: 3, backoff: 'fixed' },
  unique: { by: ['shop', 'day'], for: '1d' },
})

const report = job('report', {
  run: async ({ day }, ctx) => {
    const counts = await ctx.results(importOrders)
    console.log(`${day}: ${counts.map(({ shop, orders }) => `${shop} ${orders}`).join(', ')}`)
  },
  unique: { by: 'day', for: '1d' },
  onParentFailure: 'run', // after the last retry of an import, report without it
})

const nightly = job('nightly', async (_, ctx) => {
  // The day of the tick, not of the clock: a run that is late, or runs again, is still for the same day.
  const day = (ctx.tick?.at ?? new Date()).toISOString().slice(0, 10)
  const imports = []
  for (const shop of SHOPS) imports.push(await ctx.enqueue(importOrders, { shop, day }))
  await ctx.enqueue(report, { day }, { after: imports })
})

// Virtual time, so that nights pass at once. At work it is `millrace({ jobs })` and `mill.start()`.
const t = await testing({ jobs: { importOrders, report, nightly }, now: '2030-01-01T12:00:00Z' })
await t.mill.recurring('nightly', nightly, undefined, '0 2 * * *', { timezone: 'Europe/Oslo' })

await t.advanceTo('2030-01-02T02:00:00Z')
const first = await t.drain()
console.log(`at first ${first.done} are done and ${first.retrying} is retrying`)

bergenIsDown = false
await t.advance('10s')
await t.drain()

bergenIsDown = true
await t.advanceTo('2030-01-03T02:00:00Z')
for (let attempt = 0; attempt < 4; attempt += 1) {
  await t.drain()
  await t.advance('10s')
}
await t.drain()
await t.close()

// prints: at first 3 are done and 1 is retrying
// prints: 2030-01-02: oslo 12, bergen 7, tromsø 3
// prints: 2030-01-03: oslo 12, tromsø 3
