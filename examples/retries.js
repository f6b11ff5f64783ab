// What a handler's errors mean: retry, Abort (fail at once), Snooze (retry later), or treated as done.
import { Abort, Snooze, job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const fetchRates = job('fetch-rates', {
  run: async (_, ctx) => {
    if (ctx.attempt < 3) throw new Error(`503 from the bank (attempt ${ctx.attempt})`)
    return `got the rates on attempt ${ctx.attempt}`
  },
  retry: { limit: 5, backoff: { start: '50ms', factor: 2, max: '1s' } },
})

const chargeCard = job('charge-card', async () => {
  throw new Abort('the card was reported stolen') // no retry will help
})

const readyAt = Date.now() + 150
const awaitExport = job('await-export', async (_, ctx) => {
  if (Date.now() < readyAt) throw new Snooze('100ms') // not ready yet: no attempt is charged
  return `the export was ready; attempts that count: ${ctx.attempt}`
})

const createUser = job('create-user', {
  run: async () => {
    throw Object.assign(new Error('409 Conflict'), { status: 409 })
  },
  treatAsDone: (error) => error.status === 409, // it exists already, which is the intended result
})

const jobs = [fetchRates, chargeCard, awaitExport, createUser]
const mill = await millrace({ store: freshFile(), jobs, logger: false })
await mill.start()

const rates = await mill.enqueue(fetchRates)
console.log(await rates.result({ timeout: '10s' }))
for (const attempt of (await rates.get()).attempts) console.log(' ', attempt.error?.message ?? 'ok')

const charge = await mill.enqueue(chargeCard)
await charge.result({ timeout: '10s' }).catch((error) => console.log(`${error.code}: ${error.cause.message}`))

console.log(await (await mill.enqueue(awaitExport)).result({ timeout: '10s' }))

const user = await mill.enqueue(createUser)
await user.result({ timeout: '10s' })
console.log(`create-user is ${(await user.get()).state}: ${(await user.get()).reason}`)

await mill.close()

// prints: got the rates on attempt 3
// prints:   503 from the bank (attempt 1)
// prints:   503 from the bank (attempt 2)
// prints:   ok
// prints: E_JOB_FAILED: the card was reported stolen
// prints: the export was ready; attempts that count: 1
// prints: create-user is done: treated as done: 409 Conflict
