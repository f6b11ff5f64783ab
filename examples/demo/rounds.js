// npm run demo -- --once: one round; exit 0 when nothing was lost, 1 when something was
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { millrace } from 'millrace'
import { demoJobs, photoJob } from './jobs.js'
import { times } from './settings.js'
import { show } from './show.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-demo-'))
const file = join(folder, 'demo.db')
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

const jobs = demoJobs(tellOfJob)
const resizePhoto = photoJob(() => {})
const mill = await millrace({ store: file, jobs, concurrency: 5, logger: false, ...times })

/** The id of every job that was ever enqueued here: at the end each must be found, once. */
const enqueued = new Set()
const workers = new Set()
const quit = new AbortController()
process.once('SIGINT', () => quit.abort())
process.once('SIGTERM', () => quit.abort())
const leaving = new Promise((_, reject) => quit.signal.addEventListener('abort', () => reject(quit.signal.reason)))
leaving.catch(() => {}) // the call that waits at that moment gets the rejection

show.title('Millrace: durable background jobs in one SQLite file')
show.note(`a fresh file: ${file}`)
await mill.start()
let lost = 0
try {
  lost = await playRound(1)
} catch (error) {
  if (!quit.signal.aborted) throw error
  await stopWorkers()
  await sayGoodbye()
} finally {
  await stopWorkers()
  await mill.close({ deadline: '2s' })
}
if (!quit.signal.aborted) show.end(lost === 0 ? 'Nothing was lost.' : `${lost} jobs were lost.`, lost === 0)
process.exit(lost === 0 ? 0 : 1) // exit now, without waiting for results that are no longer needed

async function playRound(round) {
  await sendEmails(round)
  await chargeCards(round)
  await keepTime(round)
  await surviveKill(round)
  return takeCensus()
}

async function sendEmails(round) {
  show.heading(`${round}.1  E-mails`, 'Ten in one call: all of them are on disk when it returns, or none.')
  const people = ['ada', 'grace', 'edsger', 'barbara', 'donald', 'frances', 'tony', 'radia', 'leslie']
  const payloads = [...people.map((name) => ({ to: `${name}@example.com` })), { to: 'nowhere' }]
  const handles = note(await mill.enqueueMany(jobs.sendEmail, payloads))
  const failed = (await allEnded(handles)).filter((end) => end.status === 'rejected')
  for (const { reason } of failed) show.bad(`failed at once, since its handler threw Abort: ${reason.cause.message}`)
}

async function chargeCards(round) {
  show.heading(`${round}.2  A flaky API`, 'The bank refuses now and then. Each failure waits a little longer.')
  const payloads = [0, 1, 2].map((failures) => ({ order: round * 100 + failures, failures }))
  await allEnded(note(await mill.enqueueMany(jobs.chargeCard, payloads)))
}

async function keepTime(round) {
  show.heading(`${round}.3  A delayed job`, 'A timer is a row in the file: it outlives the process that set it.')
  const order = round * 100 + 50
  const asked = Date.now()
  const reminder = await mill.schedule(jobs.remind, { order, asked }, '1500ms', { key: `order-${order}` })
  const early = await mill.schedule(jobs.remind, { order: order + 1, asked }, '1h', { key: `order-${order + 1}` })
  note([reminder, early])
  show.note(`order ${order}: a reminder in 1.5 s; order ${order + 1}: one in an hour`)
  const wasWaiting = await mill.unschedule(jobs.remind, `order-${order + 1}`)
  show.good(`order ${order + 1} was paid early, its timer is cancelled: ${wasWaiting}`)
  await allEnded([reminder])
}

async function surviveKill(round) {
  show.heading(`${round}.4  kill -9`, 'A worker process dies with jobs in flight. Another one runs them.')
  const inHand = new Map()
  let begun = 0
  const first = await startWorker((fact) => {
    if (fact.kind === 'began') {
      begun += 1
      inHand.set(fact.id, fact.photo)
    }
    if (fact.kind === 'resized') inHand.delete(fact.id)
  })
  const payloads = [1, 2, 3, 4, 5].map((number) => ({ photo: `photo-${round}-${number}.jpg` }))
  const handles = note(await mill.enqueueMany(resizePhoto, payloads))
  while (begun < 3) await sleep(20, undefined, { signal: quit.signal })
  await sleep(200)
  const orphans = new Map(inHand)
  await killWorker(first)
  show.bad(`process ${first.pid} killed while it had ${[...orphans.values()].join(', ')} in flight`)

  const second = await startWorker((fact) => {
    const isOrphan = orphans.has(fact.id)
    if (fact.kind === 'began' && isOrphan) show.again(`${fact.photo} begins again in process ${second.pid}`)
    if (fact.kind === 'resized')
      show.good(`${fact.photo} resized by process ${second.pid}${isOrphan ? `, attempt ${fact.attempt}` : ''}`)
  })
  show.note(`process ${second.pid} started; the dead one's jobs are free when its heart was silent for ${times.lease}`)
  await allEnded(handles)
  await stopWorker(second)
  show.note('a crash charges no attempt: every job of the dead process ran again as attempt 1')
}

/** Every job that was enqueued must be found in the file exactly once, in one final state. */
async function takeCensus() {
  const buckets = {}
  const found = new Set()
  let strays = 0
  for await (const { id, state } of mill.find()) {
    buckets[state] = (buckets[state] ?? 0) + 1
    if (found.has(id) || !enqueued.has(id) || !['done', 'failed', 'cancelled'].includes(state)) strays += 1
    found.add(id)
  }
  const missing = [...enqueued].filter((id) => !found.has(id)).length
  const counts = Object.entries(buckets).map(([state, count]) => `${count} ${state}`)
  show.heading('Census', 'Every job is in exactly one bucket.')
  show.note(`${enqueued.size} enqueued = ${counts.join(' + ')}`)
  if (missing + strays > 0) show.bad(`${missing} missing, ${strays} where they should not be`)
  return missing + strays
}

async function sayGoodbye() {
  const left = []
  for await (const { state } of mill.find({ state: ['scheduled', 'ready', 'running', 'retrying'] })) left.push(state)
  show.end(`Stopped. ${enqueued.size} jobs enqueued, ${left.length} of them unfinished: they would go on next time.`)
}

function note(handles) {
  for (const handle of handles) enqueued.add(handle.id)
  return handles
}

/** Waits until each has ended, with any outcome; rejects on Ctrl-C. */
function allEnded(handles) {
  return Promise.race([Promise.allSettled(handles.map((handle) => handle.result({ timeout: '20s' }))), leaving])
}

async function startWorker(onFact) {
  const worker = fork(fileURLToPath(new URL('worker.js', import.meta.url)), [file])
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
  worker.on('message', onFact)
  await new Promise((resolve, reject) => {
    worker.on('message', (fact) => fact.kind === 'started' && resolve())
    worker.once('exit', (code) => reject(new Error(`the worker process ended with ${code} before it had begun`)))
  })
  return worker
}

function killWorker(worker) {
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  process.kill(worker.pid, 'SIGKILL')
  return ended
}

async function stopWorkers() {
  await Promise.all([...workers].map(stopWorker))
}

async function stopWorker(worker) {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  worker.send('stop')
  await ended
}

function tellOfJob(fact) {
  switch (fact.kind) {
    case 'sent':
      return show.good(`sent to ${fact.to}`)
    case 'refused':
      return show.again(`order ${fact.order}: 503, attempt ${fact.attempt} failed, it will be tried again`)
    case 'charged':
      return show.good(`order ${fact.order}: charged on attempt ${fact.attempt}`)
    case 'reminded':
      return show.good(`order ${fact.order}: reminded ${(fact.afterMs / 1000).toFixed(2)} s later`)
    default:
      return undefined
  }
}
