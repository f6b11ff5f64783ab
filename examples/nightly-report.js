// A nightly report: one run per night however many processes there are, declared at every start, caught up after a stop.
import { job } from 'millrace'
import { testing } from 'millrace/testing'

const report = job('report', async ({ of }, ctx) => {
  // The night it is for, however late it runs.
  const night = ctx.tick.at.toISOString().slice(0, 10)
  return `${of}, the night of ${night}`
})

// Virtual time, so that the nights pass at once: it begins on 1 January 2030 at noon (UTC).
const t = await testing({ jobs: [report] })
const { mill } = t

// Make this call at every start. The same id updates it in place; a call that changes nothing writes nothing.
const atStart = () =>
  mill.recurring('nightly', report, { of: 'sales' }, '30 2 * * *', { timezone: 'Europe/Oslo', missed: 'all' })
const { nextAt } = await atStart()
console.log('first at', nextAt.toISOString())

await t.advance('1d')
console.log(await t.consume())

await atStart()
console.log('schedules:', (await mill.schedules.list()).length)

// What will run.
for (const { at, job: name, schedule } of await mill.upcoming('48h'))
  console.log('upcoming:', at.toISOString(), name, `(${schedule})`)

// Run it now, and backfill the days before it existed.
await mill.schedules.runNow('nightly')
console.log(await t.consume())
console.log('backfilled:', await mill.schedules.backfill('nightly', new Date('2029-12-30T00:00:00Z'), t.now))
console.log((await t.drain()).done, 'of them ran')

for (const { at, outcome } of await mill.schedules.ticks('nightly')) console.log('ledger:', at.toISOString(), outcome)
await t.close()

// prints: first at 2030-01-02T01:30:00.000Z
// prints: sales, the night of 2030-01-02
// prints: schedules: 1
// prints: upcoming: 2030-01-03T01:30:00.000Z report (nightly)
// prints: upcoming: 2030-01-04T01:30:00.000Z report (nightly)
// prints: sales, the night of 2030-01-02
// prints: backfilled: 3
// prints: 3 of them ran
// prints: ledger: 2030-01-02T12:00:00.000Z run now
// prints: ledger: 2030-01-02T01:30:00.000Z ran
// prints: ledger: 2030-01-01T01:30:00.000Z backfilled
// prints: ledger: 2029-12-31T01:30:00.000Z backfilled
// prints: ledger: 2029-12-30T01:30:00.000Z backfilled
