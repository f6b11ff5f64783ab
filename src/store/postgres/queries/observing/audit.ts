import { clock, s } from '../sql-fragments.js'

/** The audit trail. */
export const auditQueries = {
  addAudit: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now)
    insert into ${s}.audit (at, actor, role, verb, target, count, before, after, reason, keep_until)
    select clock.now, e.actor, e.role, e.verb, e.target, e.count, e.before, e.after, e.reason, clock.now + e.keep
    from clock,
      json_to_recordset($2::text::json) as e
        (actor text, role text, verb text, target text, count bigint, before text, after text, reason text, keep bigint)`,
  /** Skips rows that another command is deleting. */
  trimAudit: `
    with over as (
      select number from ${s}.audit
      where keep_until is not null and keep_until <= coalesce($1::text::bigint, ${clock})
      order by keep_until
      limit $2::text::integer
      for update skip locked)
    delete from ${s}.audit where number = any(array(select number from over))`,
  /** The newest first. A filter that few rows match reads the whole table, which only commands of people fill. */
  readAudit: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    given as materialized (
      select * from json_to_record($2::text::json) as g (actor text, verb text, target text, since bigint, cursor bigint))
    select a.number, a.at, a.actor, a.role, a.verb, a.target, a.count, a.before, a.after, a.reason
    from ${s}.audit a
    where (a.keep_until is null or a.keep_until > (select now from clock))
      and a.number < coalesce((select cursor from given), 9223372036854775807)
      and ((select actor from given) is null or a.actor = (select actor from given))
      and ((select verb from given) is null or a.verb = (select verb from given))
      and ((select target from given) is null or a.target = (select target from given))
      and ((select since from given) is null or a.at >= (select since from given))
    order by a.number desc
    limit $3::text::integer`,
}
