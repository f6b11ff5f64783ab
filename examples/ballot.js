// A ballot that ends at a set time: a durable timer under the ballot's own key, in all five restart cases.
import { setTimeout as sleep } from 'node:timers/promises'
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const ballots = new Map()

const endBallot = job('end-ballot', async ({ id }) => {
  const ballot = ballots.get(id)
  // Deleted, or ended early: nothing to do, and that is no failure.
  if (ballot === undefined || ballot.endedBy !== undefined) return `${id}: nothing to end`
  ballot.endedBy = 'the clock'
  const [first] = Object.entries(ballot.votes).sort((a, b) => b[1] - a[1])
  return `${id}: ended, "${first[0]}" has it`
})

const file = freshFile()
const open = () => millrace({ store: file, jobs: [endBallot], logger: false })
let mill = await open()
await mill.start()

/** One timer per ballot. Opening it again, or giving it another end, moves the waiting timer. */
async function openBallot(id, endsIn, votes) {
  ballots.set(id, { votes, endedBy: undefined })
  return mill.schedule(endBallot, { id }, endsIn, { key: id })
}

/** True when it was in time; false when the timer had fired. */
async function endEarly(id) {
  const inTime = await mill.unschedule(endBallot, id)
  if (inTime) ballots.get(id).endedBy = 'the chair'
  return inTime
}

const tell = async (handle) => console.log(await mill.handle(handle.id).result({ timeout: '10s' }))

// It ends on time; a longer voting period moves the one timer.
const lunch = await openBallot('lunch', '1h', { soup: 3, pasta: 5 })
const moved = await mill.schedule(endBallot, { id: 'lunch' }, '150ms', { key: 'lunch' })
console.log('one timer:', moved.id === lunch.id)
await tell(lunch)
console.log('too late to end it early:', await endEarly('lunch'))

// It ends early: the timer is cancelled, and never fires.
const colour = await openBallot('colour', '300ms', { red: 2, blue: 1 })
console.log('ended early:', await endEarly('colour'))

// It is deleted, and its timer is not cancelled.
const name = await openBallot('name', '100ms', { Ada: 4 })
ballots.delete('name')
await tell(name)

// The process is restarted in between: it still ends on time.
const city = await openBallot('city', '700ms', { Oslo: 7, Rome: 6 })
await mill.close()
mill = await open()
await mill.start()
await tell(city)

// It comes due while no process runs: it ends at once when one starts.
const song = await openBallot('song', '100ms', { waltz: 1, tango: 9 })
await mill.close()
await sleep(250)
mill = await open()
await mill.start()
await tell(song)

console.log('colour was ended by', ballots.get('colour').endedBy, '- its timer is', (await mill.get(colour.id)).state)
await mill.close()

// prints: one timer: true
// prints: lunch: ended, "pasta" has it
// prints: too late to end it early: false
// prints: ended early: true
// prints: name: nothing to end
// prints: city: ended, "Oslo" has it
// prints: song: ended, "tango" has it
// prints: colour was ended by the chair - its timer is cancelled
