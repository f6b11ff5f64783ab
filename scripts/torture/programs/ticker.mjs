import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * A typical process with recurring jobs: it declares the schedules at every start, and runs their jobs. It will
 * be killed, so its runs are recorded at once.
 *
 * It sends `up`; it receives `close`.
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
orders.on('close', () => process.exit(1)) // The supervisor has ended: no process may be left behind.
orders.on('line', (word) => {
  if (word === 'close') void mill.close().then(() => process.exit(0))
})
await mill.start()
for (const [id, { rule, options }] of Object.entries(config.schedules))
  await mill.recurring(id, note, null, rule, options)
writeSync(1, 'up\n')
