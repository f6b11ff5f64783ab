import { claimedColumns } from './sql-fragments.js'

/** Claims and their leases. */
export const claimQueries = {
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
    select ${claimedColumns()}, j.lane
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
  endQuarantine: `
    update millrace_leases
    set quarantined = 0
    where fence = ? and worker = ?`,
  confirmJobs: `
    select l.seq
    from json_each(?) e
    cross join millrace_live l on l.seq = e.value
    where l.fence = ?`,
  reportJob: `
    update millrace_live
    set state = 'running', started_at = ?, progress = coalesce(?, progress)
    where seq = ? and fence = ?`,
}
