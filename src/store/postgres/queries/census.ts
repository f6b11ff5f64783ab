import { DAY_MS } from '../../../job/statistics/buckets.js'
import { s, sort, turnLane } from './sql-fragments.js'

/** All rows of a table, as arrays of these columns. */
const rows = (columns: string, from: string): string =>
  `(select coalesce(json_agg(json_build_array(${columns})), '[]') from ${s}.${from})`

/**
 * Every row of the store in one snapshot, for checkers (`store/census.ts`). It joins nothing: campaigns read thousands of
 * small censuses, and joins over so many partitions take most of the time of a step. `verbs/census.ts` names the columns.
 */
export const censusQueries = {
  readCensus: `
    select json_build_object(
      'jobs', ${rows(
        `j.ref, j.id, j.lane, j.key, j.grp, j.payload, j.options, j.created_at, j.due_at, j.attempt, j.retries, j.crashes, j.streak,
         j.reason, j.log, j.after, ${sort('j')}, ${turnLane('j.lane', 'j.turn')}`,
        'jobs j',
      )},
      'lanes', ${rows(`lane, queue, name`, 'lanes')},
      'history', ${rows(`ref, state, attempt, retries, crashes, reason, worker, log, keep_until`, 'history')},
      'waiting', ${rows(`ref, state`, 'waiting')},
      'ready', ${rows(`ref, lane, sort`, 'ready')},
      'leases', ${rows(`fence, worker, quarantined, starting, refs, released`, 'leases')},
      'reports', ${rows(`ref, fence`, 'reports')},
      'keys', ${rows(`name, key, ref`, 'keys')},
      'uniques', ${rows(`name, key, id, until`, 'uniques')},
      'workers', ${rows(`worker, beat`, 'workers')},
      'requests', ${rows(`ref, kind`, 'requests')},
      'outages', ${rows(`lane, state`, 'outages')},
      'pauses', ${rows(`queue, until`, 'pauses')},
      'ticks', ${rows(`schedule, at, by_hand::integer, job`, 'ticks')},
      'schedules', ${rows(`id, spec, next_at, last_at`, 'schedules')},
      'groups', ${rows(`grp, sealed_at, completed_at`, 'groups')},
      'counts', ${rows(`grp, queue, state, members`, 'group_counts')},
      'moves', ${rows(`grp, queue, state, members`, 'group_moves')},
      'stats', ${rows(`queue, name, done, failed, retried`, `stats where span = ${DAY_MS}`)},
      'stats_moves', ${rows(`queue, name, done, failed, retried`, 'stats_moves')},
      'links', ${rows(`parent, child, on_failure`, 'links')},
      'todos', ${rows(`parent, id`, 'link_todos')},
      'workflows', ${rows(`ref, run, waits, wake_at, paused_from`, 'workflows')},
      'lists', ${rows(`list, id, total`, 'lists')},
      'items', ${rows(`list`, 'items')},
      'steps', ${rows(`ref, run, address, no, attempt, value, kind, since, error, note`, 'steps')},
      'inbox', ${rows(`ref, number, kind, name, payload, taken`, 'inbox')},
      'leftovers', ${rows(`ref`, 'leftovers')},
      'shaped', ${rows(`ref, shape`, `jobs where shape is not null`)})::text as census`,
}
