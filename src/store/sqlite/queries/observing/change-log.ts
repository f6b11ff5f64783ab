/** The change log and its consumers. */
export const changeLogQueries = {
  takeConsumer: `
    update millrace_consumers set reader = ?2
    where consumer = ?1
    returning 1 as taken`,
  addConsumer: `
    insert into millrace_consumers (consumer, reader, position)
    values (?, ?, ?)`,
  readConsumer: `
    select position
    from millrace_consumers
    where consumer = ? and reader = ?`,
  lastChange: `
    select coalesce(max(number), 0) as number
    from millrace_changes`,
  /** A write transaction excludes all others: what is committed is complete. */
  changeWriters: `select '' as writer where false`,
  changesAfter: `
    select c.number, c.id, n.name as job, n.queue, c.state, c.at
    from millrace_changes c
    join millrace_lanes n on n.lane = c.lane
    where c.number > ? and c.number <= ?
    order by c.number
    limit ?`,
  saveRead: `
    update millrace_consumers set position = max(position, ?3)
    where consumer = ?1 and reader = ?2
    returning 1 as saved`,
  dropConsumer: `
    delete from millrace_consumers
    where consumer = ?
    returning 1 as dropped`,
  trimChanges: `
    delete from millrace_changes
    where number in (
      select number from millrace_changes
      where number <= coalesce((select min(position) from millrace_consumers), ?)
        and number < (select max(number) from millrace_changes)
      order by number
      limit ?)
    returning 1 as dropped`,
}
