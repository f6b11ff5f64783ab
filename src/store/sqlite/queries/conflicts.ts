/** Who holds a key or a unique slot: see `store/verbs/conflicts.ts`. */
export const conflictQueries = {
  /** The newest job of a key below a turn. */
  keyHolder: `
    select k.seq as seq, k.turn as turn, j.id as id, j.key as key, j.options as options, j.grp as grp, l.state as state, l.fence as fence
    from millrace_keys k
    join millrace_jobs j on j.seq = k.seq
    join millrace_live l on l.seq = k.seq
    where k.name = ? and k.key = ? and k.turn < ?
    order by k.turn desc
    limit 1`,
  takeKey: `
    insert into millrace_keys (name, key, turn, seq)
    values (?, ?, ?, ?)`,
  freeKey: `
    delete from millrace_keys
    where name = ? and key = ? and seq = ?`,
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
}
