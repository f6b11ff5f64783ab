// Unique by what is in the payload: throttle, debounce, and one more after the running job.
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const log = []
const done = async (what) => void log.push(what)

// Throttle: at most one warning a minute for each server, however many alarms there are.
const warn = job('warn', {
  run: async ({ server, load }) => done(`warned of ${server} at ${load} %`),
  unique: { by: 'server', for: '1m' },
})

// Debounce: index a document when it has not changed for 200 ms, and after 2 s at the latest.
const index = job('index', {
  run: async ({ doc, text }) => done(`indexed ${doc}: ${text}`),
  unique: { by: 'doc', for: '2s', onDuplicate: 'reschedule' },
})

// One running and one waiting: the next run sees what changes while it runs. The queue runs one at a time.
let begun, finish
const begins = new Promise((resolve) => (begun = resolve))
const finishes = new Promise((resolve) => (finish = resolve))
const publish = job('publish', {
  run: async ({ site }) => {
    begun()
    await finishes
    await done(`published ${site}`)
  },
  queue: 'sites',
  unique: { by: 'site', while: 'waiting' },
})

const jobs = [warn, index, publish]
const mill = await millrace({ store: freshFile(), jobs, queues: { sites: 1 }, logger: false })

const alarms = [91, 95, 99].map((load) => mill.enqueue(warn, { server: 'oslo', load }))
console.log('warnings let in:', (await Promise.all(alarms)).filter((handle) => handle.isNew).length)

let draft
for (const text of ['d', 'dr', 'draft']) draft = await mill.enqueue(index, { doc: 'a', text }, { in: '200ms' })

await mill.enqueue(publish, { site: 'blog' })
await mill.start()
await begins
const second = await mill.enqueue(publish, { site: 'blog' })
const third = await mill.enqueue(publish, { site: 'blog' })
console.log(`one more may wait: ${second.isNew}, and no third: ${third.isNew}`)
finish()
await second.result({ timeout: '10s' })
await draft.result({ timeout: '10s' })

// The window holds, though the warning was sent long ago.
console.log('warned again:', (await mill.enqueue(warn, { server: 'oslo', load: 100 })).isNew)
// 'reject' throws instead.
await mill.enqueue(warn, { server: 'oslo', load: 100 }, { unique: { onDuplicate: 'reject' } }).catch((error) => {
  console.log(error.code)
})
await mill.close()
for (const line of log.sort()) console.log(line)

// prints: warnings let in: 1
// prints: one more may wait: true, and no third: false
// prints: warned again: false
// prints: E_DUPLICATE_JOB
// prints: indexed a: draft
// prints: published blog
// prints: published blog
// prints: warned of oslo at 91 %
