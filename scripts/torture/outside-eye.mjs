import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '../run.mjs'

/**
 * Reads the tables directly, without the engine: what the engine reports about itself is no evidence. The statements name the
 * engine's tables on purpose; a change of the schema must be made here too.
 */
const PLACES = `
select
  coalesce(jobs.id, '#' || places.seq) as id,
  jobs.seq is not null as hasBody,
  lanes.name as name,
  live.state as live,
  live.crashes as crashes,
  history.state as history,
  history.reason as reason,
  history.result as result
from (
  select seq from millrace_jobs
  union
  select seq from millrace_live
  union
  select seq from millrace_history
) as places
left join millrace_jobs as jobs using (seq)
left join millrace_lanes as lanes using (lane)
left join millrace_live as live using (seq)
left join millrace_history as history using (seq)`

/**
 * Counts settlements in the transaction that makes them, so that a second one cannot hide: history has one row a job, and
 * an overwritten row looks like a single one.
 */
const WATCH_SETTLEMENTS = `
create table if not exists torture_settled (seq integer not null);
create trigger if not exists torture_settled after insert on millrace_history
begin
  insert into torture_settled (seq) values (new.seq);
end`

/**
 * What the errands of a run need: the tables of an app beside the jobs, and a record of each job that is written while another
 * one of its unique value is unfinished, made in the transaction that writes it.
 */
const MAKE_ERRANDS = `
create table if not exists torture_work (id text not null);
create table if not exists torture_orders (id text not null);
create table if not exists torture_twice (seq integer not null);
create trigger if not exists torture_twice after insert on millrace_live
when (select options ->> '$.unique.key' from millrace_jobs where seq = new.seq) is not null
begin
  insert into torture_twice (seq)
  select new.seq
  from millrace_live as live
  join millrace_jobs as jobs using (seq)
  where live.lane = new.lane
    and live.seq <> new.seq
    and jobs.options ->> '$.unique.key' = (select options ->> '$.unique.key' from millrace_jobs where seq = new.seq);
end`

/** Jobs that are done without exactly one row of work, or have one without being done. */
const WORK_ASTRAY = `
select coalesce(jobs.id, work.id) as id, coalesce(history.state, live.state, 'gone') as state, coalesce(work.times, 0) as times
from (select id, count(*) as times from torture_work group by id) as work
full join (
  select jobs.*
  from millrace_jobs as jobs
  join millrace_lanes as lanes using (lane)
  where lanes.name in ('banker', 'teller')
) as jobs using (id)
left join millrace_live as live using (seq)
left join millrace_history as history using (seq)
where coalesce(work.times, 0) <> (coalesce(history.state, '') = 'done')`

/** Orders without exactly one job, and jobs without their order. */
const ORDERS_ASTRAY = `
select coalesce(orders.id, jobs.id) as id, coalesce(jobs.times, 0) as jobs
from torture_orders as orders
full join (
  select payload ->> '$.order' as id, count(*) as times
  from millrace_jobs
  join millrace_lanes as lanes using (lane)
  where lanes.name = 'ordered'
  group by 1
) as jobs using (id)
where orders.id is null or coalesce(jobs.times, 0) <> 1`

const TWICE = `
select jobs.id
from torture_twice
join millrace_jobs as jobs using (seq)`

const COUNTS = `
select
  (select count(*) from torture_work) as works,
  (select count(*) from torture_orders) as orders,
  (select count(*) from millrace_jobs join millrace_lanes as lanes using (lane) where lanes.name = 'sole') as soles`

const PAUSED = `select queue from millrace_pauses where until is null`

const SETTLED_TWICE = `
select jobs.id, count(*) as times
from torture_settled
join millrace_jobs as jobs using (seq)
group by torture_settled.seq
having count(*) > 1`

const SETTLED_OF = `
select jobs.id
from millrace_jobs as jobs
join millrace_history using (seq)
where jobs.id in (select value from json_each(?))`

const UNFINISHED = `select count(*) as count from millrace_live where state <> 'parked'`

const DONE = `select count(*) as count from millrace_history where state = 'done'`

export class OutsideEye {
  #database
  constructor(file) {
    const require = createRequire(join(root, 'package.json'))
    const { DatabaseSync } = loadSqlite(require)
    this.#database = new DatabaseSync(file)
    this.#database.exec('pragma busy_timeout = 10000')
  }

  hasTables() {
    return this.#has('millrace_history')
  }
  watchSettlements() {
    this.#database.exec(WATCH_SETTLEMENTS)
    this.#database.exec(MAKE_ERRANDS)
  }
  workAstray() {
    return this.#database.prepare(WORK_ASTRAY).all()
  }
  ordersAstray() {
    return this.#database.prepare(ORDERS_ASTRAY).all()
  }
  /** Jobs that were written while another one of their unique value was unfinished. */
  twice() {
    return this.#database.prepare(TWICE).all()
  }
  counts() {
    return this.#database.prepare(COUNTS).get()
  }
  /** Queues that are paused without a time. */
  pausedQueues() {
    return this.#database
      .prepare(PAUSED)
      .all()
      .map((row) => row.queue)
  }
  /** Every job, and its table: a body without a row and a row without a body are listed too. */
  places() {
    return this.#database.prepare(PLACES).all()
  }
  settledTwice() {
    if (!this.#has('torture_settled')) return []
    return this.#database.prepare(SETTLED_TWICE).all()
  }
  /** Which of these have ended. */
  settledOf(ids) {
    return new Set(
      this.#database
        .prepare(SETTLED_OF)
        .all(JSON.stringify(ids))
        .map((row) => row.id),
    )
  }
  unfinished() {
    return Number(this.#database.prepare(UNFINISHED).get().count)
  }
  done() {
    return Number(this.#database.prepare(DONE).get().count)
  }
  /** 'ok', or what is broken. */
  integrity() {
    const rows = this.#database.prepare('pragma integrity_check').all()
    return rows.map((row) => row.integrity_check).join('; ')
  }
  close() {
    this.#database.close()
  }

  #has(table) {
    return (
      this.#database.prepare(`select 1 from sqlite_schema where type = 'table' and name = ?`).get(table) !== undefined
    )
  }
}

/** The library the engine uses here: the packaged one, else the runtime's own. */
export function loadSqlite(require) {
  try {
    return require('@photostructure/sqlite')
  } catch {
    return process.getBuiltinModule('node:sqlite') // No packaged binary for this machine; the engine chooses the same.
  }
}
