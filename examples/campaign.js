// A marketing campaign: one group for all its mails and texts, its progress, and one report, when the last one is sent.
import { Abort, job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const mail = job('mail', {
  queue: 'mail',
  run: async ({ to }) => {
    if (to === 'gone@example.com') throw new Abort('no such mailbox')
    return `mailed ${to}`
  },
})

// A running member may still add to its group, after the seal too: here one text for each number of a household.
const text = job('text', { queue: 'sms', run: async ({ number }) => `texted ${number}` })
const household = job('household', {
  queue: 'sms',
  run: async ({ numbers, campaign }, ctx) => {
    for (const number of numbers) await ctx.enqueue(text, { number }, { group: campaign })
  },
})

const report = job('report', async ({ campaign }) => {
  const { total, done, failed, queues } = await mill.group(campaign).progress()
  return `${campaign}: ${done} of ${total} are out, ${failed} failed; ${queues.mail.done} mails, ${queues.sms.done} in sms`
})

const mill = await millrace({ store: freshFile(), jobs: [mail, text, household, report], logger: false })

const spring = mill.group('spring', { whenDone: [report, { campaign: 'spring' }, { key: 'spring' }] })
const recipients = Array.from({ length: 500 }, (_, i) => ({ to: `${i}@example.com` }))
await mill.enqueueMany(mail, [...recipients, { to: 'gone@example.com' }], { group: 'spring' })
await mill.enqueue(household, { numbers: [1, 2, 3], campaign: 'spring' }, { group: 'spring' })

// A mistake was found: pause everything, and resume it.
console.log('paused:', await spring.pause())
console.log('resumed:', await spring.resume())

// No more members. From here on only running members may add.
console.log('sealed:', await spring.seal())
await mill.enqueue(mail, { to: 'late@example.com' }, { group: 'spring' }).catch((error) => console.log(error.code))

const { total, unfinished } = await spring.progress()
console.log(`before the start: ${unfinished} of ${total} to go`)
await mill.start()
while ((await spring.progress()).completedAt === undefined) await new Promise((next) => setTimeout(next, 10))

for await (const { id } of mill.find({ job: report })) console.log(await mill.handle(id).result({ timeout: '10s' }))
await mill.close()

// prints: paused: 502
// prints: resumed: 502
// prints: sealed: true
// prints: E_GROUP_SEALED
// prints: before the start: 502 of 502 to go
// prints: spring: 504 of 505 are out, 1 failed; 500 mails, 4 in sms
