/** Requested changes of running jobs. */
export const requestQueries = {
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
}
