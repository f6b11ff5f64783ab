import type { Census } from '../../census.js'
import { callerQueries } from './caller-transactions.js'
import type { SqliteDatabase, Statements } from '../connection/driver.js'

/** The number of changes that this connection has made: while it is the same, the census is the same. */
export function countChanges(statements: Statements): number {
  return (statements.of('select total_changes() as changes').get() as { changes: number }).changes
}

/**
 * Read as one JSON text: the simulator reads thousands of small censuses, and the driver's rows cost more than the
 * query.
 */
export function readCensus(statements: Statements): Census {
  return readText(statements, CENSUS) as Census
}

/** The census with the number of times that a transaction of the app wrote the work of each job (`makeWork`). */
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

/** A table of an app beside the jobs, to check that a job and its work commit together. */
export function makeWork(database: SqliteDatabase): void {
  database.exec(MAKE_WORK)
}

/** Records the work of a job in the transaction of this handle. */
export function writeWork(tx: SqliteDatabase, id: string): void {
  tx.prepare(WRITE_WORK).run(id)
}

/** A transaction of the app, from begin to end in one call; a throw of `work` rolls it back. */
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
       'seq', j.seq, 'id', j.id, 'name', n.name, 'queue', n.queue, 'key', j.key, 'group', j.grp, 'follows', j.payload ->> '$.follows', 'tableCount', (l.seq is not null) + (h.seq is not null),
       'slot', j.options ->> '$.unique.key', 'while', j.options ->> '$.unique.while', 'createdAt', j.created_at,
       'state', coalesce(l.state, h.state), 'fence', l.fence, 'dueAt', coalesce(l.due_at, h.due_at),
       'tick', (j.options ->> '$.tick.schedule') || ' ' || (j.options ->> '$.tick.at'), 'attempt', coalesce(l.attempt, h.attempt), 'retries', coalesce(l.retries, h.retries),
       'crashes', coalesce(l.crashes, h.crashes), 'streak', coalesce(l.streak, 0), 'reason', coalesce(l.reason, h.reason), 'worker', h.worker, 'keepUntil', h.keep_until,
       'lastLogWorker', json_extract(coalesce(l.log, h.log), '$[#-1].worker'), 'logEntries', coalesce(json_array_length(coalesce(l.log, h.log)), 0),
       'after', json(coalesce(j.after, '[]')), 'payloadParents', json(coalesce(j.payload -> '$.parents', '[]')), 'policy', j.payload ->> '$.policy', 'n', j.payload ->> '$.n'))
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
