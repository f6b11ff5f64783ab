// Categories: shared options, a fallback handler, and a way to find jobs.
import { category, job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const notification = category('notification', {
  queue: 'notify',
  retry: { limit: 5 },
  // Runs the jobs of this category that have no handler of their own.
  run: async ({ to }, ctx) => `${to} gets "${ctx.job}" in the app`,
})
const urgent = category('urgent', { priority: 10, retry: { backoff: 'fixed' } })

const sendSms = job('send-sms', { run: async ({ to }) => `${to} gets a text message`, is: [urgent, notification] })
const likeReceived = job('like-received', { is: [notification] })
const tidyUp = job('tidy-up', async () => 'tidied')

const mill = await millrace({ store: freshFile(), jobs: { sendSms, likeReceived, tidyUp }, logger: false })

for (const { name, queue, priority, retryLimit, categories } of mill.jobs())
  console.log(`${name}: queue ${queue}, priority ${priority}, ${retryLimit} retries, is [${categories.join(', ')}]`)

await mill.start()
const like = await mill.enqueue(likeReceived, { to: 'Ada' })
const sms = await mill.enqueue(sendSms, { to: 'Grace' })
const tidy = await mill.enqueue(tidyUp)
for (const handle of [like, sms, tidy]) console.log(await handle.result({ timeout: '10s' }))

const found = []
for await (const record of mill.find({ job: notification, order: 'oldest' })) found.push(record.job)
console.log('notifications:', found.join(', '))
await mill.close()

// prints: send-sms: queue notify, priority 10, 5 retries, is [urgent, notification]
// prints: like-received: queue notify, priority 0, 5 retries, is [notification]
// prints: tidy-up: queue default, priority 0, 25 retries, is []
// prints: Ada gets "like-received" in the app
// prints: Grace gets a text message
// prints: tidied
// prints: notifications: like-received, send-sms
