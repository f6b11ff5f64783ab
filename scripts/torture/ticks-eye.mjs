import { createRequire } from 'node:module'
import { loadSqlite } from './outside-eye.mjs'

/** A parked job waits for an operator: three kills while it ran alone. */
const ENDED = ['done', 'failed', 'cancelled', 'parked']

/**
 * Schedules, ledger and jobs, read without the engine.
 * @returns {Promise<{ schedules: string[], ticks: object[], jobs: object[], unfinished: number, overdueMs: number }>}
 */
export async function readTickTables(store, ground) {
  const ask = store.startsWith('postgres') ? await onPostgres(store, ground) : onSqlite(store, ground)
  try {
    const schedules = await ask.all(`select id, next_at from ${ask.name('schedules')}`)
    const ticks = await ask.all(`select schedule, at, by_hand, outcome, job from ${ask.name('ticks')}`)
    const jobs = await ask.all(
      `select j.id, j.options, coalesce(h.state, w.state) as state from ${ask.name('jobs')} j
       left join ${ask.name('history')} h using (${ask.number}) left join ${ask.name(ask.waiting)} w using (${ask.number})`,
    )
    const due = schedules.filter((row) => row.next_at !== null).map((row) => Date.now() - Number(row.next_at))
    return {
      schedules: schedules.map((row) => row.id),
      ticks: ticks.map((row) => ({ ...row, at: Number(row.at) })),
      jobs: jobs.map(({ id, options, state }) => ({ id, state, ...JSON.parse(options).tick })),
      unfinished: jobs.filter((job) => !ENDED.includes(job.state)).length,
      overdueMs: Math.max(0, ...due),
    }
  } finally {
    await ask.close()
  }
}

function onSqlite(file, ground) {
  const require = createRequire(`${ground.folder}/package/package.json`)
  const { DatabaseSync } = loadSqlite(require)
  const db = new DatabaseSync(file)
  return {
    name: (table) => `millrace_${table}`,
    number: 'seq',
    waiting: 'live',
    all: (sql) => Promise.resolve(db.prepare(sql).all()),
    close: () => Promise.resolve(db.close()),
  }
}

async function onPostgres(url, ground) {
  const require = createRequire(`${ground.folder}/package/package.json`)
  const { Client } = require('pg')
  const client = new Client(url)
  await client.connect()
  return {
    name: (table) => `millrace.${table}`,
    number: 'ref',
    waiting: 'waiting',
    all: async (sql) => (await client.query(sql)).rows,
    close: () => client.end(),
  }
}
