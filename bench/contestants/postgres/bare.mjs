import pg from 'pg'
import { addInParts } from './parts.mjs'
import { STATEMENTS, SCHEMA } from './bare-queries.mjs'

/** Concurrent loops: while one waits for the server, the other runs its jobs. */
const LOOPS = 2
const POLL_MS = 500

/**
 * Hand-written loops for jobs that are rows and never fail: claims of 500, and the settlement of one batch and
 * the claim of the next in one statement. No retries, timeouts, heartbeats or cancels: limits, not products.
 *
 * - `kept`: a claim and a settlement update the row.
 * - `deleted`: a claim updates it, a settlement deletes it.
 * - `lease`: a claim moves the batch into one row, and a settlement deletes that row.
 * - `cursor`: as `lease`, and a claim begins after the last one it saw, so it never scans dead rows.
 *
 * @param {{ url: string, way?: 'kept' | 'deleted' | 'lease' | 'cursor', listen?: boolean }} spec
 */
export async function openParty({ url, way = 'kept', listen = false }) {
  const clients = await Promise.all(Array.from({ length: LOOPS + 1 }, () => connect(url)))
  const [own, ...loops] = clients
  await own.query(SCHEMA)
  const say = (client, name, values) => client.query({ name, text: STATEMENTS[name], values })
  let stop = () => {}
  return {
    add: (payload) => say(own, listen ? 'insertAndTell' : 'insert', ['noop', JSON.stringify(payload), Date.now()]),
    async addMany(payloads, { name = 'noop' } = {}) {
      await own.query('begin')
      await addInParts(payloads, (part) =>
        say(own, 'insertAll', [name, part.map((payload) => JSON.stringify(payload)), Date.now()]),
      )
      await own.query('commit')
    },
    /** Until the last outcome is on disk. */
    async drain(count, each) {
      await Promise.all(loops.map((client) => drain((name, values) => say(client, name, values), way, each)))
    },
    async work(each) {
      stop = await work({ url, client: loops[0], say, way, each })
    },
    async close() {
      await stop()
      await Promise.all(clients.map((client) => client.end()))
    },
  }
}

async function connect(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

/** Runs batch after batch, and returns when there is none. */
async function drain(say, way, each) {
  const turn = way === 'lease' || way === 'cursor' ? new LeaseTurn(say, way === 'cursor') : new RowTurn(say, way)
  for (let batch = await turn.next(); batch.length > 0; batch = await turn.next())
    for (const payload of batch) await handle(each, payload)
}

async function handle(each, payload) {
  each(JSON.parse(payload))
}

class RowTurn {
  #say
  #way
  #ended = []

  constructor(say, way) {
    this.#say = say
    this.#way = way
  }

  async next() {
    const { rows } = await this.#say(this.#way, ['noop', Date.now(), this.#ended])
    this.#ended = rows.map(({ id }) => id)
    return rows.map(({ payload }) => payload)
  }
}

/** Before every due time and id. */
const START = ['0', '0']

class LeaseTurn {
  #say
  #hasCursor
  #lease = '0'
  #after = START

  constructor(say, hasCursor) {
    this.#say = say
    this.#hasCursor = hasCursor
  }

  async next() {
    const batch = await this.#take()
    if (batch.length > 0 || this.#after === START) return batch
    // Nothing after the last one: an earlier one may have been given back.
    this.#after = START
    return this.#take()
  }

  async #take() {
    const { rows } = await this.#say('lease', ['noop', ...this.#after, this.#lease])
    const { lease, payloads, last } = rows[0]
    this.#lease = lease ?? '0'
    if (this.#hasCursor && last !== null) this.#after = last
    return payloads === null ? [] : JSON.parse(payloads)
  }
}

/** Woken by NOTIFY; one drain at a time, and once more when it was woken meanwhile. */
async function work({ url, client, say, way, each }) {
  const listener = await connect(url)
  let turning
  let isWanted = false
  const wake = () => {
    isWanted = true
    turning ??= run().finally(() => (turning = undefined))
  }
  const run = async () => {
    while (isWanted) {
      isWanted = false
      await drain((name, values) => say(client, name, values), way, each)
    }
  }
  listener.on('notification', wake)
  await listener.query('listen bare')
  const poll = setInterval(wake, POLL_MS)
  return async () => {
    clearInterval(poll)
    await turning
    await listener.end()
  }
}

export async function countJobs(url) {
  const client = await connect(url)
  const { rows } = await client.query(STATEMENTS.count)
  await client.end()
  return rows[0]
}
