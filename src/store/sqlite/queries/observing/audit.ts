/** The audit trail. */
export const auditQueries = {
  addAudit: `
    with given (now, entries) as (values (?, ?))
    insert into millrace_audit (at, actor, role, verb, target, count, before, after, reason, keep_until)
    select given.now, e.value ->> 'actor', e.value ->> 'role', e.value ->> 'verb', e.value ->> 'target',
           e.value ->> 'count', e.value ->> 'before', e.value ->> 'after', e.value ->> 'reason',
           given.now + (e.value ->> 'keep')
    from given, json_each(given.entries) e
    order by e.key`,
  trimAudit: `
    delete from millrace_audit
    where number in (
      select number from millrace_audit indexed by millrace_audit_keep
      where keep_until is not null and keep_until <= ?
      order by keep_until
      limit ?)`,
  /** The newest first. A filter that few rows match reads the whole table, which only commands of people fill. */
  readAudit: `
    with given (now, filter) as (values (?, ?))
    select a.number, a.at, a.actor, a.role, a.verb, a.target, a.count, a.before, a.after, a.reason
    from millrace_audit a, given
    where (a.keep_until is null or a.keep_until > given.now)
      and (filter ->> 'cursor' is null or a.number < filter ->> 'cursor')
      and (filter ->> 'actor' is null or a.actor = filter ->> 'actor')
      and (filter ->> 'verb' is null or a.verb = filter ->> 'verb')
      and (filter ->> 'target' is null or a.target = filter ->> 'target')
      and (filter ->> 'since' is null or a.at >= filter ->> 'since')
    order by a.number desc
    limit ?`,
}
