import type { LinkPolicy } from '../../../job/rules/links.js'
import type { State } from '../../../job/rules/states.js'
import type { UniqueWhile } from '../../../job/rules/unique.js'
import type { RequestKind } from '../../../job/rules/request.js'
import { callerQueries } from './caller-transactions.js'
import type { SqliteDatabase, Statements } from '../connection/driver.js'

/** Everything in the store, for those who check it: the simulator's oracle and the torture's census. Not for production. */
export interface Census {
  readonly jobs: readonly CensusJob[]
  readonly keys: readonly { readonly name: string; readonly key: string; readonly seq: number }[]
  readonly workers: readonly { readonly worker: string; readonly beat: number }[]
  readonly leases: readonly {
    readonly fence: number
    readonly worker: string
    readonly quarantined: number
    readonly jobs: readonly number[]
  }[]
  /** The changes requested of jobs that run. */
  readonly requests: readonly { readonly seq: number; readonly kind: RequestKind }[]
  readonly pauses: readonly { readonly queue: string; readonly until: number | null }[]
  /** The ledgers of what recurs. */
  readonly ticks: readonly {
    readonly schedule: string
    readonly at: number
    readonly byHand: number
    readonly job: string | null
  }[]
  /** `everyMs` is null for a cron; `waitsForFrom` is 1 while a schedule has not reached its `from`. */
  readonly schedules: readonly {
    readonly id: string
    readonly everyMs: number | null
    readonly nextAt: number | null
    readonly waitsForFrom: number
  }[]
  readonly groups: readonly {
    readonly group: string
    readonly unfinished: number
    readonly sealedAt: number | null
    readonly completedAt: number | null
  }[]
  /** How many members of groups are counted where; what is zero is left out. */
  readonly counts: readonly {
    readonly group: string
    readonly queue: string
    readonly state: State
    readonly members: number
  }[]
  /** Open links between a parent and a child that waits for it, and parents whose ends are still to be looked at. */
  readonly links: readonly { readonly parent: string; readonly child: number; readonly policy: LinkPolicy }[]
  readonly todos: readonly string[]
  /** How often the work of a job was written by its own transaction, where an app does so (see `makeWork`). */
  readonly works: readonly { readonly id: string; readonly times: number }[]
  /** Rows of live or history that no job row stands behind. */
  readonly strays: number
}

export interface CensusJob {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly key: string | null
  readonly group: string | null
  /** The group that its payload says it follows. */
  readonly follows: string | null
  /** The place it was enqueued for, and what it asked of others there; null when it need not be unique. */
  readonly place: string | null
  readonly while: UniqueWhile | null
  readonly createdAt: number
  /** How many of the two places it is in: must be one. */
  readonly places: number
  readonly state: State | null
  readonly fence: number | null
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly streak: number
  /** Why it is where it is. */
  readonly reason: string | null
  /** Who ended it. */
  readonly worker: string | null
  /** Whose the last line of its history is ('' for a command's), and how many lines there are. */
  readonly told: string | null
  /** The tick of a recurring job that it is of: its schedule and instant. */
  readonly tick: string | null
  readonly lines: number
  /** Until when a finished job is kept; null while it is unfinished, and when it is kept for ever. */
  readonly keepUntil: number | null
  /** The jobs it comes after, as the store has it. */
  readonly after: readonly string[]
  /** What its payload says of that: some of those it must come after, and what it does when one of them fails. */
  readonly asked: readonly string[]
  readonly policy: LinkPolicy | null
  /** A number in its payload, which some jobs return. */
  readonly n: number | null
}

/** How often this connection has changed anything: when it has not, the census is as it was. */
export function countChanges(statements: Statements): number {
  return (statements.of('select total_changes() as changes').get() as { changes: number }).changes
}

/** As one text: thousands of small looks are taken, and a driver's rows cost more than the query. */
export function readCensus(statements: Statements): Census {
  const { census } = statements.of(CENSUS).get() as { census: string }
  return JSON.parse(census) as Census
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

const CENSUS = `
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
    'works', (select json_group_array(json_object('id', id, 'times', times))
     from (select id, count(*) as times from simulated_work group by id)),
    'strays', (select count(*) from millrace_live where seq not in (select seq from millrace_jobs))
      + (select count(*) from millrace_history where seq not in (select seq from millrace_jobs))) as census`
