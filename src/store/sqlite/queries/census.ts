import type { Census } from '../../census.js'
import { callerQueries } from './caller-transactions.js'
import type { SqliteDatabase, Statements } from '../connection/driver.js'

/** How often this connection has changed anything: when it has not, the census is as it was. */
export function countChanges(statements: Statements): number {
  return (statements.of('select total_changes() as changes').get() as { changes: number }).changes
}

/** As one text: thousands of small looks are taken, and a driver's rows cost more than the query. */
export function readCensus(statements: Statements): Census {
  return readText(statements, CENSUS) as Census
}

/** With how often the work of each job was written by a transaction of the app (`makeWork`). */
export function readCensusWithWork(statements: Statements): Census & { readonly works: readonly WorkOfJob[] } {
  return readText(statements, CENSUS_WITH_WORK) as Census & { readonly works: readonly WorkOfJob[] }
}

export interface WorkOfJob {
  readonly id: string
  readonly times: number
}

function readText(statements: Statements, sql: string): unknown {
  return JSON.parse((statements.of(sql).get() as { census: string }).census)
}

/** A table of an app beside the jobs, to see whether a job and its work are one write. */
export function makeWork(database: SqliteDatabase): void {
  database.exec(MAKE_WORK)
}

/** The work of a job is done, if the transaction of this handle commits. */
export function writeWork(tx: SqliteDatabase, id: string): void {
  tx.prepare(WRITE_WORK).run(id)
}

/** A transaction of the app's own, from its begin to its end in one go; what `work` throws rolls it back. */
export function transact(database: SqliteDatabase, work: (tx: SqliteDatabase) => void): void {
  database.exec(callerQueries.beginNow)
  try {
    work(database)
    database.exec(callerQueries.commit)
  } catch (error) {
    database.exec(callerQueries.rollback)
    throw error
  }
}

const MAKE_WORK = `create table simulated_work (id text not null)`
const WRITE_WORK = `insert into simulated_work (id) values (?)`

const WORKS = `
    'works', (select json_group_array(json_object('id', id, 'times', times))
     from (select id, count(*) as times from simulated_work group by id)),`

const census = (more: string): string => `
  select json_object(
    'jobs', (select json_group_array(json_object(
       'seq', j.seq, 'id', j.id, 'name', n.name, 'queue', n.queue, 'key', j.key, 'group', j.grp, 'follows', j.payload ->> '$.follows', 'places', (l.seq is not null) + (h.seq is not null),
       'place', j.options ->> '$.unique.key', 'while', j.options ->> '$.unique.while', 'createdAt', j.created_at,
       'state', coalesce(l.state, h.state), 'fence', l.fence, 'dueAt', coalesce(l.due_at, h.due_at),
       'tick', (j.options ->> '$.tick.schedule') || ' ' || (j.options ->> '$.tick.at'), 'attempt', coalesce(l.attempt, h.attempt), 'retries', coalesce(l.retries, h.retries),
       'crashes', coalesce(l.crashes, h.crashes), 'streak', coalesce(l.streak, 0), 'reason', coalesce(l.reason, h.reason), 'worker', h.worker, 'keepUntil', h.keep_until,
       'told', json_extract(coalesce(l.log, h.log), '$[#-1].worker'), 'lines', coalesce(json_array_length(coalesce(l.log, h.log)), 0),
       'after', json(coalesce(j.after, '[]')), 'asked', json(coalesce(j.payload -> '$.asked', '[]')), 'policy', j.payload ->> '$.policy', 'n', j.payload ->> '$.n'))
     from millrace_jobs j
     join millrace_lanes n on n.lane = j.lane
     left join millrace_live l on l.seq = j.seq
     left join millrace_history h on h.seq = j.seq),
    'keys', (select json_group_array(json_object('name', name, 'key', key, 'seq', seq)) from millrace_keys),
    'workers', (select json_group_array(json_object('worker', worker, 'beat', beat)) from millrace_workers),
    'leases', (select json_group_array(json_object('fence', fence, 'worker', worker, 'quarantined', quarantined, 'jobs', json(jobs)))
     from millrace_leases),
    'requests', (select json_group_array(json_object('seq', seq, 'kind', kind)) from millrace_requests),
    'pauses', (select json_group_array(json_object('queue', queue, 'until', until)) from millrace_pauses),
    'ticks', (select json_group_array(json_object('schedule', schedule, 'at', at, 'byHand', by_hand, 'job', job)) from millrace_ticks),
    'schedules', (select json_group_array(json_object('id', id, 'everyMs', spec ->> '$.rule.every', 'nextAt', next_at,
       'waitsForFrom', coalesce(spec ->> '$.fromAt' > coalesce(last_at, 0) and spec ->> '$.anchorAt' is null, 0))) from millrace_schedules),
    'groups', (select json_group_array(json_object(
       'group', grp, 'unfinished', unfinished, 'sealedAt', sealed_at, 'completedAt', completed_at)) from millrace_groups),
    'counts', (select json_group_array(json_object('group', grp, 'queue', queue, 'state', state, 'members', members))
     from millrace_group_counts where members <> 0),
    'links', (select json_group_array(json_object('parent', parent, 'child', child, 'policy', on_failure)) from millrace_links),
    'todos', (select json_group_array(parent) from millrace_link_todos),
${more}
    'strays', (select count(*) from millrace_live where seq not in (select seq from millrace_jobs))
      + (select count(*) from millrace_history where seq not in (select seq from millrace_jobs))) as census`

const CENSUS = census('')
const CENSUS_WITH_WORK = census(WORKS)
