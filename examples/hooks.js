// Your code around enqueue, start and settle.
import { AsyncLocalStorage } from 'node:async_hooks'
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const connection = new AsyncLocalStorage()
let connections = 0

const report = job('report', {
  run: async ({ month }, ctx) => {
    if (ctx.attempt === 1) throw new Error('the printer is out of paper')
    return `${month} by ${connection.getStore()}`
  },
  retry: { limit: 2, backoff: { start: '10ms' } },
})

let left = 3
const quota = {
  // Around the call: refuse by throwing, or override options of the caller.
  enqueue(call, next) {
    if (call.items.length > left) throw new Error(`${call.verb} of ${call.items.length} is over the quota`)
    left -= call.items.length
    return next({ labels: ['metered'] })
  },
}

const database = {
  // Around the handler: set up what it needs before, and remove it after.
  async start(ctx, next) {
    await connection.run(`connection ${(connections += 1)}`, next)
  },
}

let allTold
const told = new Promise((resolve) => (allTold = resolve))
const metrics = {
  // After the end of an attempt is on disk.
  settle(job, end) {
    console.log(`${job.job} attempt ${job.attempt}: ${end.state}${end.error ? `, ${end.error.message}` : ''}`)
    if (end.state === 'done') allTold()
  },
}

const mill = await millrace({ store: freshFile(), jobs: [report], hooks: [quota, database, metrics], logger: false })
await mill.start()

const handle = await mill.enqueue(report, { month: 'May' })
await told
console.log(await handle.result({ timeout: '10s' }))
console.log((await handle.get()).labels)

const months = ['June', 'July', 'August'].map((month) => ({ month }))
await mill.enqueueMany(report, months).catch((error) => console.log(error.message))

await mill.close()

// prints: report attempt 1: retrying, the printer is out of paper
// prints: report attempt 2: done
// prints: May by connection 2
// prints: [ 'metered' ]
// prints: enqueueMany of 3 is over the quota
