// A contact archive: a long list in order, with progress, a pause, an item that fails, and a second run.
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

let isMailboxFull = true
const archive = job('archive', {
  retry: { limit: 0 },
  run: async (contact, ctx) => {
    const { index, total, previous } = ctx.sequence
    ctx.log(`${index + 1} of ${total}, after ${previous ?? 'nothing'}`)
    if (contact.name === 'contact 70' && isMailboxFull) throw new Error('the mailbox is full')
    return contact.name
  },
})

const store = freshFile()
const mill = await millrace({ store, jobs: [archive], logger: false })
// Another process would do the same: a sequence is commanded from anywhere.
const app = await millrace({ store, jobs: [archive], logger: false })

const contacts = Array.from({ length: 100 }, (_, i) => ({ name: `contact ${i}` }))
const { id } = await mill.sequence(archive, contacts, { key: 'archive-42', start: false })
const sequence = app.sequence(id)
const again = await app.sequence(archive, [], { key: 'archive-42' })
console.log('the same sequence:', again.id === id, 'new:', again.isNew)
console.log(await sequence.progress())

await mill.start()
await sequence.start()
await until(({ done }) => done > 10)
console.log('pause:', await sequence.pause())
await until(({ state }) => state === 'paused')
const { done } = await sequence.progress()
console.log('recorded while it is paused:', (await sequence.output()).length === done)
console.log('pause again:', await sequence.pause(), 'resume:', await sequence.resume())

await until(({ state }) => state === 'failed')
const { error, ...failed } = await sequence.progress()
console.log(failed, error.message, 'at', error.index)

isMailboxFull = false
console.log('resume:', await sequence.resume())
console.log(await sequence.result({ timeout: '10s' }))
const [last] = await sequence.output({ from: 99 })
console.log(last.index, last.result, last.log)

console.log('reset:', await sequence.reset(), await sequence.progress())
await Promise.all([mill.close(), app.close()])

async function until(isSo) {
  while (!isSo(await sequence.progress())) await new Promise((next) => setTimeout(next, 5))
}

// prints: the same sequence: true new: false
// prints: { state: 'waiting', done: 0, total: 100 }
// prints: pause: true
// prints: recorded while it is paused: true
// prints: pause again: false resume: true
// prints: { state: 'failed', done: 70, total: 100 } the mailbox is full at 70
// prints: resume: true
// prints: { done: 100, total: 100 }
// prints: 99 contact 99 [ '100 of 100, after contact 98' ]
// prints: reset: true { state: 'waiting', done: 0, total: 100 }
