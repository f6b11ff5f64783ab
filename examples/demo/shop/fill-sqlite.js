import { chooseLibrary } from '../../../dist/store/sqlite/connection/library.js'
import { LANE_NAMES, columnsOf, historyOf } from './history.js'

const PER_TRANSACTION = 20_000

/** Writes the history into a file whose tables a mill has made. */
export async function fillSqlite(path, given) {
  const database = new (chooseLibrary().open)(path)
  database.exec('pragma journal_mode = wal; pragma synchronous = off; pragma busy_timeout = 5000')
  const insert = statementsOf(database)
  const lanes = new Map(LANE_NAMES.map(({ job, queue }) => [job, insert.lane(queue, job)]))
  database.exec('begin immediate')
  let seq = Number(database.prepare('select coalesce(max(seq), 0) as seq from millrace_jobs').get().seq)
  for (const { job, statistics, tick } of historyOf(given)) {
    if (tick !== undefined) insert.tick(tick)
    else if (statistics !== undefined) insert.move(statistics)
    else insert.job((seq += 1), lanes.get(job.job), job)
    if (seq % PER_TRANSACTION !== 0) continue
    database.exec('commit; begin immediate')
    await new Promise((next) => setImmediate(next)) // Ctrl-C is seen
  }
  database.exec('commit')
  database.close()
}

function statementsOf(database) {
  const jobs = database.prepare(
    'insert into millrace_jobs (seq, id, lane, priority, payload, options, created_at) values (?, ?, ?, 0, ?, ?, ?)',
  )
  const history = database.prepare(
    `insert into millrace_history
       (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker, result, error, reason, log)
     values (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const labels = database.prepare('insert into millrace_labels (seq, label) values (?, ?)')
  const moves = database.prepare(
    `insert into millrace_stats_moves (queue, name, at, done, failed, retried, wait, run, failures)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const ticks = database.prepare(
    'insert into millrace_ticks (schedule, at, by_hand, outcome, reason, job, fired_at) values (?, ?, 0, ?, ?, ?, ?)',
  )
  const lane = database.prepare('select lane from millrace_lanes where queue = ? and name = ?')
  const newLane = database.prepare('insert into millrace_lanes (queue, name) values (?, ?) on conflict do nothing')
  return {
    lane: (queue, name) => {
      newLane.run(queue, name)
      return lane.get(queue, name).lane
    },
    job: (seq, its, job) => {
      const row = columnsOf(job)
      jobs.run(seq, job.id, its, row.payload, row.options, row.createdAt)
      history.run(
        seq,
        job.state,
        job.at,
        job.attempt,
        job.retries,
        row.startedAt,
        row.settledAt,
        row.keepUntil,
        row.worker,
        row.result,
        row.error,
        job.reason,
        row.log,
      )
      for (const label of row.labels) labels.run(seq, label)
    },
    tick: ({ schedule, at, outcome, reason, job, firedAt }) => ticks.run(schedule, at, outcome, reason, job, firedAt),
    move: ({ queue, job, at, done, failed, retried, wait, run, failures }) =>
      moves.run(queue, job, at, done, failed, retried, wait, run, failures),
  }
}
