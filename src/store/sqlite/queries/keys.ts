/** The holders of keys: see `store/verbs/conflicts.ts`. */
export const keyQueries = {
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
}
