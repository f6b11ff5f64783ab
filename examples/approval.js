// An order that a person must approve: steps, an event that comes early or late, a reminder, a timeout.
import { event, millrace, TimeoutError, workflow } from 'millrace'
import { freshFile } from './fresh-file.js'

const decided = event('decided')

const order = workflow('order', async ({ item, patience }, w) => {
  const stock = await w.step('reserve', () => `a ${item} from shelf 4`)
  try {
    const { by, yes } = await w.waitFor(decided, { timeout: patience })
    if (!yes) return `${by} refused ${stock}`
    const receipt = await w.step('charge', (s) => `receipt ${s.attempt} for ${stock}`)
    await w.sleep(20)
    return `${by} approved: ${receipt}`
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error
    await w.step('put back', () => undefined)
    return `nobody decided: ${stock} was put back`
  }
})

const store = freshFile()
const mill = await millrace({ store, jobs: [order], logger: false, poll: '20ms' })
await mill.start()

// The worker stops while the order waits. Nothing is lost: the wait is a row of the database.
const lamp = await mill.enqueue(order, { item: 'lamp', patience: '7d' }, { key: 'order-1' })
await until(async () => (await lamp.get())?.state === 'blocked')
console.log(
  'it waits for:',
  (await lamp.get()).workflow.waitingFor.map(({ event }) => event),
)
await mill.close()

// Another process: it sends, and later runs the rest.
const second = await millrace({ store, jobs: [order], logger: false, poll: '20ms' })
const click = { id: 'click-1' }
console.log('sent:', await second.send([order, 'order-1'], decided, { by: 'Ann', yes: true }, click))
console.log('sent again:', await second.send([order, 'order-1'], decided, { by: 'Ann', yes: true }, click))
await second.start()
console.log(await second.handle(lamp.id).result({ timeout: '10s' }))
for (const { address, state } of await second.steps(lamp.id)) console.log(' ', address, state)

// An event that comes before anyone waits for it is kept.
const chair = await second.enqueue(order, { item: 'chair', patience: '7d' }, { in: 50 })
await second.send(chair, decided, { by: 'Bob', yes: false })
console.log(await chair.result({ timeout: '10s' }))

const desk = await second.enqueue(order, { item: 'desk', patience: 30 })
console.log(await desk.result({ timeout: '10s' }))
console.log('sent to one that has ended:', await second.send(desk, decided, { by: 'Ann', yes: true }))
await second.close()

async function until(isSo) {
  while (!(await isSo())) await new Promise((next) => setTimeout(next, 5))
}

// prints: it waits for: [ 'decided' ]
// prints: sent: true
// prints: sent again: false
// prints: Ann approved: receipt 1 for a lamp from shelf 4
// prints:   /step:reserve#0 done
// prints:   /wait:decided#0 done
// prints:   /step:charge#0 done
// prints:   /sleep:#0 done
// prints: Bob refused a chair from shelf 4
// prints: nobody decided: a desk from shelf 4 was put back
// prints: sent to one that has ended: false
