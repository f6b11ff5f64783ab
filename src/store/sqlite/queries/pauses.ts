/** Paused queues. */
export const pauseQueries = {
  /** Nearly always empty: a queue that is not paused has no row. */
  readPauses: `
    select queue, until, paused_at
    from millrace_pauses`,
  readPause: `
    select until, paused_at, ? as now
    from millrace_pauses
    where queue = ?`,
  putPause: `
    insert into millrace_pauses (queue, until, paused_at)
    values (?, ?, ?)
    on conflict (queue) do update
    set until = excluded.until, paused_at = excluded.paused_at`,
  dropPause: `
    delete from millrace_pauses
    where queue = ?
    returning 1 as dropped`,
  anyHeld: `
    select 1
    from millrace_leases e, json_each(e.jobs) held
    join millrace_live l on l.seq = held.value
    where l.fence = e.fence and l.state = 'ready'
    limit 1`,
}
