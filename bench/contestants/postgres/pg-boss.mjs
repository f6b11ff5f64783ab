import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { untilBegun } from './graphile.mjs'
import { addInParts } from './parts.mjs'

/** For a backlog: batches of 500, the next one at once while they are full, two loops. */
const TUNED = { batchSize: 500, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, localConcurrency: 2 }
/** For a short time from enqueue to start: woken by NOTIFY. */
const NOTIFIED = { batchSize: 100, localConcurrency: 4 }

/**
 * pg-boss, tuned for a backlog or, with `notify`, for latency. Its supervision and its schedules never run within a
 * measurement, which is in its favour. It keeps ended jobs.
 * @param {{ url: string, notify?: boolean }} spec
 */
export async function openParty({ url, notify = false }) {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, useListenNotify: notify })
  boss.on('error', (error) => process.stderr.write(`${error}\n`))
  await boss.start()
  const known = new Set()
  const queue = async (name) => {
    if (known.has(name)) return name
    await boss.createQueue(name, { notify })
    known.add(name)
    return name
  }
  await queue('noop')
  const start = (each) =>
    boss.work('noop', notify ? NOTIFIED : TUNED, async (jobs) => {
      for (const { data } of jobs) each(data)
    })
  return {
    add: (payload) => boss.send('noop', payload),
    addMany: async (payloads, { name = 'noop' } = {}) => {
      await queue(name)
      await addInParts(payloads, (part) =>
        boss.insert(
          name,
          part.map((data) => ({ data })),
        ),
      )
    },
    drain: (count, each) => untilBegun(count, each, start),
    work: start,
    close: () => boss.stop({ graceful: true, close: true, timeout: 30_000 }),
  }
}

export async function countJobs(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(`
    select (count(*) filter (where state = 'completed'))::integer as done,
           (count(*) filter (where state <> 'completed'))::integer as left
    from pgboss.job`)
  await client.end()
  return rows[0]
}
