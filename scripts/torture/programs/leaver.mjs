import { createRequire } from 'node:module'
import { writeSync } from 'node:fs'

/**
 * A process that ends in the middle of its work: two mills on one store, with a lease so short that heartbeats are written all the
 * time, and with jobs that enqueue jobs. It sends `up` when both have started. It ends in the given way, a given time after
 * its imports, or after `up`.
 */
const MILLS = 2
const { entry, target, driver, way, since, afterMs } = JSON.parse(process.argv[2])
const WAYS = {
  exit: () => process.exit(7),
  throw: () => {
    throw new Error('told to end')
  },
  reject: () => void Promise.reject(new Error('told to end')),
  signal: () => process.kill(process.pid, 'SIGTERM'),
  close: () => Promise.all(mills.map((mill) => mill.close())).then(() => process.exit(0)),
}
const mills = []
const { millrace, sqlite, job } = await import(entry)
const store = driver === 'default' ? target : sqlite(open(driver, target))
const leave = () => setTimeout(() => WAYS[way](), afterMs)
if (since === 'imports') leave()

for (let n = 0; n < MILLS; n += 1) {
  const again = job('again', async (_, ctx) => {
    await new Promise((next) => setTimeout(next, 5))
    await ctx.enqueue(again, null)
  })
  const mill = await millrace({ store, jobs: { again }, lease: '500ms', poll: '50ms', logger: false })
  mills.push(mill)
  await mill.start()
  await mill.enqueue(again, null)
}
writeSync(1, 'up\n')
if (since === 'up') leave()

function open(name, path) {
  const Database = createRequire(entry)(name)
  return new Database(path)
}
