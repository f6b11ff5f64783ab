import { setImmediate } from 'node:timers/promises'
import { chooseDriver, SAME_PRAGMAS, synchronousOf } from './driver.mjs'

/** Jobs claimed, and settled, in one transaction. */
const BATCH = 500
const POLL_MS = 1

const SCHEMA = `
create table if not exists jobs (
  id integer primary key,
  name text not null,
  payload text not null,
  state integer not null default 0,
  created_at integer not null,
  ended_at integer
) strict;
create index if not exists jobs_waiting on jobs (name, id) where state = 0`

const STATEMENTS = {
  begin: 'begin immediate',
  commit: 'commit',
  insert: 'insert into jobs (name, payload, created_at) values (?, ?, ?)',
  insertAll: 'insert into jobs (name, payload, created_at) select ?, value, ? from json_each(?)',
  claim: `
update jobs
set state = 1
where id in (select id from jobs where state = 0 and name = ? order by id limit ${BATCH})
returning id, payload`,
  end: 'update jobs set state = 2, ended_at = ? where id in (select value from json_each(?))',
}

/**
 * A hand-written loop for jobs that are rows and never fail: batches of 500, the settlement of one batch and
 * the claim of the next in one transaction and one flush, history kept. No retries, no leases, no timeouts, no wake-up
 * between processes: a limit, not a product.
 * @param {{ dist: string, file: string, durability: 'power' | 'process', json?: boolean }} spec
 */
export async function openParty({ dist, file, durability, json = false }) {
  const { Database } = await chooseDriver(dist)
  const database = new Database(file)
  database.exec(SAME_PRAGMAS)
  database.exec(synchronousOf(durability))
  database.exec(SCHEMA)
  const say = Object.fromEntries(Object.entries(STATEMENTS).map(([name, sql]) => [name, database.prepare(sql)]))
  const loop = new Loop(say)
  return {
    async add(payload) {
      say.insert.run('noop', JSON.stringify(payload), Date.now())
      loop.wake()
    },
    addMany: async (payloads, { name = 'noop' } = {}) => (json ? insertAll : insertEach)(say, name, payloads),
    drain: (count, each) => loop.drain(count, each),
    work: async (each) => loop.work(each),
    async close() {
      await loop.stop()
      database.close()
    },
  }
}

function insertEach(say, name, payloads) {
  const now = Date.now()
  say.begin.run()
  for (const payload of payloads) say.insert.run(name, JSON.stringify(payload), now)
  say.commit.run()
}

/** One statement for all of them: the cost without the calls into the driver. */
function insertAll(say, name, payloads) {
  say.insertAll.run(name, Date.now(), JSON.stringify(payloads.map((payload) => JSON.stringify(payload))))
}

class Loop {
  #say
  #each
  #poll
  #turning

  constructor(say) {
    this.#say = say
  }

  async drain(count, each) {
    let ended = 0
    let batch = this.#turn([])
    while (ended < count) {
      for (const { payload } of batch) await handle(each, payload)
      ended += batch.length
      batch = this.#turn(batch)
      await setImmediate()
    }
  }

  work(each) {
    this.#each = each
    this.#poll = setInterval(() => this.wake(), POLL_MS)
  }

  async stop() {
    clearInterval(this.#poll)
    await this.#turning
  }

  wake() {
    if (this.#each === undefined) return
    this.#turning ??= this.#run().finally(() => (this.#turning = undefined))
  }

  async #run() {
    for (let batch = this.#turn([]); batch.length > 0; batch = this.#turn(batch))
      for (const { payload } of batch) await handle(this.#each, payload)
  }

  /** Settles one batch and claims the next. */
  #turn(ended) {
    const { begin, commit, claim, end } = this.#say
    begin.run()
    if (ended.length > 0) end.run(Date.now(), JSON.stringify(ended.map(({ id }) => id)))
    const batch = claim.all('noop')
    commit.run()
    return batch
  }
}

async function handle(each, payload) {
  each(JSON.parse(payload))
}

export async function countJobs(file, dist) {
  const { Database } = await chooseDriver(dist)
  const database = new Database(file)
  const count = (where) => Number(database.prepare(`select count(*) as n from jobs where ${where}`).get().n)
  const counts = { done: count('state = 2'), left: count('state <> 2') }
  database.close()
  return counts
}
