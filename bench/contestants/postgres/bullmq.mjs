import { Queue, Worker } from 'bullmq'
import { untilBegun } from './graphile.mjs'
import { addInParts } from './parts.mjs'

const CONCURRENCY = 100
/** It removes ended jobs: that is its fastest setting. */
const JOB = { removeOnComplete: true, attempts: 3 }

/**
 * BullMQ on Redis. Another store and another promise (appendfsync everysec: up to a second of data is lost on a power cut), so it is
 * shown and no gate compares with it.
 * @param {{ url: string }} spec
 */
export async function openParty({ url }) {
  const connection = { url, maxRetriesPerRequest: null }
  const queue = new Queue('noop', { connection, defaultJobOptions: JOB })
  await queue.waitUntilReady()
  let worker
  const start = async (each) => {
    worker = new Worker('noop', async ({ data }) => each(data), { connection, concurrency: CONCURRENCY })
    worker.on('error', (error) => process.stderr.write(`${error}\n`))
    await worker.waitUntilReady()
  }
  return {
    add: (payload) => queue.add('noop', payload),
    addMany: (payloads) => addInParts(payloads, (part) => queue.addBulk(part.map((data) => ({ name: 'noop', data })))),
    drain: (count, each) => untilBegun(count, each, start),
    work: start,
    async close() {
      await worker?.close()
      await queue.close()
    },
  }
}

export async function countJobs(url) {
  const queue = new Queue('noop', { connection: { url } })
  const { completed, ...others } = await queue.getJobCounts()
  await queue.close()
  return { done: completed, left: Object.values(others).reduce((sum, each) => sum + each, 0) }
}
