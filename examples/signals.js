// Ctrl-C and deploys: on a signal a process lets its jobs end, gives back the rest, and exits with 0.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { job, millrace } from 'millrace'
import { freshFile } from './fresh-file.js'

const quick = job('quick', () => new Promise((resolve) => setTimeout(resolve, 500, 'ended in time')))
const endless = job('endless', () => new Promise(() => {}))
const jobs = [quick, endless]

if (process.argv[2] === 'worker') {
  const mill = await millrace({ store: process.argv[3], jobs, logger: false })
  mill.stopOnSignals({ deadline: '2s' }) // default: 25s
  await mill.start()
} else {
  const store = freshFile()
  const mill = await millrace({ store, jobs, logger: false })
  const [first, second] = [await mill.enqueue(quick), await mill.enqueue(endless)]
  const worker = spawn(process.execPath, [process.argv[1], 'worker', store], { stdio: 'inherit' })
  while ((await second.get()).state !== 'running') await new Promise((resolve) => setTimeout(resolve, 20))

  worker.kill('SIGTERM') // what a container runtime does; Ctrl-C is SIGINT
  const [code] = await once(worker, 'exit')
  console.log('exit code', code)
  console.log('quick:', await first.result())
  console.log('endless:', (await second.get()).state)
  await mill.close()
}

// prints: exit code 0
// prints: quick: ended in time
// prints: endless: ready
