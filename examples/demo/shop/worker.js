// One of the shop's four workers: `node worker.js <store> <host>`, started by shop.js.
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

const [store, host] = process.argv.slice(2)
// As if it ran on a machine of that name: before Millrace reads it.
os.hostname = () => host
syncBuiltinESMExports()
const { millrace } = await import('millrace')
const { encryption, redact, shopJobs } = await import('./jobs.js')
const { isBankDown } = await import('./traffic.js')
const { settings } = await import('./settings.js')

const work = (ms, signal) => sleep(ms, undefined, { signal })
const mill = await millrace({ ...settings, store, encryption, redact, jobs: shopJobs({ work, isBankDown }) })

let stopping = false
async function stop() {
  if (stopping) return
  stopping = true
  await mill.close({ deadline: '1s' })
  process.exit(0)
}

// Ctrl-C reaches every process of a terminal; this one waits for the process that started it.
process.on('SIGINT', () => {})
process.on('message', stop)
process.on('disconnect', stop)

await mill.start()
process.send('started')
