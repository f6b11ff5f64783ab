import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { addInParts } from './parts.mjs'

const SILENT = new Logger(() => () => {})

/** Its fastest options: jobs fetched 500 at a time, their completions written together. */
const TUNED = {
  concurrentJobs: 24,
  maxPoolSize: 26,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}

/**
 * graphile-worker, tuned, or with its defaults but for its concurrency (1, each fetched and completed by itself). It
 * deletes ended jobs.
 * @param {{ url: string, tuned?: boolean, concurrentJobs?: number }} spec
 */
export async function openParty({ url, tuned = false, concurrentJobs = 1 }) {
  const utils = await makeWorkerUtils({ connectionString: url, logger: SILENT })
  await utils.migrate()
  let runner
  const start = async (each) => {
    const worker = {
      connectionString: url,
      logger: SILENT,
      ...(tuned ? TUNED : { concurrentJobs, maxPoolSize: concurrentJobs + 9 }),
    }
    const taskList = { noop: async (payload) => each(payload) }
    runner = await run({ preset: { worker }, taskList, noHandleSignals: true })
  }
  return {
    add: (payload) => utils.addJob('noop', payload),
    addMany: (payloads, { name = 'noop' } = {}) =>
      addInParts(payloads, (part) => utils.addJobs(part.map((payload) => ({ identifier: name, payload })))),
    drain: (count, each) => untilBegun(count, each, start),
    work: start,
    async close() {
      await runner?.stop()
      await utils.release()
    },
  }
}

/** Until `count` handlers have begun: the last completions may still be in progress, which is in its favour. */
export async function untilBegun(count, each, start) {
  let begun = 0
  let working
  await new Promise((resolve, reject) => {
    working = start((payload) => {
      each(payload)
      begun += 1
      if (begun === count) resolve()
    })
    working.catch(reject)
  })
  await working
}

export async function countJobs(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('select count(*)::integer as left from graphile_worker._private_jobs')
  await client.end()
  return { done: 0, left: rows[0].left }
}
