// Stopping gives back what is not finished; the next start continues with it. Nothing is lost and no attempt is charged.
import { setTimeout as sleep } from 'node:timers/promises'
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const begun = []
const encode = job('encode', async ({ film, ms }, ctx) => {
  begun.push(film)
  await sleep(ms, undefined, { signal: ctx.signal }) // pass the signal: it is aborted when the deadline has passed
  return `${film} encoded on attempt ${ctx.attempt}`
})

const file = freshFile()
const open = () => millrace({ store: file, jobs: [encode], concurrency: 2, logger: false })

let mill = await open()
const short = await mill.enqueue(encode, { film: 'short', ms: 100 })
const long = await mill.enqueue(encode, { film: 'long', ms: 60_000 })
const waiting = await mill.enqueue(encode, { film: 'waiting', ms: 10 }, { priority: -1 })
await mill.start()
while (begun.length < 2) await sleep(5)

// The short film is done within the deadline; the long one is not, so its signal is aborted and it is given back.
await mill.stop({ deadline: '300ms' })
for (const handle of [short, long]) {
  const { payload, state, attempt } = await handle.get()
  console.log(`${payload.film} is ${state}, attempts that count: ${attempt}`)
}

// The long film is shortened while no worker runs it; then another mill continues with the rest.
await mill.edit(long.id, { payload: { film: 'long', ms: 20 } })
await mill.close()
mill = await open()
await mill.start()
console.log(await mill.handle(long.id).result({ timeout: '10s' }))
console.log(await mill.handle(waiting.id).result({ timeout: '10s' }))
await mill.close()

// prints: short is done, attempts that count: 1
// prints: long is ready, attempts that count: 0
// prints: long encoded on attempt 1
// prints: waiting encoded on attempt 1
