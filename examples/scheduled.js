// Durable timers. Each auction closes at its own time, under its own key, whatever happens to the process meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const auctions = new Map([
  ['vase', { open: true }],
  ['lamp', { open: true }],
  ['clock', { open: true }],
  ['chair', { open: true }],
])

const closeAuction = job('close-auction', async ({ id }) => {
  const auction = auctions.get(id)
  if (auction === undefined) return `${id}: nothing to close, it was deleted`
  auction.open = false
  return `${id}: closed`
})

const file = freshFile()
const open = () => millrace({ store: file, jobs: [closeAuction], logger: false })
const close = (id) => ({ key: id })
const tell = async (handle) => console.log(await handle.result({ timeout: '10s' }))

let mill = await open()
await mill.start()

// It fires on time. Scheduling under the same key again moves the waiting timer.
const vase = await mill.schedule(closeAuction, { id: 'vase' }, '1h', close('vase'))
const moved = await mill.schedule(closeAuction, { id: 'vase' }, '100ms', close('vase'))
console.log(`the same timer, moved: ${vase.id === moved.id && !moved.isNew}`)
await tell(vase)

// The lamp is sold early: the timer is cancelled, and never fires.
const lamp = await mill.schedule(closeAuction, { id: 'lamp' }, '200ms', close('lamp'))
console.log('cancelled in time:', await mill.unschedule(closeAuction, 'lamp'))
console.log('a second time:', await mill.unschedule(closeAuction, 'lamp'))

// The clock is deleted and its timer is not cancelled: it fires, finds nothing to do, and that is no failure.
const clock = await mill.schedule(closeAuction, { id: 'clock' }, '100ms', close('clock'))
auctions.delete('clock')
await tell(clock)

// The chair comes due while no process is running: it fires at once when one starts.
const chair = await mill.schedule(closeAuction, { id: 'chair' }, '200ms', close('chair'))
await mill.close()
await sleep(300)
mill = await open()
console.log('overdue, and still there:', (await mill.get(chair.id)).state)
await mill.start()
await tell(mill.handle(chair.id))

console.log('the lamp:', (await mill.get(lamp.id)).state, '- still open:', auctions.get('lamp').open)
await mill.close()

// prints: the same timer, moved: true
// prints: vase: closed
// prints: cancelled in time: true
// prints: a second time: false
// prints: clock: nothing to close, it was deleted
// prints: overdue, and still there: scheduled
// prints: chair: closed
// prints: the lamp: cancelled - still open: true
