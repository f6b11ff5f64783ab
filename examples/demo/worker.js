// A process that resizes photos until demo.js stops or kills it. It is started by demo.js.
import { millrace } from 'millrace'
import { photoJob } from './jobs.js'
import { times } from './settings.js'

const tell = (fact) => process.connected && process.send(fact)
const resizePhoto = photoJob(tell)

const mill = await millrace({ store: process.argv[2], jobs: [resizePhoto], concurrency: 3, logger: false, ...times })

let stopping = false
async function stop() {
  if (stopping) return
  stopping = true
  await mill.close({ deadline: '1s' })
  process.exit(0)
}

// Ctrl-C reaches every process of a terminal; this one waits for a message of the process that started it.
process.on('SIGINT', () => {})
process.on('message', stop)
process.on('disconnect', stop)

await mill.start()
tell({ kind: 'started' })
