import { TURN_SPAN } from '../../../../job/limits/turns.js'

/** Why jobs are not running. */
export const whyQueries = {
  /** The open links of blocked jobs. */
  whyParents: `
    select k.child, j.id, n.name as job, coalesce(l.state, h.state) as state
    from json_each(?) given
    cross join millrace_links k on k.child = given.value
    cross join millrace_jobs j on j.id = k.parent
    cross join millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq
    order by k.child, j.seq
    limit ?`,
  whyHolders: `
    select l.seq as ref, e.worker
    from json_each(?) given
    cross join millrace_live l on l.seq = given.value
    cross join millrace_leases e on e.fence = l.fence`,
  whyTurns: `
    select l.seq as ref, j.lane, l.lane as turn, l.sort, j.rate_turn as rateTurn, j.weight
    from json_each(?) given
    cross join millrace_live l on l.seq = given.value
    cross join millrace_jobs j on j.seq = l.seq`,
  /** The jobs that have the slots of a limit. */
  whySlots: `
    select j.id
    from millrace_slots s
    cross join millrace_live l on l.seq = s.seq and l.fence = s.fence
    cross join millrace_jobs j on j.seq = s.seq
    where s.bucket = ?
    order by s.seq`,
  whyStarts: `
    select used, until
    from millrace_windows
    where bucket = ? and until > ?
    order by until`,
  /** Ready jobs of a name (?1) or a queue (?2), of one key (?3) or of all; of the turn ?4 those before (?5, ?6). */
  whyAhead: `
    select count(*) as jobs, max(weight) as heaviest
    from (
      select coalesce(j.weight, 1) as weight
      from millrace_lanes n
      cross join (select 0 as keyed union all select 1) k
      cross join millrace_live l indexed by millrace_live_ready
      cross join millrace_jobs j on j.seq = l.seq
      where (?1 is null or n.name = ?1) and (?2 is null or n.queue = ?2) and (k.keyed or ?3 is null)
        and l.lane between iif(k.keyed, -(n.lane * ${TURN_SPAN} + coalesce(?3, ${TURN_SPAN - 1})), n.lane)
          and iif(k.keyed, -(n.lane * ${TURN_SPAN} + coalesce(?3, 0)), n.lane)
        and l.state = 'ready' and l.fence is null and l.streak < 2
        and (l.lane <> ?4 or (l.sort, l.seq) < (?5, ?6))
      limit ?7)`,
  whyWaits: `
    select w.seq as ref, w.waits, w.wake_at as wakeAt
    from json_each(?) given
    cross join millrace_workflows w on w.seq = given.value`,
}
