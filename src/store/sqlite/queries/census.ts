const WORKS = `
    'works', (select json_group_array(json_object('id', id, 'times', times))
     from (select id, count(*) as times from simulated_work group by id)),`

const census = (more: string): string => `
  select json_object(
    'jobs', (select json_group_array(json_object(
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
     left join millrace_history h on h.seq = j.seq),
    'keys', (select json_group_array(json_object('name', name, 'key', key, 'seq', seq)) from millrace_keys),
    'slots', (select json_group_array(json_object('name', name, 'key', key, 'job', id, 'until', until)) from millrace_uniques),
    'workers', (select json_group_array(json_object('worker', worker, 'beat', beat)) from millrace_workers),
    'leases', (select json_group_array(json_object('fence', fence, 'worker', worker, 'quarantined', quarantined, 'jobs', json(jobs)))
     from millrace_leases),
    'requests', (select json_group_array(json_object('seq', seq, 'kind', kind)) from millrace_requests),
    'outages', (select json_group_array(json_object('queue', n.queue, 'name', n.name, 'state', o.state))
     from millrace_outages o join millrace_lanes n on n.lane = o.lane),
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
    'sequences', (select json_group_array(json_object('id', j.id, 'run', w.run, 'total', t.total,
       'items', (select count(*) from millrace_items i where i.list = t.list),
       'rows', (select json_group_array(json_object('address', address, 'no', no, 'attempt', attempt, 'value', value))
        from (select * from millrace_steps s where s.seq = j.seq and s.run = w.run order by address))))
     from millrace_lists t
     join millrace_jobs j on j.id = t.id
     join millrace_workflows w on w.seq = j.seq),
    'workflows', (select json_group_array(json_object('id', j.id, 'run', coalesce(w.run, 0), 'waits', json(w.waits), 'wakeAt', w.wake_at,
       'pausedFrom', w.paused_from,
       'rows', (select json_group_array(json_object('address', address, 'kind', kind, 'no', no, 'since', since, 'value', value,
          'error', error, 'note', note))
        from (select * from millrace_steps s where s.seq = j.seq and s.run = coalesce(w.run, 0) order by no is null, no, number)),
       'inbox', (select json_group_array(json_object('number', number, 'kind', kind, 'name', name, 'payload', payload))
        from (select * from millrace_inbox i where i.job = j.id and i.taken = 0 order by number))))
     from millrace_jobs j
     left join millrace_workflows w on w.seq = j.seq
     where j.shape = 'workflow'),
    'long', json_object('steps', (select count(*) from millrace_steps), 'workflows', (select count(*) from millrace_workflows),
       'lists', (select count(*) from millrace_lists), 'items', (select count(*) from millrace_items),
       'inbox', (select count(*) from millrace_inbox), 'leftovers', (select count(*) from millrace_leftovers)),
${more}
    'strays', (select count(*) from millrace_live where seq not in (select seq from millrace_jobs))
      + (select count(*) from millrace_steps where seq not in (select seq from millrace_jobs where shape is not null)
           and seq not in (select seq from millrace_leftovers where seq is not null))
      + (select count(*) from millrace_inbox where job not in (select id from millrace_jobs)
           and job not in (select job from millrace_leftovers where job is not null))
      + (select count(*) from millrace_history where seq not in (select seq from millrace_jobs))) as census`

/** Everything in a store as one JSON text, and a table of an app beside the jobs. Only tests and the simulator run these. */
export const censusQueries = {
  countChanges: `select total_changes() as changes`,
  readCensus: census(''),
  readCensusWithWork: census(WORKS),
  makeWork: `create table simulated_work (id text not null)`,
  writeWork: `insert into simulated_work (id) values (?)`,
}
