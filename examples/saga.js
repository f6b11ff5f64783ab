// A journey of three bookings: when one fails, or the whole is cancelled, what was booked is undone, in reverse.
import { Abort, millrace, workflow } from 'millrace'
import { freshFile } from './fresh-file.js'

const booked = new Set()
const book = (what) => {
  if (what === 'a full hotel') throw new Abort('no room is free')
  booked.add(what)
  return what
}

const journey = workflow('journey', async ({ parts, wait }, w) => {
  const undo = []
  try {
    for (const part of parts) {
      const booking = await w.step('book', { key: part }, () => book(part))
      undo.unshift(booking)
    }
    await w.sleep(wait)
    return await w.step('pay', () => 'paid')
  } catch (error) {
    // Verbs inside of cleanup work after a cancel too.
    await w.cleanup(async (w) => {
      for (const booking of undo) await w.step('undo', { key: booking }, () => booked.delete(booking))
    })
    throw error
  }
})

const mill = await millrace({ store: freshFile(), jobs: [journey], logger: false, poll: '20ms' })
await mill.start()

const good = await mill.enqueue(journey, { parts: ['a flight', 'a hotel', 'a car'], wait: 10 })
console.log(await good.result({ timeout: '10s' }), [...booked])
booked.clear()

const bad = await mill.enqueue(journey, { parts: ['a flight', 'a full hotel', 'a car'], wait: 10 })
await bad.result({ timeout: '10s' }).catch((error) => console.log('failed:', error.message.includes('no room is free')))
await tell(bad.id)

const dropped = await mill.enqueue(journey, { parts: ['a train', 'a tent'], wait: '1h' })
while ((await dropped.get()).state !== 'scheduled') await new Promise((next) => setTimeout(next, 5))
console.log('booked:', [...booked], 'cancel:', await mill.cancel(dropped.id))
await dropped.result({ timeout: '10s' }).catch((error) => console.log(error.name))
await tell(dropped.id)
await mill.close()

async function tell(id) {
  console.log('left:', [...booked])
  for (const { address, state } of await mill.steps(id)) console.log(' ', address, state)
}

// prints: paid [ 'a flight', 'a hotel', 'a car' ]
// prints: failed: true
// prints: left: []
// prints:   /step:book=a flight#0 done
// prints:   /step:book=a full hotel#0 failed
// prints:   /cleanup:#0/step:undo=a flight#0 done
// prints: booked: [ 'a train', 'a tent' ] cancel: true
// prints: JobCancelledError
// prints: left: []
// prints:   /step:book=a train#0 done
// prints:   /step:book=a tent#0 done
// prints:   !cancel done
// prints:   /cleanup:#0/step:undo=a tent#0 done
// prints:   /cleanup:#0/step:undo=a train#0 done
// prints:   /sleep:#0 failed
