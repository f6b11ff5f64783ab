// At most one unfinished job per (job, key): the database enforces it, however many processes enqueue.
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const reindex = job('reindex', async ({ shop, reason }) => `${shop} reindexed: ${reason}`)

const mill = await millrace({ store: freshFile(), jobs: [reindex], logger: false })

// The default: a second enqueue writes nothing and returns the handle of the first.
const first = await mill.enqueue(reindex, { shop: 'oslo', reason: 'new prices' }, { key: 'oslo' })
const second = await mill.enqueue(reindex, { shop: 'oslo', reason: 'new photos' }, { key: 'oslo' })
console.log(`the same job: ${first.id === second.id}, new: ${first.isNew} and ${second.isNew}`)

// 'reject': get an error.
const rejecting = { key: 'oslo', onDuplicate: 'reject' }
await mill.enqueue(reindex, { shop: 'oslo', reason: 'again' }, rejecting).catch((error) => {
  console.log(`${error.code}, held by the first: ${error.existingId === first.id}`)
})

// 'replace': the waiting job is cancelled and the new one takes the key.
const replacing = { key: 'oslo', onDuplicate: 'replace' }
const third = await mill.enqueue(reindex, { shop: 'oslo', reason: 'new everything' }, replacing)
console.log(`the first is ${(await first.get()).state}`)

await mill.start()
console.log(await third.result({ timeout: '10s' }))

// A finished job frees its key.
const fourth = await mill.enqueue(reindex, { shop: 'oslo', reason: 'the day after' }, { key: 'oslo' })
console.log(`new again: ${fourth.isNew}`)
console.log(await fourth.result({ timeout: '10s' }))
await mill.close()

// prints: the same job: true, new: true and false
// prints: E_DUPLICATE_KEY, held by the first: true
// prints: the first is cancelled
// prints: oslo reindexed: new everything
// prints: new again: true
// prints: oslo reindexed: the day after
