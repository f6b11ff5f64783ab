import { DAY_MS } from '../../../job/statistics/buckets.js'

const jobsWhere = (condition: string): string => `(select json_group_array(json_object(
         'seq', j.seq, 'id', j.id, 'name', n.name, 'queue', n.queue, 'key', j.key, 'group', j.grp, 'follows', j.payload ->> '$.follows', 'tableCount', (l.seq is not null) + (h.seq is not null),
         'slot', j.options ->> '$.unique.key', 'while', j.options ->> '$.unique.while', 'createdAt', j.created_at,
         'state', coalesce(l.state, h.state), 'fence', l.fence, 'dueAt', coalesce(l.due_at, h.due_at),
         'calledBy', j.options ->> '$.calledBy.id', 'tick', (j.options ->> '$.tick.schedule') || ' ' || (j.options ->> '$.tick.at'), 'attempt', coalesce(l.attempt, h.attempt), 'retries', coalesce(l.retries, h.retries),
         'crashes', coalesce(l.crashes, h.crashes), 'streak', coalesce(l.streak, 0), 'reason', coalesce(l.reason, h.reason), 'worker', h.worker, 'keepUntil', h.keep_until,
         'lastLogWorker', json_extract(coalesce(l.log, h.log), '$[#-1].worker'), 'logEntries', coalesce(json_array_length(coalesce(l.log, h.log)), 0),
         'after', json(coalesce(j.after, '[]')), 'payloadParents', json(coalesce(j.payload -> '$.after', '[]')), 'policy', j.payload ->> '$.policy', 'n', j.payload ->> '$.n'))
       from millrace_jobs j
       join millrace_lanes n on n.lane = j.lane
       left join millrace_live l on l.seq = j.seq
       left join millrace_history h on h.seq = j.seq
       ${condition})`

/** A table of an app beside the jobs. */
const WORK = 'simulated_work'

/** The parts of a census, each with the tables that it is read from. */
const PARTS: { readonly [part: string]: { readonly tables: readonly string[]; readonly sql: string } } = {
  jobs: {
    tables: ['millrace_jobs', 'millrace_live', 'millrace_history'],
    sql: jobsWhere(''),
  },
  keys: {
    tables: ['millrace_keys'],
    sql: `(select json_group_array(json_object('name', name, 'key', key, 'seq', seq)) from millrace_keys)`,
  },
  slots: {
    tables: ['millrace_uniques'],
    sql: `(select json_group_array(json_object('name', name, 'key', key, 'job', id, 'until', until)) from millrace_uniques)`,
  },
  workers: {
    tables: ['millrace_workers'],
    sql: `(select json_group_array(json_object('worker', worker, 'beat', beat)) from millrace_workers)`,
  },
  leases: {
    tables: ['millrace_leases'],
    sql: `(select json_group_array(json_object('fence', fence, 'worker', worker, 'quarantined', quarantined, 'jobs', json(jobs)))
       from millrace_leases)`,
  },
  requests: {
    tables: ['millrace_requests'],
    sql: `(select json_group_array(json_object('seq', seq, 'kind', kind)) from millrace_requests)`,
  },
  outages: {
    tables: ['millrace_outages'],
    sql: `(select json_group_array(json_object('queue', n.queue, 'name', n.name, 'state', o.state))
       from millrace_outages o join millrace_lanes n on n.lane = o.lane)`,
  },
  pauses: {
    tables: ['millrace_pauses'],
    sql: `(select json_group_array(json_object('queue', queue, 'until', until)) from millrace_pauses)`,
  },
  ticks: {
    tables: ['millrace_ticks'],
    sql: `(select json_group_array(json_object('schedule', schedule, 'at', at, 'byHand', by_hand, 'job', job)) from millrace_ticks)`,
  },
  schedules: {
    tables: ['millrace_schedules'],
    sql: `(select json_group_array(json_object('id', id, 'everyMs', spec ->> '$.rule.every', 'nextAt', next_at,
         'waitsForFrom', coalesce(spec ->> '$.fromAt' > coalesce(last_at, 0) and spec ->> '$.anchorAt' is null, 0))) from millrace_schedules)`,
  },
  groups: {
    tables: ['millrace_groups'],
    sql: `(select json_group_array(json_object(
         'group', grp, 'unfinished', unfinished, 'sealedAt', sealed_at, 'completedAt', completed_at)) from millrace_groups)`,
  },
  counts: {
    tables: ['millrace_group_counts'],
    sql: `(select json_group_array(json_object('group', grp, 'queue', queue, 'state', state, 'members', members))
       from millrace_group_counts where members <> 0)`,
  },
  attempts: {
    tables: ['millrace_stats', 'millrace_stats_moves'],
    sql: `(select json_group_array(json_object('queue', queue, 'name', name, 'done', done, 'failed', failed, 'retried', retried))
       from (
         select queue, name, sum(done) as done, sum(failed) as failed, sum(retried) as retried
         from (
           select queue, name, done, failed, retried from millrace_stats where span = ${DAY_MS}
           union all
           select queue, name, done, failed, retried from millrace_stats_moves)
         group by queue, name
         order by queue, name))`,
  },
  links: {
    tables: ['millrace_links'],
    sql: `(select json_group_array(json_object('parent', parent, 'child', child, 'policy', on_failure)) from millrace_links)`,
  },
  todos: {
    tables: ['millrace_link_todos'],
    sql: `(select json_group_array(parent) from millrace_link_todos)`,
  },
  sequences: {
    tables: ['millrace_lists', 'millrace_jobs', 'millrace_workflows', 'millrace_items', 'millrace_steps'],
    sql: `(select json_group_array(json_object('id', j.id, 'run', w.run, 'total', t.total,
         'items', (select count(*) from millrace_items i where i.list = t.list),
         'rows', (select json_group_array(json_object('address', address, 'no', no, 'attempt', attempt, 'value', value))
          from (select * from millrace_steps s where s.seq = j.seq and s.run = w.run order by address))))
       from millrace_lists t
       join millrace_jobs j on j.id = t.id
       join millrace_workflows w on w.seq = j.seq)`,
  },
  workflows: {
    tables: ['millrace_jobs', 'millrace_workflows', 'millrace_steps', 'millrace_inbox'],
    sql: `(select json_group_array(json_object('id', j.id, 'run', coalesce(w.run - w.first_run, 0), 'waits', json(w.waits), 'wakeAt', w.wake_at,
         'pausedFrom', w.paused_from,
         'rows', (select json_group_array(json_object('address', address, 'kind', kind, 'no', no, 'since', since, 'value', value,
            'error', error, 'note', note))
          from (select * from millrace_steps s where s.seq = j.seq and s.run = coalesce(w.run, 0) order by no is null, no, number)),
         'inbox', (select json_group_array(json_object('number', number, 'kind', kind, 'name', name, 'payload', payload))
          from (select * from millrace_inbox i where i.job = j.id and i.taken = 0 order by number))))
       from millrace_jobs j
       left join millrace_workflows w on w.seq = j.seq
       where j.shape = 'workflow')`,
  },
  long: {
    tables: [
      'millrace_steps',
      'millrace_workflows',
      'millrace_lists',
      'millrace_items',
      'millrace_inbox',
      'millrace_leftovers',
    ],
    sql: `json_object('steps', (select count(*) from millrace_steps), 'workflows', (select count(*) from millrace_workflows),
         'lists', (select count(*) from millrace_lists), 'items', (select count(*) from millrace_items),
         'inbox', (select count(*) from millrace_inbox), 'leftovers', (select count(*) from millrace_leftovers))`,
  },
  /** How often a transaction of an app wrote the work of each job. */
  works: {
    tables: [WORK],
    sql: `(select json_group_array(json_object('id', id, 'times', times))
       from (select id, count(*) as times from ${WORK} group by id))`,
  },
  strays: {
    tables: [
      'millrace_live',
      'millrace_jobs',
      'millrace_steps',
      'millrace_inbox',
      'millrace_leftovers',
      'millrace_history',
    ],
    sql: `(select count(*) from millrace_live where seq not in (select seq from millrace_jobs))
        + (select count(*) from millrace_steps where seq not in (select seq from millrace_jobs where shape is not null)
             and seq not in (select seq from millrace_leftovers where seq is not null))
        + (select count(*) from millrace_inbox where job not in (select id from millrace_jobs)
             and job not in (select job from millrace_leftovers where job is not null))
        + (select count(*) from millrace_history where seq not in (select seq from millrace_jobs))`,
  },
}

const CHANGES = 'simulated_changes'

const census = (names: readonly string[]): string =>
  `select json_object(${names.map((name) => `'${name}', ${PARTS[name]?.sql}`).join(',\n    ')}) as census`

/** The part `jobs` is read job by job. */
const COUNTED: readonly string[] = ['millrace_jobs', 'millrace_live', 'millrace_history']

/** Beats write the table of workers: it is read every time, so that they need not be counted here too. */
const tablesWithTrigger = [...new Set(Object.values(PARTS).flatMap(({ tables }) => tables))].filter(
  (table) => table !== 'millrace_workers',
)

const triggersOf = (table: string): string =>
  (['insert', 'update', 'delete'] as const)
    .map((event) => {
      const seq = COUNTED.includes(table) ? `${event === 'delete' ? 'old' : 'new'}.seq` : '0'
      return `create temp trigger ${table}_${event} after ${event} on main.${table} begin
        insert into ${CHANGES} (source, seq) values ('${table}', ${seq});
      end;`
    })
    .join('\n')

/** Everything in a store as one JSON text, and a table of an app beside the jobs. Only tests and the simulator run these. */
export const censusQueries = {
  countChanges: `select total_changes() as changes`,
  readCensus: census(Object.keys(PARTS).filter((name) => name !== 'works')),
  /** From now on each change of a row is noted, so that a census reads again only what has changed. */
  noteChanges: `create temp table ${CHANGES} (no integer primary key, source text not null, seq integer not null);
    ${tablesWithTrigger.map(triggersOf).join('\n')}`,
  changesSince: `select max(no) as no, source, json_group_array(distinct seq) as seqs from ${CHANGES} where no > ? group by source`,
  readJobs: `select ${jobsWhere('where j.seq in (select value from json_each(?))')} as census`,
  readParts: Object.fromEntries(Object.keys(PARTS).map((name) => [name, `select ${PARTS[name]?.sql} as census`])),
  makeWork: `create table ${WORK} (id text not null)`,
  writeWork: `insert into ${WORK} (id) values (?)`,
  /** A delete of a row may write the change log, which is emptied last. */
  tables: `select name from (
      select name from sqlite_schema
      where type = 'table' and name like 'millrace\\_%' escape '\\' and name <> 'millrace_migrations'
      union all values ('${WORK}'), ('${CHANGES}'))
    order by name = 'millrace_changes', name = '${CHANGES}'`,
}

/** The parts that are read from each table. */
export const CENSUS_PARTS: ReadonlyMap<string, readonly string[]> = new Map(
  [...tablesWithTrigger, 'millrace_workers'].map((table) => [
    table,
    Object.keys(PARTS).filter((name) => PARTS[name]?.tables.includes(table)),
  ]),
)
