import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'

const SCHEMA = 'millrace'

/**
 * Millrace with a user's settings: its defaults, apart from the log, which is off as it is for the others, and `keep`.
 * @param {{ dist: string, url: string, concurrency: number, keep?: 'none' | object }} spec
 */
export async function openParty({ dist, url, concurrency, keep }) {
  const [{ job, millrace }, { postgres }] = await Promise.all(['.', './postgres'].map((name) => entry(dist, name)))
  let handler = () => {}
  const noop = job('noop', async (payload) => handler(payload))
  const store = postgres(url, { schema: SCHEMA })
  const options = { store, jobs: [noop], concurrency, logger: false, ...(keep === undefined ? {} : { keep }) }
  const mill = await millrace(options)
  const start = async (each) => {
    handler = each
    await mill.start()
  }
  return {
    add: (payload, options) => mill.enqueue(noop, payload, options),
    async addMany(payloads, { queue, group, name = 'noop' } = {}) {
      if (!mill.has(name)) mill.register(job(name, async () => {}))
      await mill.enqueueMany(name, payloads, { queue, group })
    },
    /** One node, all its children, and one child of them all. */
    addFlow: (count) =>
      mill.flow((f) => {
        const first = f.add(noop, {})
        const others = Array.from({ length: count - 2 }, (_, n) => f.add(noop, { n }, { after: [first] }))
        return f.add(noop, {}, { after: others })
      }),
    group: (id) => mill.group(id),
    get: (id) => mill.get(id),
    /** The first hundred. */
    async findPage() {
      let left = 100
      for await (const each of mill.find({})) if (each.id !== '' && (left -= 1) === 0) break
    },
    /** Until `count` jobs have run and the worker has stopped, so the last outcome is on disk: more than is measured for the others. */
    async drain(count, each) {
      let ran = 0
      const last = new Promise((resolve) => {
        handler = (payload) => {
          each(payload)
          ran += 1
          if (ran === count) resolve()
        }
      })
      await mill.start()
      await last
      await mill.stop()
    },
    work: start,
    close: () => mill.close(),
  }
}

/** A mill with other jobs: `make(job)` returns them. */
export async function openMill({ dist, url, concurrency, queues }, make) {
  const [{ job, millrace }, { postgres }] = await Promise.all(['.', './postgres'].map((name) => entry(dist, name)))
  return millrace({ store: postgres(url, { schema: SCHEMA }), jobs: make(job), logger: false, concurrency, queues })
}

/** The files of `millrace` and `millrace/postgres`, in the copy of the package that is measured. */
async function entry(dist, name) {
  const home = dirname(dist)
  const { exports } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
  if (exports[name] === undefined) throw new Error(`this build of millrace has no ${name}`)
  return import(pathToFileURL(join(home, exports[name].default)).href)
}

/** How large the store is by table, the largest first, and how many jobs are in it. */
export async function measureStore({ url }) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(`
    select regexp_replace(c.relname, '_\\d{4}_\\d\\d_\\d\\d$', '') as name, sum(pg_total_relation_size(c.oid))::float8 as bytes
    from pg_class c
    where c.relnamespace = '${SCHEMA}'::regnamespace and c.relkind in ('r', 'p', 'S')
    group by 1
    order by 2 desc`)
  const counted = await client.query(`select count(*)::integer as jobs from ${SCHEMA}.jobs`)
  await client.end()
  const tables = Object.fromEntries(rows.slice(0, 5).map(({ name, bytes }) => [name, bytes]))
  return { bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0), jobs: counted.rows[0].jobs, tables }
}

/** Counted without the engine. */
export async function countJobs(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(`
    select (count(*) filter (where h.state = 'done'))::integer as done,
           (count(*) filter (where h.ref is null))::integer as left
    from ${SCHEMA}.jobs j
    left join ${SCHEMA}.history h on h.ref = j.ref`)
  await client.end()
  return rows[0]
}
