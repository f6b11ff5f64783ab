// What a reader that keeps its transaction open on the SQLite file costs workers that start jobs meanwhile:
//   node scripts/measure-pinned-reader.mjs [--seconds 40] [--dist dist] [--folder /tmp]
// A worker process starts small jobs fifty times a second beside bulks of 8 KiB payloads; a second process holds a read
// transaction for the middle phase. Prints enqueue-to-start latency of each phase, the size of the WAL, and warnings.
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const [role, path, dist] = process.argv.slice(2)
if (role === 'reader') readForever(path)
else if (role === 'worker') await work(path, dist)
else await measure()

function readForever(file) {
  const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite')
  const database = new DatabaseSync(file)
  database.exec('begin')
  database.prepare('select count(*) from millrace_live').get()
  process.send('reading')
  process.on('message', () => {
    database.exec('commit')
    database.close()
    process.exit()
  })
}

async function work(file, folder) {
  const { millrace, job } = await import(pathToFileURL(join(folder, 'index.js')).href)
  let latencies = []
  const probe = job('probe', async ({ at }) => void latencies.push(performance.now() - at))
  const bulk = job('bulk', async () => undefined)
  const began = performance.now()
  const warn = (_, message) => process.send({ warning: message, atMs: Math.round(performance.now() - began) })
  const logger = { debug() {}, info() {}, warn, error: warn }
  const mill = await millrace({ store: file, jobs: [probe, bulk], logger, concurrency: 20 })
  await mill.start()
  const pad = 'x'.repeat(8_192)
  const payloads = Array.from({ length: 10 }, () => ({ pad }))
  const failed = (error) =>
    process.send({ warning: `failed: ${error.message}`, atMs: Math.round(performance.now() - began) })
  setInterval(() => mill.enqueue(probe, { at: performance.now() }).catch(failed), 20)
  setInterval(() => mill.enqueueMany(bulk, payloads).catch(failed), 20)
  process.on('message', () => {
    process.send({ latencies })
    latencies = []
  })
  process.send('started')
}

async function measure() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '40' },
      dist: { type: 'string', default: 'dist' },
      folder: { type: 'string', default: tmpdir() },
    },
  })
  const folder = mkdtempSync(join(values.folder, 'millrace-pinned-'))
  const file = join(folder, 'jobs.db')
  const self = import.meta.filename
  const worker = fork(self, ['worker', file, resolve(values.dist)])
  worker.on('message', (message) => {
    if (message.warning !== undefined) console.log(`  ${(message.atMs / 1000).toFixed(1)} s: ${message.warning}`)
  })
  await heard(worker, (message) => message === 'started')
  await phase('before', 10)
  const reader = fork(self, ['reader', file])
  await heard(reader, (message) => message === 'reading')
  await phase('pinned, first half', Number(values.seconds) / 2)
  await phase('pinned, second half', Number(values.seconds) / 2)
  reader.send('end')
  await phase('after', 15)
  worker.kill()
  await new Promise((next) => worker.once('exit', next))
  rmSync(folder, { recursive: true, force: true })

  async function phase(name, seconds) {
    ask()
    await answer()
    await new Promise((next) => setTimeout(next, seconds * 1000))
    ask()
    const { latencies } = await answer()
    const sorted = latencies.toSorted((a, b) => a - b)
    const at = (share) => (sorted[Math.floor(sorted.length * share)] ?? NaN).toFixed(1)
    const mb = (statSync(`${file}-wal`).size / 1024 / 1024).toFixed(0)
    console.log(`${name}: ${sorted.length} starts, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, WAL ${mb} MB`)
  }
  function ask() {
    worker.send('latencies')
  }
  function answer() {
    return heard(worker, (message) => message.latencies !== undefined)
  }
}

function heard(child, isIt) {
  return new Promise((next) => {
    const listen = (message) => {
      if (!isIt(message)) return
      child.off('message', listen)
      next(message)
    }
    child.on('message', listen)
  })
}
