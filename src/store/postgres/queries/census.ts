import { jobRow, s } from './sql-fragments.js'

/** Members of groups by queue and state: the counts, and the moves that are not folded into them yet. */
const members = `(
      select grp, queue, state, sum(members)::bigint as members
      from (
        select grp, queue, state, members from ${s}.group_counts
        union all
        select grp, queue, state, members from ${s}.group_moves) as each
      group by grp, queue, state)`

/** A parent may be deleted: then only its to-do has its id. */
const idOf = (ref: string): string => `coalesce(
      (select j.id::text from ${s}.jobs j where j.ref = ${ref} limit 1),
      (select t.id::text from ${s}.link_todos t where t.parent = ${ref} and t.id is not null limit 1))`

const all = (columns: string, from: string): string =>
  `(select coalesce(json_agg(json_build_object(${columns})), '[]') from ${from})`

/** Everything in the store in one snapshot, for checkers (`store/census.ts`). It reads whole tables. */
export const censusQueries = {
  readCensus: `
    select json_build_object(
      'jobs', ${all(
        `'seq', j.ref, 'id', j.id, 'name', j.name, 'queue', j.queue, 'key', j.key, 'group', j.grp, 'payload', j.payload,
         'options', j.options, 'createdAt', j.created_at, 'state', j.state, 'fence', j.fence, 'dueAt', j.due_at,
         'attempt', j.attempt, 'retries', j.retries, 'crashes', j.crashes, 'streak', j.streak, 'reason', j.reason,
         'worker', j.worker, 'log', j.log, 'after', j.after,
         'keepUntil', (select h.keep_until from ${s}.history h where h.ref = j.ref),
         'rows', (select count(*) from ${s}.history h where h.ref = j.ref)
           + (select count(*) from ${s}.waiting w where w.ref = j.ref)
           + (select count(*) from ${s}.ready r where r.ref = j.ref),
         'leases', (select count(*) from ${s}.leases e where j.ref = any(e.refs) and not j.ref = any(e.released))`,
        `(${jobRow}) as j`,
      )},
      'keys', ${all(`'name', name, 'key', key, 'seq', ref`, `${s}.keys`)},
      'slots', ${all(`'name', name, 'key', key, 'job', id, 'until', until`, `${s}.uniques`)},
      'workers', ${all(`'worker', worker, 'beat', beat`, `${s}.workers`)},
      'leases', ${all(
        `'fence', fence, 'worker', worker, 'quarantined', quarantined,
         'jobs', array(select ref from unnest(refs) as each (ref) where not ref = any(released))`,
        `${s}.leases`,
      )},
      'requests', ${all(`'seq', ref, 'kind', kind`, `${s}.requests`)},
      'pauses', ${all(`'queue', queue, 'until', until`, `${s}.pauses`)},
      'ticks', ${all(`'schedule', schedule, 'at', at, 'byHand', by_hand::integer, 'job', job`, `${s}.ticks`)},
      'schedules', ${all(
        `'id', id, 'everyMs', (spec::json->'rule'->>'every')::bigint, 'nextAt', next_at,
         'waitsForFrom', (coalesce((spec::json->>'fromAt')::bigint > coalesce(last_at, 0), false)
           and spec::json->>'anchorAt' is null)::integer`,
        `${s}.schedules`,
      )},
      'groups', ${all(
        `'group', g.grp, 'sealedAt', g.sealed_at, 'completedAt', g.completed_at,
         'unfinished', coalesce((
           select sum(m.members) from ${members} as m
           where m.grp = g.grp and m.state not in ('done', 'failed', 'cancelled')), 0)`,
        `${s}.groups g`,
      )},
      'counts', ${all(
        `'group', grp, 'queue', queue, 'state', state, 'members', members`,
        `${members} as m where members <> 0`,
      )},
      'links', ${all(`'parent', ${idOf('l.parent')}, 'child', l.child, 'policy', l.on_failure`, `${s}.links l`)},
      'todos', (select coalesce(json_agg(${idOf('t.parent')}), '[]') from ${s}.link_todos t),
      'strays', (select count(*) from ${s}.history h where not exists (select from ${s}.jobs j where j.ref = h.ref))
        + (select count(*) from ${s}.waiting w where not exists (select from ${s}.jobs j where j.ref = w.ref))
        + (select count(*) from ${s}.ready r where not exists (select from ${s}.jobs j where j.ref = r.ref)))::text as census`,
}
