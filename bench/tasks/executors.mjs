import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { addInParts } from '../contestants/postgres/parts.mjs'
import { payloadsOf } from '../payloads.mjs'

/** Runs jobs that do nothing in one executor. Counted from the first end, so that the start of a thread or process is not part of it. */
export function run(spec) {
  return spec.library === 'bullmq' ? runBullmq(spec) : runMillrace(spec)
}

/** Its sandboxed processors: `useWorkerThreads`, or a process. */
async function runBullmq({ url, executor, jobs, bytes, concurrency }) {
  const { Queue, Worker } = await import('bullmq')
  const connection = { url, maxRetriesPerRequest: null }
  const queue = new Queue('noop', { connection, defaultJobOptions: { removeOnComplete: true } })
  await addInParts(payloadsOf(bytes, jobs, 0), (part) => queue.addBulk(part.map((data) => ({ name: 'noop', data }))))
  const processor = executor === 'loop' ? async () => {} : new URL('./noop-module.mjs', import.meta.url)
  let ended = 0
  let firstAt = 0
  const worker = new Worker('noop', processor, {
    connection,
    concurrency,
    useWorkerThreads: executor === 'thread',
    autorun: false,
  })
  const last = new Promise((resolve, reject) => {
    worker.on('completed', () => {
      ended += 1
      if (ended === 1) firstAt = performance.now()
      if (ended === jobs) resolve(performance.now())
    })
    worker.on('failed', (_, error) => reject(error))
    worker.on('error', reject)
  })
  void worker.run()
  const ms = (await last) - firstAt
  await worker.close()
  await queue.close()
  return { ms, ran: ended }
}

async function runMillrace(spec) {
  const { job, millrace, sqlite } = await import(pathToFileURL(join(spec.dist, 'index.js')).href)
  const module = new URL('./noop-module.mjs', import.meta.url)
  const how = spec.executor === 'loop' ? { run: async () => {} } : { executor: spec.executor, module }
  const noop = job('noop', how)
  let ended = 0
  let firstAt = 0
  let finish
  const last = new Promise((resolve) => (finish = resolve))
  const settle = async () => {
    ended += 1
    if (ended === 1) firstAt = performance.now()
    if (ended === spec.jobs) finish(performance.now())
  }
  const mill = await millrace({
    store: sqlite(spec.file),
    jobs: [noop],
    logger: false,
    concurrency: spec.concurrency,
    hooks: { settle },
  })
  await mill.enqueueMany(noop, payloadsOf(spec.bytes, spec.jobs, 0))
  await mill.start()
  const ms = (await last) - firstAt
  await mill.close()
  return { ms, ran: ended }
}
