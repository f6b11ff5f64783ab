import { setImmediate } from 'node:timers/promises'
import { defineQueue, defineWorker, JobStatus } from 'plainjob'
import { chooseDriver, SAME_PRAGMAS, synchronousOf } from './driver.mjs'

/** Its maintenance would run once a minute; here never within a measurement, which is in its favour. */
const NEVER_MS = 2_000_000_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * plainjob, as well as its options allow: no log (its default writes several lines a job), no callbacks but the one that
 * ends the measurement, no maintenance, a poll of 1 ms instead of 1 s. It works one job at a time; there is no option for
 * more. Its own default is synchronous=NORMAL; here it is set to what is measured.
 * @param {{ dist: string, file: string, durability: 'power' | 'process' }} spec
 */
export async function openParty({ dist, file, durability }) {
  const { Database } = await chooseDriver(dist)
  const database = new Database(file)
  const queue = defineQueue({ connection: connect(database, file), logger: SILENT, maintenanceInterval: NEVER_MS })
  database.exec(SAME_PRAGMAS)
  database.exec(synchronousOf(durability))
  let working = Promise.resolve()
  let worker
  const start = (each, onCompleted) => {
    const options = { queue, logger: SILENT, pollIntervall: 1, ...(onCompleted && { onCompleted }) }
    worker = defineWorker('noop', async (job) => each(JSON.parse(job.data)), options)
    working = worker.start()
  }
  return {
    add: async (payload) => queue.add('noop', payload),
    addMany: async (payloads, { name = 'noop' } = {}) => queue.addMany(name, payloads),
    async drain(count, each) {
      let done = 0
      await new Promise((resolve) => {
        start(each, () => {
          done += 1
          if (done === count) resolve(worker.stop())
        })
      })
    },
    work: async (each) => start(each),
    async close() {
      await worker?.stop()
      await working
      await setImmediate()
      queue.close()
    },
  }
}

/** The connection that plainjob needs, as a thin wrapper: its part of better-sqlite3, on the driver that all contestants use. */
function connect(database, filename) {
  const statement = (sql) => database.prepare(sql)
  const [begin, beginNow, commit, rollback] = ['begin', 'begin immediate', 'commit', 'rollback'].map(statement)
  const within = (first, work, args) => {
    first.run()
    try {
      const answer = work(...args)
      commit.run()
      return answer
    } catch (error) {
      rollback.run()
      throw error
    }
  }
  return {
    driver: 'better-sqlite3',
    filename,
    pragma: (text) => database.exec(`pragma ${text}`),
    exec: (sql) => database.exec(sql),
    prepare: statement,
    transaction: (work) =>
      Object.assign((...args) => within(begin, work, args), { immediate: (...args) => within(beginNow, work, args) }),
    close: () => database.close(),
  }
}

export async function countJobs(file, dist) {
  const { Database } = await chooseDriver(dist)
  const queue = defineQueue({ connection: connect(new Database(file), file), logger: SILENT })
  try {
    const done = queue.countJobs({ status: JobStatus.Done })
    return { done, left: queue.countJobs() - done }
  } finally {
    queue.close()
  }
}
