import { PRIORITY_STEP_MS } from '../../ordering.js'
import { clockStepQueries } from './find-by-time.js'
import { keyQueries } from './keys.js'
import { pauseQueries } from './pauses.js'
import { rescueQueries } from './rescue.js'
import { pruneQueries } from './prune.js'
import { scheduleQueries } from './schedules.js'
import { findQueries } from './find.js'
import { jobRow } from './job-row.js'
import { labelQueries } from './labels.js'
import { laneQueries } from './lanes.js'
import { linkQueries } from './links.js'
import { groupQueries } from './groups.js'

/**
 * Every statement of the SQLite store, named like the method that runs it. The store takes them as an argument, so that
 * a test can plant a wrong one and check that it is found.
 *
 * Where the two stores differ: SQLite puts the writes of one turn of the event loop into one transaction, so its verbs
 * are several small statements; lists are passed as one JSON array (one parameter, any length).
 */

/** Rows per multi-row insert: measured, more gains nothing and fewer cost a call each. */
export const ROWS_PER_INSERT = 20

export const queries = {
  ...clockStepQueries,
  ...keyQueries,
  ...pauseQueries,
  ...pruneQueries,
  ...rescueQueries,
  ...scheduleQueries,
  ...linkQueries,
  ...groupQueries,
  ...findQueries,
  ...laneQueries,
  ...labelQueries,
  databaseNow: `select cast(unixepoch('subsec') * 1000 as integer) as now`,
  begin: `begin immediate`,
  commit: `commit`,
  rollback: `rollback`,
  savepoint: `savepoint settle`,
  release: `release settle`,
  rollbackTo: `rollback to settle`,

  insertJobs: byRows(
    (rows) => `
    insert into millrace_jobs (id, lane, priority, key, payload, options, created_at, grp)
    values ${Array(rows).fill('(?, ?, ?, ?, ?, ?, ?, ?)').join(', ')}`,
  ),
  /** Rows that share all but id and payload: the shared values are bound once. */
  insertAlike: byRows(
    (rows) => `
    with batch (lane, priority, created_at, grp) as (values (?, ?, ?, ?))
    insert into millrace_jobs (id, lane, priority, payload, created_at, grp)
    select each.column1, lane, priority, each.column2, created_at, grp
    from batch, (values ${Array(rows).fill('(?, ?)').join(', ')}) as each`,
  ),
  insertLive: `
    insert into millrace_live (seq, lane, state, sort, due_at, expires_at)
    select seq, lane, ?, ? - priority * ${PRIORITY_STEP_MS}, ?, ?
    from millrace_jobs
    where seq between ? and ?`,
  readSlot: `
    select u.seq as seq, u.id as id, u.until as until, j.key as key, j.options as options, j.grp as grp, l.state as state, l.fence as fence
    from millrace_uniques u
    left join millrace_jobs j on j.seq = u.seq and j.id = u.id
    left join millrace_live l on l.seq = j.seq
    where u.name = ? and u.key = ?`,
  takeSlot: `
    insert into millrace_uniques (name, key, seq, id, until)
    values (?, ?, ?, ?, ?)
    on conflict (name, key) do update set seq = excluded.seq, id = excluded.id, until = excluded.until`,
  /** For a job that is cancelled or deleted, while its row still exists and names its slot. */
  freeSlot: `
    delete from millrace_uniques
    where (name, key, id) = (
      select n.name, json_extract(j.options, '$.unique.key'), j.id
      from millrace_jobs j
      join millrace_lanes n on n.lane = j.lane
      where j.seq = ?)`,
  anySlot: `
    select 1
    from millrace_uniques
    limit 1`,
  nextSlots: `
    select u.name, u.key, u.id, (u.until is null or u.until <= ?) and l.seq is null as over
    from millrace_uniques u
    left join millrace_jobs j on j.seq = u.seq and j.id = u.id
    left join millrace_live l on l.seq = j.seq
    where (u.name, u.key) > (?, ?)
    order by u.name, u.key
    limit ?`,
  sweepSlot: `
    delete from millrace_uniques
    where name = ? and key = ? and id = ?`,
  /** A paused or blocked job keeps its state, with the new time. */
  moveJob: `
    update millrace_live
    set state = case when state in ('paused', 'blocked') then state else ? end, due_at = ?, sort = ?, lane = ?, expires_at = ?, error = null, reason = null
    where seq = ? and fence is null`,
  holdsClaim: `
    select 1
    from millrace_live
    where seq = ? and fence = ?`,

  readJobs: `
    ${jobRow()}
    where j.id in (select value from json_each(?))`,
  readKeyed: `
    ${jobRow()}
    where j.key = ? and n.name = ?
    order by l.seq is not null desc, j.seq desc
    limit 1`,
  changeTarget: `
    ${jobRow()}
    where j.id = ?`,
  changeLive: `
    update millrace_live
    set state = ?, due_at = ?, sort = ?, retries = ?, lane = ?, streak = 0, error = ?, reason = ?, log = ?
    where seq = ? and fence is null`,
  reviveJob: `
    insert into millrace_live (seq, lane, state, sort, due_at, attempt, retries, crashes, log)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  editJob: `
    update millrace_jobs
    set payload = ?, options = ?, priority = ?, lane = ?
    where seq = ?`,
  deleteLive: `
    delete from millrace_live
    where seq = ?`,

  /** Pauses a waiting job, also a held one: no index of claimable jobs lists it any more. */
  pauseJob: `
    update millrace_live
    set state = 'paused', fence = null, reason = ?, log = ?
    where seq = ?`,
  resumeJob: `
    update millrace_live
    set state = ?, reason = null, log = ?
    where seq = ?`,

  requestTarget: `
    select j.seq as ref, l.fence, w.kind as requested
    from millrace_jobs j
    join millrace_live l on l.seq = j.seq
    left join millrace_requests w on w.seq = j.seq
    where j.id = ? and l.state = 'running'`,
  putRequest: `
    insert into millrace_requests (seq, kind, reason, keep_ms, requested_at)
    values (?, ?, ?, ?, ?)
    on conflict (seq) do update
    set kind = excluded.kind, reason = excluded.reason, keep_ms = excluded.keep_ms, requested_at = excluded.requested_at
    where kind <> excluded.kind`,
  dropRequests: `
    delete from millrace_requests
    where seq in (select value from json_each(?))`,
  anyRequest: `select 1 from millrace_requests limit 1`,
  requestsOf: `
    select seq as seq, kind as kind, reason as reason, keep_ms as keep_ms
    from millrace_requests
    where seq in (select value from json_each(?))`,
  readRequests: `
    select w.seq as ref, w.kind, w.reason, l.fence
    from millrace_requests w
    join millrace_live l on l.seq = w.seq`,

  promoteJobs: `
    update millrace_live
    set state = 'ready'
    where seq in (
      select seq
      from millrace_live
      where state in ('scheduled', 'retrying') and due_at <= ?
      order by due_at
      limit ?)`,
  nextDue: `
    select min(due_at) as due
    from millrace_live
    where state in ('scheduled', 'retrying')`,
  expiredJobs: `
    select j.id, n.name, n.queue, l.state
    from millrace_live l
    join millrace_jobs j on j.seq = l.seq
    join millrace_lanes n on n.lane = j.lane
    where l.expires_at <= ? and l.fence is null and l.state <> 'parked'
    limit ?`,
  nextExpiry: `
    select min(expires_at) as due
    from millrace_live
    where expires_at is not null and fence is null and state <> 'parked'`,

  addWorker: `
    insert into millrace_workers (worker, host, pid, identity, lease_ms, started_at)
    values (?, ?, ?, ?, ?, ?)`,
  beat: `
    update millrace_workers
    set beat = beat + 1
    where worker = ?`,
  dropWorker: `
    delete from millrace_workers
    where worker = ?`,
  /**
   * Only leases that hold no job: a lease taken after the rescuer's read still lists its jobs, and the next round
   * rescues them.
   */
  dropLeases: `
    delete from millrace_leases
    where worker = ?
      and not exists (
        select 1
        from json_each(millrace_leases.jobs) held
        join millrace_live l on l.seq = held.value
        where l.fence = millrace_leases.fence)`,
  readWorkers: `
    select worker, beat, pid, identity, lease_ms as "leaseMs"
    from millrace_workers
    union all
    select distinct worker, null, null, null, null
    from millrace_leases
    where worker not in (select worker from millrace_workers)`,
  isWorker: `
    select 1
    from millrace_workers
    where worker = ?`,

  suspectsWait: `
    select lane, min(streak) as streak
    from millrace_live
    where state = 'ready' and fence is null and streak >= 2
    group by lane`,
  readySuspects: `
    select seq, sort, streak
    from millrace_live
    where lane = ? and state = 'ready' and fence is null and streak >= 2
    order by streak, sort, seq
    limit ?`,
  readyJobs: `
    select seq, sort
    from millrace_live
    where lane = ? and state = 'ready' and fence is null and streak < 2
    order by sort, seq
    limit ?`,
  claimStarting: `
    update millrace_live
    set fence = ?, state = 'running', started_at = ?
    where seq in (select value from json_each(?))`,
  claimHeld: `
    update millrace_live
    set fence = ?
    where seq in (select value from json_each(?))`,
  claimHeldRun: `
    update millrace_live
    set fence = ?
    where seq between ? and ?`,
  claimedBodies: `
    select ${claimedColumns()}, l.lane
    from json_each(?) e
    cross join millrace_live l on l.seq = e.value
    cross join millrace_jobs j on j.seq = l.seq`,
  headOfLane: `
    select ${claimedColumns()}
    from millrace_live l
    cross join millrace_jobs j on j.seq = l.seq
    where l.lane = ? and l.state = 'ready' and l.fence is null and l.streak < 2
    order by l.sort, l.seq
    limit ?`,
  addLease: `
    insert into millrace_leases (fence, worker, quarantined, claimed_at, jobs)
    values (?, ?, ?, ?, ?)`,
  closeLease: `
    delete from millrace_leases
    where fence = ?`,
  confirmJobs: `
    select l.seq
    from json_each(?) e
    cross join millrace_live l on l.seq = e.value
    where l.fence = ?`,
  dataVersion: `pragma data_version`,
  truncateCheckpoint: `pragma wal_checkpoint(truncate)`,
  passiveCheckpoint: `pragma wal_checkpoint(passive)`,
  reportJob: `
    update millrace_live
    set state = 'running', started_at = ?, progress = coalesce(?, progress)
    where seq = ? and fence = ?`,

  ownedJobs: `
    select seq as seq
    from millrace_live
    where fence = ? and seq in (select value from json_each(?))`,
  endJobs: `
    delete from millrace_live
    where fence = ? and seq in (select value from json_each(?))`,
  endRun: `
    delete from millrace_live
    where seq between ? and ? and fence = ?`,
  appendHistory: `
    insert into millrace_history
      (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker, result, error, reason, log)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  /** The most frequent end, a completed first attempt: values that all rows share are bound once. */
  appendDone: byRows(
    (rows) => `
    with batch (settled_at, keep_until, worker) as (values (?, ?, ?))
    insert into millrace_history
      (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker, result)
    select each.column1, 'done', each.column2, 1, 0, 0, each.column3, settled_at, keep_until, worker, each.column4
    from batch, (values ${Array(rows).fill('(?, ?, ?, ?)').join(', ')}) as each`,
  ),
  /** The same for consecutive rows without a result: their values are in the live rows already. */
  appendDoneRun: `
    insert into millrace_history
      (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker)
    select seq, 'done', due_at, 1, 0, 0, ?, ?, ?, ?
    from millrace_live
    where seq between ? and ? and fence = ?`,
  requeueJob: `
    update millrace_live
    set state = ?, due_at = coalesce(?, due_at),
        sort = coalesce(?, due_at) - (select priority from millrace_jobs where seq = millrace_live.seq) * ${PRIORITY_STEP_MS},
        attempt = ?, retries = ?, crashes = ?, streak = ?, fence = null, started_at = null,
        error = ?, reason = ?, log = ?, progress = null, expires_at = case when ? then null else expires_at end
    where seq = ? and fence = ?`,

  endQuarantine: `
    update millrace_leases
    set quarantined = 0
    where fence = ? and worker = ?`,
  leasedBodies: `
    select ${claimedColumns()}, l.lane, l.started_at
    from json_each(?) e
    cross join millrace_live l on l.seq = e.value
    cross join millrace_jobs j on j.seq = l.seq
    where l.fence = ?`,
}

export type Queries = typeof queries

/** A statement for a number of rows, built once for each number. */
function byRows(build: (rows: number) => string): (rows: number) => string {
  const built: string[] = []
  return (rows) => (built[rows] ??= build(rows))
}

/**
 * The columns of a job that a claim reads. Most jobs have null in the rare columns, and each column read has a cost: so
 * those are read as one JSON text.
 */
function claimedColumns(): string {
  return `l.seq, j.id, j.payload, l.due_at,
           case
             when l.attempt = 0 and l.retries = 0 and l.crashes = 0 and l.streak = 0 and l.log is null
               and l.expires_at is null and j.key is null and j.options is null and j.grp is null then null
             else json_array(l.attempt, l.retries, l.crashes, l.streak, l.log, l.expires_at, j.key, j.options, j.grp)
           end as rare`
}
