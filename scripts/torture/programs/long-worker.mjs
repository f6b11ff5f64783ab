import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * A process that runs workflows and sequences, and enqueues new ones. Every act is a line in the diary, which outlives the
 * process; the results of steps are random words, so that a step whose result was lost or doubled cannot look right.
 */
const { entry, store, diary, life } = JSON.parse(process.argv[2])
const { event, job, millrace, workflow } = await import(entry)
const ITEMS = 60

const note = (...words) => appendFileSync(diary, `${words.join(' ')}\n`)
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const word = () => Math.random().toString(36).slice(2)
const act = (s, ms) => async () => {
  const said = word()
  await wait(Math.random() * ms)
  note('act', s.workflow, s.id, said)
  return said
}

const approved = event('approved')

const child = job('child', async (n, ctx) => {
  await wait(Math.random() * 10)
  note('child', ctx.id)
  return n * 2
})

const order = workflow('order', async ({ n }, w) => {
  const first = await w.step('reserve', (s) => act(s, 10)())
  const booked = await w.transaction('book', (tx) => book(tx, w.id))
  const { stock, price } = await w.all({
    stock: (w) => w.step('look', (s) => act(s, 10)()),
    price: async (w) => {
      await w.sleep(5)
      return w.step('look', (s) => act(s, 10)())
    },
  })
  const answer = await w.waitFor(approved, { timeout: '10m' })
  const doubled = await w.call(child, n)
  await w.sleep(Math.floor(w.random() * 40))
  const names = ['a', 'b', 'c']
  const said = await Promise.all(names.map(() => w.step('same', (s) => act(s, 5)())))
  return { first, booked, stock, price, by: answer.by, doubled, said }
})

const list = job('list', async (n, ctx) => {
  note('item', ctx.sequence.id, n)
  await wait(Math.random() * 5)
  return { n, previous: ctx.sequence.previous?.n ?? null }
})

/** One row for each commit: a booking that is repeated or lost is seen in the table. */
function book(tx, id) {
  if (typeof tx.query === 'function')
    return tx.query('insert into public.bookings (workflow) values ($1)', [id]).then(() => 'booked')
  tx.prepare('insert into bookings (workflow) values (?)').run(id)
  return 'booked'
}

const mill = await millrace({ store, jobs: [order, child, list], logger: false, poll: '200ms', lease: '3s' })
await mill.start()
console.log('up')

let isProducing = true
const orders = createInterface({ input: process.stdin })
orders.on('close', () => process.exit(1)) // The supervisor has ended: no process may be left behind.
orders.on('line', (word) => {
  isProducing = false
  if (word === 'close') void mill.close().then(() => process.exit(0))
})

for (let n = 0; isProducing; n += 1) {
  const key = `${life}-${n}`
  const { id } = await mill.enqueue(order, { n }, { key })
  note('order', id, n, key)
  // Sent twice, as by a second click; at times long before the workflow waits for it, at times long after.
  const send = () => mill.send(id, approved, { by: key }, { id: `click-${key}` })
  void wait(Math.random() * 400)
    .then(() => Promise.all([send(), send()]))
    .then((sent) => note('sent', id, sent.filter(Boolean).length))
    .catch((error) => note('trouble', error.message))
  if (n % 20 === 0) {
    const sequence = await mill.sequence(
      list,
      Array.from({ length: ITEMS }, (_, i) => i),
    )
    note('sequence', sequence.id, ITEMS)
  }
  await wait(20 + Math.random() * 60)
}
