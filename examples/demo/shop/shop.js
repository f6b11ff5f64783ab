// A small shop under load: seven days of history, four workers on "web-1" to "web-4", and every state that a job can have.
//
//   npm run demo [-- --store postgres://…|shop.db] [--big] [--jobs 120000] [--port 8710] [--still]
//
// --big keeps 1,000,000 jobs instead of 120,000. --still is the shop at one instant, for pictures: nothing moves. Ctrl-C stops.
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { millrace } from 'millrace'
import { show } from '../show.js'
import { startFaults } from './faults.js'
import { encryption, oldJobs, redact, shopJobs } from './jobs.js'
import { fill } from './fill.js'
import { HOSTS, settings } from './settings.js'
import { enqueueOldWork, enqueueState } from './state.js'
import { isBankDown, keepTrading } from './traffic.js'

const { values: given } = parseArgs({
  options: {
    store: { type: 'string' },
    big: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    port: { type: 'string', default: '0' },
    still: { type: 'boolean', default: false },
    once: { type: 'boolean' },
  },
})
const count = Number(given.jobs ?? (given.big ? 1_000_000 : 120_000))
const store = given.store ?? join(temporaryFolder(), 'shop.db')

const quit = new AbortController()
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => quit.abort())
process.on('disconnect', () => quit.abort())

show.title('Millrace: a small shop under load')
show.note(`store ${store.replace(/:[^:@/]*@/, ':…@')}`)
const stops = []
try {
  if (given.still) {
    const { openStill } = await import('./still.js')
    const still = await openStill({ store, count })
    stops.push(still.close)
    show.good(`the shop stands still at ${new Date(still.now).toISOString()}`)
    await open(still.mill)
  } else await runShop()
  process.send?.({ kind: 'ready', store })
  await new Promise((resolve) => (quit.signal.aborted ? resolve() : quit.signal.addEventListener('abort', resolve)))
} finally {
  show.note('stopping')
  for (const stop of stops.toReversed()) await stop()
}
show.end('Stopped.')
process.exit(0)

async function runShop() {
  const mill = await millrace({ ...settings, store, encryption, redact, jobs: shopJobs({ work: sleep, isBankDown }) })
  stops.push(() => mill.close({ deadline: '2s' }))
  await fill(store, { count, now: Date.now() })
  show.good(`${count.toLocaleString('en')} jobs of the last seven days`)
  await open(mill)
  const before = await millrace({ ...settings, version: 'v1.41', store, jobs: oldJobs() })
  await enqueueOldWork(before)
  await before.close({ deadline: '1s' })
  await enqueueState(mill, { now: Date.now(), newsletter: 10_000 })
  show.good('the state of a Monday: paused queues, parked jobs, sequences, workflows, a campaign of 10,000')

  const workers = await Promise.all(HOSTS.map(startWorker))
  stops.push(() => Promise.all(workers.map((worker) => worker.stop())))
  show.good(`four workers: ${workers.map(({ pid }, i) => `${HOSTS[i]} is process ${pid}`).join(', ')}`)
  const trading = keepTrading(mill, quit.signal)
  const faults = startFaults({ store, worker: workers[2], signal: quit.signal, tell: show.bad })
  const telling = tellOf(mill)
  stops.push(() => Promise.all([trading, faults, telling]))
}

/** The dashboard, where this version has one; the terminal shows the counts in any case. */
async function open(mill) {
  const dashboard = await mill.dashboard({ port: Number(given.port) }).catch((error) => {
    if (error.code !== 'E_NOT_YET') throw error
    show.note('this version has no dashboard: the counts follow here')
  })
  if (dashboard === undefined) return
  stops.push(() => dashboard.close())
  show.good(`the dashboard: ${dashboard.url}`)
  process.send?.({ kind: 'link', link: dashboard.url })
}

/** One line whenever it changed and five seconds have passed. */
async function tellOf(mill) {
  const every = 5_000
  while (!quit.signal.aborted) {
    const queues = await mill.stats.queues()
    const sum = (of) => Object.values(queues).reduce((all, each) => all + (each[of] ?? 0), 0)
    const [waiting, running] = [sum('ready') + sum('retrying'), sum('running')]
    show.note(`${waiting.toLocaleString('en')} waiting, ${running} running, ${Math.round(sum('perMinute'))} a minute`)
    await sleep(every, undefined, { signal: quit.signal }).catch(() => {}) // Ctrl-C ends the loop
  }
}

async function startWorker(host) {
  const path = fileURLToPath(new URL('worker.js', import.meta.url))
  const child = fork(path, [store, host], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    process.kill(child.pid, 'SIGCONT') // it may be stopped by a fault
    if (child.connected) child.send('stop')
    await gone
  }
  await new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`the worker of ${host} ended with ${code} before it had begun`)))
  })
  return { pid: child.pid, stop, gone }
}

function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shop-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
