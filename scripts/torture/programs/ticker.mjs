import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * A process as users have them with recurring jobs: it says at every start what recurs, and runs what comes of it. It is made
 * to be killed, so its runs are written down at once.
 *
 * It says `up`; it is told `close`.
 */
const config = JSON.parse(process.argv[2])
const { millrace, job } = await import(config.entry)
const diary = openSync(config.diary, 'a')

const write = (word, { tick, id }) => writeSync(diary, `${word} ${tick.schedule} ${tick.at.getTime()} ${id}\n`)
const note = job('note', async (_, ctx) => {
  write('begins', ctx)
  // Long enough that some are killed while they run, and that those of two ticks would overlap where they may.
  await new Promise((resolve) => setTimeout(resolve, 30))
  write('ends', ctx)
})
const mill = await millrace({ store: config.store, jobs: { note }, lease: '1s', poll: '100ms', logger: false })
const orders = createInterface({ input: process.stdin })
orders.on('close', () => process.exit(1)) // The supervisor is gone: nobody must be left behind.
orders.on('line', (word) => {
  if (word === 'close') void mill.close().then(() => process.exit(0))
})
await mill.start()
for (const [id, { rule, options }] of Object.entries(config.schedules))
  await mill.recurring(id, note, null, rule, options)
writeSync(1, 'up\n')
