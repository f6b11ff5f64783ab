// Define a job, enqueue it, run it, read its result.
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const greet = job('greet', async ({ name }, ctx) => `hello ${name}, this is attempt ${ctx.attempt}`)

const mill = await millrace({ store: freshFile(), jobs: [greet], logger: false })

// When enqueue resolves, the job is on disk. Nothing runs yet.
const handle = await mill.enqueue(greet, { name: 'Ada' })
console.log('before start:', (await handle.get()).state)

await mill.start()
console.log('result:', await handle.result({ timeout: '10s' }))
console.log('afterwards:', (await handle.get()).state)
await mill.close()

// prints: before start: ready
// prints: result: hello Ada, this is attempt 1
// prints: afterwards: done
