import { PRIORITY_STEP_MS } from '../../rows/ordering.js'
import { byRows, turnLane } from './sql-fragments.js'

/** Rows per multi-row insert: measured, more gains nothing and fewer cost a call each. */
export const ROWS_PER_INSERT = 20

/** New jobs and their labels. */
export const insertQueries = {
  insertJobs: byRows(
    (rows) => `
    insert into millrace_jobs (id, lane, priority, key, payload, options, created_at, grp, turn, rate_turn, weight, shape)
    values ${Array(rows).fill('(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').join(', ')}`,
  ),
  /** Rows that share all but id and payload: the shared values are bound once. */
  insertAlike: byRows(
    (rows) => `
    with batch (lane, priority, created_at, grp, shape) as (values (?, ?, ?, ?, ?))
    insert into millrace_jobs (id, lane, priority, payload, created_at, grp, shape)
    select each.column1, lane, priority, each.column2, created_at, grp, shape
    from batch, (values ${Array(rows).fill('(?, ?)').join(', ')}) as each`,
  ),
  insertLive: `
    insert into millrace_live (seq, lane, state, sort, due_at, expires_at)
    select seq, ${turnLane('lane', 'turn')}, ?, ? - priority * ${PRIORITY_STEP_MS}, ?, ?
    from millrace_jobs
    where seq between ? and ?`,
  holdsClaim: `
    select 1
    from millrace_live
    where seq = ? and fence = ?`,
  insertLabels: `
    insert into millrace_labels (seq, label)
    select ?, value
    from json_each(?)`,
  anyLabel: `
    select 1 as there
    from millrace_labels
    limit 1`,
  /** Not those of parents. */
  deleteOwnLabels: `
    delete from millrace_labels
    where seq = ? and label >= char(2)`,
  deleteLabelsRun: `
    delete from millrace_labels
    where seq between ? and ?`,
  deleteLabels: `
    delete from millrace_labels
    where seq in (select value from json_each(?))`,
}
