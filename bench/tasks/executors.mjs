import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { payloadsOf } from '../payloads.mjs'

/** Runs jobs that do nothing in one executor. Counted from the first end, so that the start of a thread or process is not part of it. */
export async function run(spec) {
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
